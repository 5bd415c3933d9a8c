"""Times tiles of matrix products: python -m warploom.bench.sweep_gemm CASE … [--out FILE]

CASE as in suite `gemm`. Of each the tiles with the best estimates are timed, in groups of several
heights, cuBLAS beside them. Prints them fastest first; --out writes the table that `matmul` reads.
"""

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from warploom.bench import machine
from warploom.bench.suites.gemm import split
from warploom.kernels import gemm
from warploom.kernels.gemm import config
from warploom.kernels.gemm.config import Config, Shape
from warploom.runtime import driver

GROUPS = (4, 8, 16)
ROWS = 64  # of one matrix instruction
CLUSTERS = ((2, 1), (1, 2))
FEW, SHORT_S = 3, 1e-3
ROUNDS, LEAST_S, LEADING = 9, 6e-3, 4
WRONG = 0.01


def candidates(shape: Shape, most: int, every: bool = False) -> Iterator[Config]:
    """The `most` best tiles by estimate; of many rows the better half in groups of every height,
    the two best in clusters too, and the best one that three replicas share.

    Alternating replicas and tiles shared along K lost wherever they were timed
    (docs/notes/performance.md): the best of them take part with `every` only.
    """
    ordered = sorted(config.candidates(shape), key=lambda c: config.cycles(c, shape))
    yield from config.swapped(shape)
    for number, chosen in enumerate(ordered[:most]):
        tall = -(-shape.m // chosen.BM) > min(GROUPS)
        for group in GROUPS if tall and number < most // 2 else (chosen.GROUP,):
            yield replace(chosen, GROUP=group)
            if tall and number < 2:
                for cluster in CLUSTERS:
                    yield replace(chosen, GROUP=group, CLUSTER=cluster)
    if shape.m > min(GROUPS) * ROWS:
        yield min(config.threefold(shape), key=lambda c: config.cycles(c, shape))
    if every:
        alternating = sorted(config.alternating(shape), key=lambda c: config.cycles(c, shape))
        yield from alternating[: most // 2]
        yield from config.shared_out(shape, most // 2)


def sweep(case: str, most: int, every: bool = False) -> dict[str, Any]:
    """One row of the table: the fastest tile of a case and the one after it, in TFLOP/s.

    All are timed shortly, then the leading ones for longer, with and without an early beginning,
    with replicas that write at once and in turn.
    """
    torch_gemm: Any = importlib.import_module("warploom.bench.rivals.torch_gemm")
    dtype, layout, (m, n, k) = split(case)
    sets = torch_gemm.operands(m, n, k, dtype, layout, 0)
    shape = gemm.shape_of(sets[0].a, sets[0].b, sets[0].ours)

    def rates(tiles: Iterable[Config], rounds: int, least_s: float) -> dict[Config | None, float]:
        graphs: dict[Config | None, Any] = {
            None: torch_gemm.Graph(torch_gemm.cublas, sets, least_s)
        }
        for chosen in tiles:
            graphs[chosen] = torch_gemm.Graph(partial(_product, chosen), sets, least_s)
            error = torch_gemm.error(sets[-1].ours, sets[-1])
            if not error < WRONG:
                raise RuntimeError(f"{case} with {chosen} is off by {error:g}")
        taken = _in_turn({who: graph.seconds for who, graph in graphs.items()}, rounds)
        return {who: 2e-12 * m * n * k / median(seconds) for who, seconds in taken.items()}

    first = rates(candidates(shape, most, every), FEW, SHORT_S)
    leading = [chosen for chosen in _ranked(first) if chosen is not None][:LEADING]
    last = rates(dict.fromkeys(variants(leading)), ROUNDS, LEAST_S)
    print(f"{case}: cublas {last[None]:.1f}")
    for chosen in _ranked(last):
        if chosen is not None:
            print(
                f"  {last[chosen]:6.1f} {last[chosen] / last[None]:.3f} {chosen.row()}", flush=True
            )
    best, after = [chosen for chosen in _ranked(last) if chosen is not None][:2]
    return {
        **{"key": shape.key(), "config": best.row(), "value": round(last[best], 1)},
        **{"unit": "TFLOP/s", "runner_up": round(last[after], 1)},
    }


def variants(leading: Iterable[Config]) -> Iterator[Config]:
    """Tiles in launches that begin early and late, of replicas that write at once and in turn."""
    for chosen in leading:
        shared = chosen.MATH > 1 and not (chosen.PINGPONG or chosen.SPLIT)
        for early in (False, True):
            for turns in (False, True) if shared else (False,):
                yield replace(chosen, PDL=early, STAGGER=turns)


def _product(chosen: Config, held: Any) -> None:
    scales = {"scale_a": held.scale_a, "scale_b": held.scale_b}
    gemm.matmul(held.a, held.b, held.ours, config=chosen, **scales)


def _ranked(rates: dict[Config | None, float]) -> list[Config | None]:
    return sorted(rates, key=lambda who: -rates[who])


def _in_turn(
    contestants: Mapping[Config | None, Callable[[], float]], rounds: int
) -> dict[Config | None, list[float]]:
    """Measurements of each, once a round in an order that is drawn each time: who comes after a
    slow one finds a cooler chip, and at the power limit that is worth some percent."""
    draw = random.Random(0)
    taken: dict[Config | None, list[float]] = {who: [] for who in contestants}
    for _ in range(rounds):
        for who in draw.sample(list(contestants), len(contestants)):
            taken[who].append(contestants[who]())
    return taken


def main() -> int:
    """Sweep the cases, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--every", action="store_true", help="tiles that lost so far, too")
    options = parser.parse_args()
    rows = {
        row["key"]: row for row in (sweep(c, options.most, options.every) for c in options.cases)
    }
    sms = driver.facts(0).multiprocessors
    if options.out is not None:
        made = time.strftime("%Y-%m-%d", time.gmtime())
        table = {
            "schema": 1,
            "machine": machine.name(),
            "made": made,
            "sms": sms,
            "key": config.KEY,
        }
        text = json.dumps({**table, "rows": list(rows.values())}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
