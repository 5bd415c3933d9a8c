"""Times splits of long rows: python -m warploom.bench.sweep_rows CASE … [--out FILE]

CASE as in suite `norm`. All splits that fit registers and shared memory are timed in turn, rivals
and a copy beside them. Prints them fastest first; --out writes the table that `kernels.rows` reads.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from warploom.bench import machine
from warploom.bench.suites.norm import parse
from warploom.kernels import rows
from warploom.kernels.rows import config, kernel
from warploom.kernels.rows.config import Config

ITEM = 2  # bytes of bf16
THREAD_ELEMENTS = (16, 32, 64)
# Registers of a thread beside the elements that it holds, and of an SM.
BESIDE, REGISTERS = 56, 65_536
MOST_THREADS = 1024
REPLICAS = (1, 2, 3, 4, 6)
LEAST_IN_FLIGHT = 64 * 1024  # bytes of rows: less does not keep memory busy
FEW, ROUNDS, LEADING, SHORT_S, LEAST_S = 3, 11, 6, 1.5e-3, 5e-3
WRONG = 0.01
MOST_OF_ONE = 32 * 1024  # bytes of a part, where an SM takes several blocks
LIKELY = 12_288  # elements of a part: what is tried first
PROCESSES = max(1, min(12, (os.cpu_count() or 1) - 2))


def candidates(kind: int, length: int, factors: int) -> Iterator[Config]:
    """The splits of a row that fit an SM, with `factors` bytes of factors an element."""
    for cluster, held, replicas in product(config.SIZES, THREAD_ELEMENTS, REPLICAS):
        part = length // cluster
        warps = part // (32 * held)
        threads = 32 * warps * replicas
        if part % (32 * held) or warps not in (2, 4, 8, 16, 32):
            continue
        if threads > MOST_THREADS or threads * (held + BESIDE) > REGISTERS:
            continue
        for resident, written in product((True, False), (False, True)):
            slot = replicas * part * ITEM
            stages = (config.SHARED - factors * part * resident) // slot
            stages = min(stages, config.MOST_STAGES)
            if resident == bool(factors) and stages * slot >= LEAST_IN_FLIGHT and stages > written:
                yield Config(cluster, part, stages, resident, warps, replicas, written)
        if replicas == 1 and part * ITEM <= MOST_OF_ONE:
            # Several blocks an SM, which come and go.
            yield Config(cluster, part, 1, False, warps, 1, False, 1)
            yield Config(cluster, part, 1, False, warps, 1, True, 1)
            yield Config(cluster, part, 2, False, warps, 1, True, 4)


def sweep(case: str, most: int) -> dict[str, Any]:
    """One row of the table: the fastest split of a case and the one after it, in TB/s."""
    kind, count, length = parse(case)
    torch_rows: Any = importlib.import_module("warploom.bench.rivals.torch_rows")
    graph: Any = importlib.import_module("warploom.bench.rivals.torch_gemm").Graph
    sets = torch_rows.operands(count, length, 0)
    wanted = torch_rows.truth(kind, sets[0], 8)
    number, moved = config.NAMES.index(kind), 2 * ITEM * count * length

    def rates(splits: list[Config], rounds: int, least_s: float) -> dict[Any, float]:
        sides: dict[Any, Any] = {"copy": graph(torch_rows.copied, sets, least_s)}
        for name, launch in torch_rows.sides(kind).items():
            sides[name] = graph(launch, sets, least_s)
        for chosen in splits:
            try:
                sides[chosen] = graph(partial(_launch, number, chosen), sets, least_s)
            except Exception as why:
                print(f"  {chosen}: {str(why).splitlines()[0]}", flush=True)
                continue
            error = torch_rows.error(sets[0].ours, wanted)
            if not error < WRONG:
                raise RuntimeError(f"{case} with {chosen} is off by {error:g}")
        taken = _in_turn({who: side.seconds for who, side in sides.items()}, rounds)
        return {who: 1e-12 * moved / median(found) for who, found in taken.items()}

    first = rates(_candidates(case, most), FEW, SHORT_S)
    _print(case, first)
    leading = [who for who in _ranked(first) if isinstance(who, Config)][:LEADING]
    last = rates(leading, ROUNDS, LEAST_S)
    _print(case, last)
    best, after = [who for who in _ranked(last) if isinstance(who, Config)][:2]
    return {
        **{"key": f"{kind}/{ITEM}/{length}", "config": _fields(best)},
        **{"value": round(last[best], 3), "unit": "TB/s", "runner_up": round(last[after], 3)},
    }


FACTORS = {"rms_norm": ITEM, "layer_norm": 2 * ITEM, "softmax": 0}


def _launch(number: int, chosen: Config, held: Any) -> None:
    given = {
        kernel.RMS_NORM: {"weight": held.weight},
        kernel.LAYER_NORM: {"weight": held.weight, "bias": held.bias},
    }.get(number, {})
    rows.launch(number, chosen, held.x, held.ours, 1e-5, **given)


def _fields(chosen: Config) -> dict[str, Any]:
    return {"CLUSTER": chosen.CLUSTER, **chosen.constants(), "ROUNDS": chosen.ROUNDS}


def _ranked(rates: dict[Any, float]) -> list[Any]:
    return sorted(rates, key=lambda who: -rates[who])


def _print(case: str, rates: dict[Any, float]) -> None:
    print(case)
    for who in _ranked(rates):
        name = " ".join(f"{k}={int(v)}" for k, v in _fields(who).items()) if (
            isinstance(who, Config)
        ) else who  # fmt: skip
        print(f"  {rates[who]:.3f} {name}", flush=True)


def _in_turn(contestants: dict[Any, Callable[[], float]], rounds: int) -> dict[Any, list[float]]:
    """Seconds of each, once a round in an order that is drawn each time."""
    draw = random.Random(0)
    taken: dict[Any, list[float]] = {who: [] for who in contestants}
    for _ in range(rounds):
        for who in draw.sample(list(contestants), len(contestants)):
            taken[who].append(contestants[who]())
    return taken


def compiled(work: tuple[str, Config]) -> None:
    """Compile a split into the cache on disk, by a launch of a few rows."""
    case, chosen = work
    kind, _, length = parse(case)
    torch_rows: Any = importlib.import_module("warploom.bench.rivals.torch_rows")
    _launch(config.NAMES.index(kind), chosen, torch_rows.operands(8, length, 0)[0])


def _compile_all(cases: list[str], most: int) -> None:
    """All splits ahead, by several processes."""
    work = [(case, chosen) for case in cases for chosen in _candidates(case, most)]
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(compiled, one) for one in work]:
            if done.exception() is not None:
                print(str(done.exception()).splitlines()[0], flush=True)


def _candidates(case: str, most: int) -> list[Config]:
    kind, _, length = parse(case)
    found = candidates(config.NAMES.index(kind), length, FACTORS[kind])
    return sorted(found, key=lambda one: abs(one.BN - LIKELY))[:most]


def main() -> int:
    """Sweep the cases, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--most", type=int, default=200)
    options = parser.parse_args()
    _compile_all(options.cases, options.most)
    found = [sweep(case, options.most) for case in options.cases]
    if options.out is not None:
        made = time.strftime("%Y-%m-%d", time.gmtime())
        table = {"schema": 1, "machine": machine.name(), "made": made}
        table |= {"key": "kind/bytes of an element/length of a row", "rows": found}
        table["default"] = "the rule of config.choose"
        text = json.dumps({**table, "rows": []}, indent=1)
        lines = ",\n".join("  " + json.dumps(row) for row in found)
        text = text.replace('"rows": []', '"rows": [\n' + lines + "\n ]")
        options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
