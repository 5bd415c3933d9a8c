"""Suite `norm`: functions of long bf16 rows, each split over a cluster, against torch, Triton and a
copy of the same bytes. Rows `rows x columns` (RMSNorm), others with the name of their function.

All sides get the same random rows, beyond the L2, in CUDA graphs that are replayed in turn; ours
writes to an output that is there and is checked against float64 before it is timed. The unit is
bytes read and written a second. On the simulator small rows run once, beside NumPy. What rivals
compile they compile ahead of all rows, in processes beside each other.
"""

import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.bench.rivals import in_triton
from warploom.bench.rivals.row_blocks import BLOCKS
from warploom.kernels import rows
from warploom.kernels.rows import config, reference

DEVICE = "gpu"
LIMIT_S = 240.0
TOGETHER = True
ROUNDS, LEAST_S, SIMULATED_ROUNDS = 21, 5e-3, 3
CHECKED = 64  # rows
# Ours may be this much further from float64 than the rival; both round once to bf16.
WORSE, HALF_UNIT = 1.1, 2.0**-9
SHAPES = ("4096x65536", "8192x16384", "8192x32768", "2048x131072", "1024x262144")
OTHERS = ("layer_norm/4096x65536", "softmax/4096x65536")
SIMULATED = ("6x16384", "layer_norm/6x16384", "softmax/6x16384")


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return list(SIMULATED if device == "sim" else SHAPES + OTHERS)


def prepare(cases: Sequence[str], device: str) -> None:
    """Compiles what the rivals of the cases launch into their caches on disk, in processes beside
    each other: one after the other, that takes longer than all that is measured."""
    if device == "sim":
        return
    command = [sys.executable, "-m", "warploom.bench.norm_compile"]

    def run(job: list[str]) -> None:
        # What cannot be compiled is reported by its row.
        subprocess.run([*command, *job], cwd=machine.ROOT, capture_output=True, check=False)

    with ThreadPoolExecutor(machine.cores()) as pool:
        list(pool.map(run, jobs(cases)))


def jobs(cases: Sequence[str]) -> list[list[str]]:
    """What is compiled, what takes longest first. Triton's kernel for a block is the same for all
    rows that are longer than it."""
    found: dict[tuple[int, int, bool], list[str]] = {}
    for case in cases:
        kind, _, columns = parse(case)
        for size, warps in BLOCKS if kind == "rms_norm" else ():
            if size < 2 * columns:
                job = ["triton", case, str(size), str(warps)]
                found.setdefault((size, warps, size >= columns), job)
    blocks = [found[key] for key in sorted(found, key=lambda key: -key[0] // key[1])]
    return blocks + [["compiled", case] for case in cases]


def parse(case: str) -> tuple[str, int, int]:
    """(function, rows, columns) of a case."""
    kind, _, shape = case.rpartition("/")
    count, length = map(int, shape.split("x"))
    return kind or "rms_norm", count, length


def measure(case: str, context: Context) -> Row:
    """One row: TB/s of rows read and written; on the simulator milliseconds."""
    kind, count, length = parse(case)
    if context.device == "sim":
        return _simulated(case, kind, count, length, context)
    torch_rows: Any = importlib.import_module("warploom.bench.rivals.torch_rows")
    graph: Any = importlib.import_module("warploom.bench.rivals.torch_gemm").Graph
    sets = torch_rows.operands(count, length, context.seed)
    row = Row(case, "TB/s", "higher", rounds=ROUNDS)
    row.config = _config(kind, length)
    wanted = torch_rows.truth(kind, sets[0], CHECKED)
    call(kind, sets[0].x, sets[0].weight, sets[0].bias, sets[0].ours)
    launches = torch_rows.sides(kind)
    made = {name: launch(sets[0]) for name, launch in launches.items()}
    if not judged(row, torch_rows.error(sets[0].ours, wanted), {
        name: torch_rows.error(result, wanted) for name, result in made.items()
    }):  # fmt: skip
        return row
    del made
    sides = {"ours": graph(lambda s: call(kind, s.x, s.weight, s.bias, s.ours), sets, LEAST_S)}
    sides |= {name: graph(launch, sets, LEAST_S) for name, launch in launches.items()}
    sides["copy"] = graph(torch_rows.copied, sets, LEAST_S)
    sides |= _triton(kind, sets, graph, row)
    samples = alternate({name: side.seconds for name, side in sides.items()}, ROUNDS)
    row.clock_mhz = machine.clock_mhz()
    enter(row, samples, 4 * count * length)
    return row


def call(kind: str, x: Any, weight: Any, bias: Any, out: Any) -> None:
    """One launch of ours."""
    if kind == "softmax":
        rows.softmax(x, out)
    elif kind == "layer_norm":
        rows.layer_norm(x, weight, bias, out, 1e-5)
    else:
        rows.rms_norm(x, weight, out, 1e-5)


def judged(row: Row, ours: float, rivals: dict[str, float]) -> bool:
    """Whether ours is as near to float64 as the best rival; errors go into the row."""
    row.error, row.rival_error = ours, min(rivals.values())
    if not ours <= max(WORSE * row.rival_error, HALF_UNIT):  # NaN is wrong too
        row.status, row.note = "wrong", f"off by {ours:.3g}, rivals by {row.rival_error:.3g}"
    return row.status == "ok"


def enter(row: Row, samples: dict[str, list[float]], moved: int) -> None:
    """TB/s of each side out of seconds of one launch that moves so many bytes, and what ours is of
    the copy and of the fastest who computes the same."""
    rate = {name: [moved / s * 1e-12 for s in taken] for name, taken in samples.items()}
    row.ours, row.spread = summary(rate.pop("ours"))
    row.rivals = {name: summary(taken)[0] for name, taken in rate.items()}
    computed = [rate for name, rate in row.rivals.items() if name != "copy"]
    row.extra |= {
        "bytes": moved,
        "of_copy": round(row.ours / row.rivals["copy"], 4),
        "of_computed": round(row.ours / max(computed), 4),
    }


def _config(kind: str, length: int) -> dict[str, Any]:
    factors = {"rms_norm": 2, "layer_norm": 4}.get(kind, 0)
    number = config.NAMES.index(kind)
    chosen = config.choose(number, length, 2, factors, copied=True, kept=True, written=True)
    return {"CLUSTER": chosen.CLUSTER, **chosen.constants()}


def _triton(kind: str, sets: Any, graph: Any, row: Row) -> dict[str, Any]:
    """Triton's side of RMSNorm; a note in the row where it cannot take part."""
    triton_rows = in_triton("triton_rows", row) if kind == "rms_norm" else None
    if triton_rows is None:
        return {}
    block = triton_rows.fastest(sets)
    row.extra["triton_block"] = list(block)
    return {"triton": graph(lambda held: triton_rows.launch(held, block), sets, LEAST_S)}


def _simulated(case: str, kind: str, count: int, length: int, context: Context) -> Row:
    """Milliseconds of a launch on the simulator; NumPy computes the same in float64."""
    draw = np.random.default_rng(context.seed)
    x, out = (np.zeros((count, length), ml_dtypes.bfloat16) for _ in range(2))
    x[...] = draw.standard_normal(x.shape)
    weight, bias = (draw.standard_normal(length).astype(x.dtype) for _ in range(2))
    row = Row(case, "ms", "lower", rounds=SIMULATED_ROUNDS, config=_config(kind, length))
    plain: dict[str, Callable[[], np.ndarray]] = {
        "rms_norm": partial(reference.rms_norm, x, weight, 1e-5),
        "layer_norm": partial(reference.layer_norm, x, weight, bias, 1e-5),
        "softmax": partial(reference.softmax, x),
    }
    ours = partial(call, kind, x, weight, bias, out)
    ours()
    wanted = plain[kind]()
    off = float(np.linalg.norm(out.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    if judged(row, off, {"numpy": 0.0}):
        sides = {"ours": ours, "numpy": plain[kind]}
        timed = {name: partial(seconds, side) for name, side in sides.items()}
        samples = alternate(timed, SIMULATED_ROUNDS)
        row.ours, row.spread = summary([1e3 * s for s in samples["ours"]])
        row.rivals = {"numpy": summary([1e3 * s for s in samples["numpy"]])[0]}
    return row
