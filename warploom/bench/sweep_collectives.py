"""Times both protocols of an all-reduce in a cluster: python -m warploom.bench.sweep_collectives

Halves, one cluster and all SMs, as in suite `collectives`. Prints nanoseconds of a round; --out
writes the rows of `base/protocols` for clusters: up to which size one push is the faster way.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import warploom as wl
from warploom.base import protocols
from warploom.base.errors import CompileError
from warploom.bench import machine
from warploom.bench.measure import alternate
from warploom.bench.suites.collectives import whole_clusters
from warploom.kernels.collectives import kernel, reference
from warploom.language import collective

SIZES, CLUSTERS = (256, 512, 768, 1024, 2048, 4096, 6144, 8192), (2, 4, 8, 16)
WAYS = ("push", "staged")
TOO_LARGE = "B001"
CHAIN, SAMPLES = 2000, 5


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement to make."""

    way: str
    bytes: int
    cluster: int
    full: bool

    def call(self, rounds: int) -> tuple[Any, np.ndarray]:
        """A chain of all-reduces by this way, on arrays of the GPU, and its input."""
        # The table is asked while the kernel is built.
        collective.protocol = self._chosen
        sms = machine.facts(machine.name())["sms_used_by_cluster_size"][str(self.cluster)]
        blocks = whole_clusters(sms, self.cluster) if self.full else self.cluster
        x = np.random.default_rng(0).standard_normal((blocks, self.bytes // 2)).astype(np.float16)
        launch = kernel.all_reduce.launch(blocks, cluster=(self.cluster, 1, 1))
        given = {"OP": "sum", "OVER": wl.cluster, "SCALE": 1.0 / self.cluster, "N": x.shape[1]}
        out = wl.device_empty(x.shape, wl.f16)
        return launch.call(wl.to_device(x), out, rounds, **given), x

    def _chosen(self, over: str, size: int, parties: int = 0) -> str:
        return self.way if over == "cluster" else protocols.protocol(over, size, parties)

    def nanoseconds(self) -> float:
        """Of a round; NaN where the result is wrong, infinite where its slots do not fit."""
        call, x = self.call(3)
        if not launched(call):
            return math.inf
        wanted = reference.all_reduce(x, self.cluster, "sum", 3, 1.0 / self.cluster)
        if wl.to_numpy(call.args[1]).tobytes() != wanted.tobytes():
            return float("nan")
        chains = {str(n): partial(self.call(n)[0].bench, 1, 2) for n in (0, CHAIN)}
        taken = alternate(chains, SAMPLES)
        return 1e9 * (median(taken[str(CHAIN)]) - median(taken["0"])) / CHAIN


def launched(call: Any) -> bool:
    """Launch it, unless a block has too little shared memory for it."""
    try:
        call.launcher(*call.args, **call.kwargs)
    except CompileError as error:
        if error.code != TOO_LARGE:
            raise
        return False
    return True


def trials(way: str, clusters: list[int]) -> Iterator[Trial]:
    """All measurements of a way."""
    for cluster, size, full in product(clusters, SIZES, (False, True)):
        yield Trial(way, size, cluster, full)


def _apart(way: str) -> None:
    """Let a process keep what it compiles apart from that of the other way: it has the same key."""
    os.environ["WARPLOOM_CACHE"] = str(Path(tempfile.gettempdir()) / f"warploom_sweep_{way}")


def prepared(way: str, cluster: int) -> None:
    """Compile the kernels of a way into the cache on disk."""
    _apart(way)
    for one in trials(way, [cluster]):
        if not one.full:
            launched(one.call(1)[0])


def measured(way: str, clusters: list[int]) -> list[tuple[Trial, float]]:
    """Nanoseconds of each, in a process of its own: kernels are kept by their names."""
    _apart(way)
    return [(one, one.nanoseconds()) for one in trials(way, clusters)]


def rows(found: dict[Trial, float], cluster: int) -> Iterator[dict[str, Any]]:
    """Rows of the table: the faster way with all SMs busy, where the next size takes another."""
    best = []
    for size in SIZES:
        taken = {way: found[Trial(way, size, cluster, True)] for way in WAYS}
        best.append((size, *sorted(WAYS, key=lambda way: taken[way]), sorted(taken.values())))
    for (size, way, _, (first, second)), after in zip(best, [*best[1:], None], strict=True):
        if after is not None and after[1] != way:
            key = {"over": "cluster", "parties": cluster, "bytes": size}
            other = round(second, 1) if math.isfinite(second) else None
            value = {"value": round(first, 1), "unit": "ns", "runner_up": other}
            yield {"key": key, "config": way, **value}


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[Trial, float] = {}
    with ProcessPoolExecutor(
        8, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        ahead = [pool.submit(prepared, w, c) for w in WAYS for c in options.clusters]
        for one in ahead:
            one.result()
    for way in WAYS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found |= pool.submit(measured, way, list(options.clusters)).result()
    for cluster, size in product(options.clusters, SIZES):
        texts = []
        for way in WAYS:
            one, full = (found[Trial(way, size, cluster, full)] for full in (False, True))
            texts.append(f"{way} {one:.0f} / {full:.0f}")
        print(f"{size} in {cluster}: {', '.join(texts)}", flush=True)
    if options.out is not None:
        made = [row for cluster in options.clusters for row in rows(found, cluster)]
        options.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
