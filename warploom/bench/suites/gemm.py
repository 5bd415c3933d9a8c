"""Suite `gemm`: matrix products against cuBLAS and Triton, rows `dtype/layout/MxNxK`.

All sides get the same random operands, beyond the L2, and outputs that are there; each is one CUDA
graph of at least a millisecond. They are checked against float64 before they are timed in turn, and
ours gives the same bits a thousand times (`identical_runs`). fp8 is f8e4m3 with one scale for each
operand and bf16 results; its rival is torch._scaled_mm as it is by default, with sums in f32.
"""

import importlib
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.measure import alternate, summary
from warploom.bench.record import Row
from warploom.bench.rivals import in_triton
from warploom.kernels import gemm
from warploom.kernels.gemm import config

DEVICE = "gpu"
LIMIT_S = 120.0
# A case is some seconds of loading and one of measuring: cases that follow each other share that.
TOGETHER = True
ROUNDS, LEAST_S, REPEATS = 21, 1.5e-3, 1000
# Checks, and rounds in a row, leave the chip at its power limit, where cuBLAS does less than it is
# known to do: a row of so many products waits before it is timed, and before each round.
REST_S, ROUND_REST_S, RESTING = 0.6, 8e-3, 2**32
# Ours may be this much further from float64 than the rival, who sums in f32 as well.
WORSE = 1.1
HALF_UNIT = {"bf16": 2.0**-9, "f16": 2.0**-12, "fp8": 2.0**-9}

_LARGE = ("4096x4096x4096", "8192x28672x4096", "64x28672x4096")
_CUBES = ("512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x8192")
SHAPES = {
    "bf16/nt": (
        *_CUBES,
        *("16384x16384x4096", "8192x4096x14336", "8192x28672x4096", "4096x6144x4096"),
        *("1152x2304x16384", "8192x1024x512", "128x4096x4096", "64x28672x4096", "16x14336x4096"),
    ),
    "bf16/nn": ("1024x1024x1024", *_LARGE),
    "bf16/tn": ("1024x1024x1024", *_LARGE),
    "f16/nt": ("1024x1024x1024", "8192x8192x8192", *_LARGE),
    "fp8/nt": ("4096x4096x4096", "8192x8192x8192", "8192x28672x4096"),
}


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return [f"{kind}/{shape}" for kind, shapes in SHAPES.items() for shape in shapes]


def split(case: str) -> tuple[str, str, tuple[int, int, int]]:
    """dtype, layout and (M, N, K) of a row."""
    dtype, layout, shape = case.split("/")
    m, n, k = (int(number) for number in shape.split("x"))
    return dtype, layout, (m, n, k)


def measure(case: str, context: Context) -> Row:
    """One row: TFLOP/s of ours, of cuBLAS and of Triton."""
    dtype, layout, (m, n, k) = split(case)
    # Torch is loaded here, so that listing the cases needs none.
    torch_gemm: Any = importlib.import_module("warploom.bench.rivals.torch_gemm")
    sets = torch_gemm.operands(m, n, k, dtype, layout, context.seed)
    row = Row(case, "TFLOP/s", "higher", limit=dtype, rounds=ROUNDS)
    shape = gemm.shape_of(sets[0].a, sets[0].b, sets[0].ours)
    row.config = config.choose(shape).row()
    ours = torch_gemm.Graph(_ours, sets, LEAST_S)
    sides = {"ours": ours, "cublas": torch_gemm.Graph(torch_gemm.cublas, sets, LEAST_S)}
    if not is_right(row, dtype, sets[-1], torch_gemm):
        return row
    same = torch_gemm.identical(_ours, sets[0], REPEATS)
    row.extra = {"launches": ours.products, "sets": len(sets), "identical_runs": same}
    if same < REPEATS:
        row.status, row.note = "wrong", f"{REPEATS - same} of {REPEATS} repeats gave other bits"
        return row
    sides |= _triton(sets, _most_error(row.rival_error, dtype), torch_gemm, row)
    time_in_turn(row, sides, (m, n, k), context)
    return row


def is_right(row: Row, dtype: str, held: Any, torch_gemm: Any) -> bool:
    """Whether ours is as near to float64 as cuBLAS; both errors go into the row, a fault too."""
    error, other = (torch_gemm.error(made, held) for made in (held.ours, held.theirs))
    row.error, row.rival_error = error, other
    if not error <= _most_error(other, dtype):  # NaN is wrong too
        row.status, row.note = "wrong", f"off by {error:.3g}, cuBLAS by {other:.3g}"
    return row.status == "ok"


def _most_error(rival: float | None, dtype: str) -> float:
    """The largest error of a product that is right."""
    assert rival is not None
    return max(WORSE * rival, HALF_UNIT[dtype])


def time_in_turn(
    row: Row, sides: Mapping[str, Any], shape: tuple[int, int, int], context: Context
) -> None:
    """Enter TFLOP/s of the graphs of all sides ("ours" and rivals), replayed in turn, and what they
    are of the limit that is written down of this machine."""
    m, n, k = shape
    rests = m * n * k >= RESTING
    if rests:
        time.sleep(REST_S)
    timed = {name: graph.clocked for name, graph in sides.items()}
    samples = alternate(timed, row.rounds, ROUND_REST_S if rests else 0.0)
    clocks = {name: round(median(graph.clocks)) for name, graph in sides.items()}
    row.clock_mhz, row.extra["clocks_mhz"] = clocks["ours"], clocks
    rate = {name: [2e-12 * m * n * k / s for s in taken] for name, taken in samples.items()}
    row.ours, row.spread = summary(rate.pop("ours"))
    row.rivals = {name: summary(taken)[0] for name, taken in rate.items()}
    assert row.limit is not None
    known = machine.facts(machine.name())
    if limit := known.get("matrix_fp8" if row.limit == "fp8" else "matrix_bf16"):
        context.limits[row.limit] = {"value": limit["value"], "unit": row.unit}
        row.of_limit = round(row.ours / limit["value"], 4)


def _ours(held: Any) -> None:
    gemm.matmul(held.a, held.b, held.ours, scale_a=held.scale_a, scale_b=held.scale_b)


def _triton(sets: Any, most: float, torch_gemm: Any, row: Row) -> dict[str, Any]:
    """Triton's side with its best tile, into the outputs that cuBLAS was checked in; a note in the
    row where it cannot take part."""
    if sets[0].scale_a is not None:
        row.note = "no rival triton: it has no scales"
        return {}
    triton_gemm = in_triton("triton_gemm", row)
    if triton_gemm is None:
        return {}
    tile = triton_gemm.fastest(sets)
    graph = torch_gemm.Graph(lambda held: triton_gemm.launch(held, tile), sets, LEAST_S)
    error = torch_gemm.error(sets[-1].theirs, sets[-1])
    if not error <= most:
        row.note = f"no rival triton: off by {error:.3g}"
        return {}
    row.extra["triton_tile"] = [tile.rows, tile.columns, tile.depth, tile.stages, tile.warps]
    return {"triton": graph}
