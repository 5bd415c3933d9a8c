"""Times tiles of matrix products: python -m warploom.bench.sweep_gemm CASE … [--out FILE]

CASE as in suite `gemm`. Of each the tiles with the best estimates are timed, in groups of several
heights, cuBLAS beside them. Prints them fastest first; --out writes the table that `matmul` reads.
"""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from warploom.bench import machine
from warploom.bench.suites.gemm import split
from warploom.kernels import gemm
from warploom.kernels.gemm import config
from warploom.kernels.gemm.config import Config, Shape
from warploom.runtime import driver

GROUPS = (4, 8, 16)
GROUP_ROWS = 64  # of one matrix instruction: with more, replicas may alternate
CLUSTERS = ((1, 1), (2, 1), (1, 2))
ROUNDS, LEAST_S = 5, 1e-3


def candidates(shape: Shape, most: int) -> Iterator[Config]:
    """The `most` best tiles by estimate; the better half in groups of every height, with
    and without clusters."""
    ordered = sorted(config.candidates(shape), key=lambda c: config.cycles(c, shape))
    yield from config.swapped(shape)
    for number, chosen in enumerate(ordered[:most]):
        tall = -(-shape.m // chosen.BM) > min(GROUPS)
        for group in GROUPS if tall and number < most // 2 else (chosen.GROUP,):
            for cluster in CLUSTERS:
                yield replace(chosen, GROUP=group, CLUSTER=cluster)
    if shape.m > GROUP_ROWS:
        for chosen in config.alternating(shape):
            for cluster in CLUSTERS:
                yield replace(chosen, CLUSTER=cluster)
    yield from config.shared_out(shape, most)


def sweep(case: str, most: int) -> dict[str, Any]:
    """One row of the table: the fastest tile of a case and the one after it, in TFLOP/s."""
    torch_gemm: Any = importlib.import_module("warploom.bench.rivals.torch_gemm")
    dtype, layout, (m, n, k) = split(case)
    sets = torch_gemm.operands(m, n, k, dtype, layout, 0)
    shape = gemm.shape_of(sets[0].a, sets[0].b, sets[0].ours)

    def rate(launch: Any) -> float:
        graph = torch_gemm.Graph(launch, sets, LEAST_S)
        return 2e-12 * m * n * k / sorted(graph.seconds() for _ in range(ROUNDS))[ROUNDS // 2]

    rival = rate(torch_gemm.cublas)
    found: list[tuple[float, Config]] = []

    def enter(chosen: Config) -> None:
        def launch(held: Any) -> None:
            scales = {"scale_a": held.scale_a, "scale_b": held.scale_b}
            gemm.matmul(held.a, held.b, held.ours, config=chosen, **scales)

        speed = rate(launch)
        error = torch_gemm.error(sets[-1].ours, sets[-1])
        if not error < 0.01:
            raise RuntimeError(f"{case} with {chosen} is off by {error:g}")
        found.append((speed, chosen))
        found.sort(key=lambda pair: -pair[0])

    for chosen in candidates(shape, most):
        enter(chosen)
    for _, chosen in found[:3]:
        enter(replace(chosen, PDL=True))
    print(f"{case}: cublas {rival:.1f}")
    for speed, chosen in found:
        print(f"  {speed:6.1f} {speed / rival:.3f} {chosen.row()}", flush=True)
    (value, best), (after, _) = found[0], found[min(1, len(found) - 1)]
    return {
        **{"key": shape.key(), "config": best.row(), "value": round(value, 1)},
        **{"unit": "TFLOP/s", "runner_up": round(after, 1)},
    }


def main() -> int:
    """Sweep the cases, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--most", type=int, default=8)
    options = parser.parse_args()
    rows = {row["key"]: row for row in (sweep(c, options.most) for c in options.cases)}
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
