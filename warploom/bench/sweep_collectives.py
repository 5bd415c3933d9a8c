"""Times ways of an all-reduce of halves in a cluster: python -m warploom.bench.sweep_collectives

For each size and cluster both protocols and several numbers of warps are timed, as in the suite
`collectives`. Prints nanoseconds of a round, one cluster and all SMs; --build compiles only.
"""

import argparse
import sys
from functools import partial
from typing import Any

import numpy as np

import warploom as wl
from warploom.base import protocols
from warploom.bench import machine
from warploom.bench.measure import alternate, summary
from warploom.bench.suites.collectives import whole_clusters
from warploom.kernels.collectives import kernel, reference
from warploom.language import collective

SIZES, CLUSTERS, WARPS = (256, 768, 2048, 4096, 8192), (2, 4, 8, 16), (4, 8)
CHAIN, SAMPLES = 2000, 3


def forced(way: str) -> None:
    """Let every collective over a cluster take one protocol."""
    collective.protocol = lambda over, size, *_: way if over == "cluster" else protocols.protocol(over, size)


def timed(size: int, cluster: int, warps: int, build: bool) -> list[float]:
    found = []
    for full in (False, True):
        sms = machine.facts(machine.name())["sms_used_by_cluster_size"][str(cluster)]
        blocks = whole_clusters(sms, cluster) if full else cluster
        x = np.random.default_rng(0).standard_normal((blocks, size // 2)).astype(np.float16)
        given, out = wl.to_device(x), wl.device_empty(x.shape, wl.f16)
        launch = kernel.all_reduce.launch(blocks, cluster=(cluster, 1, 1), warps=warps)
        constants: dict[str, Any] = {"OP": "sum", "OVER": wl.cluster, "SCALE": 1.0 / cluster, "N": x.shape[1]}
        launch(given, out, 3, **constants)
        if build:
            return []
        wanted = reference.all_reduce(x, cluster, "sum", 3, 1.0 / cluster)
        if wl.to_numpy(out).tobytes() != wanted.tobytes():
            return [float("nan")] * 2
        chains = {n: launch.call(given, out, n, **constants) for n in (0, CHAIN)}
        taken = alternate({str(n): partial(c.bench, 1, 2) for n, c in chains.items()}, SAMPLES)
        empty = summary(taken["0"])[0]
        found.append(summary([1e9 * (s - empty) / CHAIN for s in taken[str(CHAIN)]])[0])
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("clusters", type=int, nargs="+")
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    forced(options.way)
    for cluster in options.clusters:
        for size in SIZES:
            for warps in WARPS:
                found = timed(size, cluster, warps, options.build)
                if found:
                    print(f"{options.way} {size}/{cluster} warps {warps}: one {found[0]:.0f} full {found[1]:.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
