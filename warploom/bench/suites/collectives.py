"""Suite `collectives`: nanoseconds of an all-reduce of halves in a cluster, `bytes/cluster/one`
(one cluster) and `bytes/cluster/full` (all SMs that clusters of the size can use).

Timed in one chain of rounds, less a launch without rounds. The rival `recorded` is the fastest of
the schedules that were measured by hand (`base/hw`): it is no second side of this run. On the
simulator a few rounds run, in milliseconds, beside NumPy.
"""

from functools import partial

import numpy as np

import warploom as wl
from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.kernels import collectives
from warploom.kernels.collectives import kernel, reference

DEVICE = "gpu"
LIMIT_S = 60.0
SAMPLES, CHAIN, SIMULATED_ROUNDS = 15, 2000, 2
BYTES, CLUSTERS = (256, 768, 2048, 8192), (2, 4, 8, 16)
SIMULATED = ("256/2/one", "768/3/one", "2048/4/one")


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    if device == "sim":
        return list(SIMULATED)
    return [f"{b}/{c}/{how}" for c in CLUSTERS for b in BYTES for how in ("one", "full")]


def parse(case: str) -> tuple[int, int, bool]:
    """(bytes, blocks of a cluster, whether all SMs are busy) of a case."""
    size, cluster, how = case.split("/")
    return int(size), int(cluster), how == "full"


def measure(case: str, context: Context) -> Row:
    """One row."""
    size, cluster, full = parse(case)
    if context.device == "sim":
        return _simulated(case, size, cluster, context)
    facts = machine.facts(machine.name())
    blocks = (
        whole_clusters(facts["sms_used_by_cluster_size"][str(cluster)], cluster)
        if full
        else cluster
    )
    row = Row(case, "ns", "lower", rounds=SAMPLES, config={"blocks": blocks, "chain": CHAIN})
    x = _drawn(blocks, size, context.seed)
    given, out = wl.to_device(x), wl.device_empty(x.shape, wl.f16)
    launch = kernel.all_reduce.launch(blocks, cluster=(cluster, 1, 1))
    constants = {"OP": "sum", "OVER": wl.cluster, "SCALE": 1.0 / cluster, "N": x.shape[1]}
    launch(given, out, 3, **constants)
    wanted = reference.all_reduce(x, cluster, "sum", 3, 1.0 / cluster)
    if wl.to_numpy(out).tobytes() != wanted.tobytes():
        row.status, row.note = "wrong", "not the bits of the reference"
        return row
    chains = {n: launch.call(given, out, n, **constants) for n in (0, CHAIN)}
    timed = {str(n): partial(call.bench, 1, 3) for n, call in chains.items()}
    taken = alternate(timed, SAMPLES)
    empty = summary(taken["0"])[0]
    row.ours, row.spread = summary([1e9 * (s - empty) / CHAIN for s in taken[str(CHAIN)]])
    row.clock_mhz = machine.clock_mhz()
    row.rivals = dict(facts["rivals"]["collectives"].get(case, {}))
    return row


def whole_clusters(sms: int, cluster: int) -> int:
    """Blocks of as many whole clusters as so many SMs hold."""
    return sms // cluster * cluster


def _drawn(blocks: int, size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((blocks, size // 2)).astype(np.float16)


def _simulated(case: str, size: int, cluster: int, context: Context) -> Row:
    """Milliseconds of a few rounds."""
    x = _drawn(cluster, size, context.seed)
    out = np.zeros_like(x)
    args = ("sum", cluster, 3, 1.0 / cluster)
    ours = partial(collectives.all_reduce, x, out, *args)
    plain = partial(reference.all_reduce, x, cluster, "sum", 3, 1.0 / cluster)
    row = Row(case, "ms", "lower", rounds=SIMULATED_ROUNDS)
    ours()
    if out.tobytes() != plain().tobytes():
        row.status, row.note = "wrong", "not the bits of the reference"
        return row
    taken = alternate({"ours": partial(seconds, ours), "numpy": partial(seconds, plain)}, 2)
    row.ours, row.spread = summary([1e3 * s for s in taken["ours"]])
    row.rivals = {"numpy": summary([1e3 * s for s in taken["numpy"]])[0]}
    return row
