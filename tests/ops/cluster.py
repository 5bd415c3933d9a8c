"""Places in a cluster, barriers of peers, and the barrier of all."""

import numpy as np

from tests.language.test_clusters import crossed, passed_on, product, shared_sums
from tests.ops.trial import Case, Trial, spread


def told(op: str) -> Case:
    """Blocks that arrive at each other's barriers, and meet."""

    def make(device):
        x = spread("f32", (2, 128))
        y, z = device.empty((3, 2, 128), x.dtype), device.empty((3, 2, 128), x.dtype)
        call = passed_on.launch(2, cluster=2).call(device.put(x), y, z, 3)
        written = np.stack([x + np.float32(k) for k in range(3)])
        return Trial(call, [(y, written), (z, np.roll(written, 1, 1))])

    return Case(op, "", make, "told")


def filled(op: str, stages: int) -> Case:
    """Items that four blocks fill for each other, read by threads."""

    def make(device):
        x = (np.arange(32 * 32 * 5, dtype=np.float32) % 31).reshape(32, -1)
        y = device.put(np.zeros((4, 1, 32, 32), np.float32))
        call = shared_sums.launch((2, 2), cluster=(2, 2)).call(device.put(x), y, 1, 5, stages, 0, 1)
        return Trial(call, [(y, np.tile(x.reshape(32, 5, 32).sum(1), (4, 1, 1, 1)))])

    return Case(op, "", make, f"filled{stages}")


def multiplied(op: str, by_hand: bool) -> Case:
    """Tiles that two blocks share, read by products."""

    def make(device):
        rng = np.random.default_rng(0)
        a = rng.integers(-3, 4, (64 if by_hand else 128, 192)).astype("float16")
        b = rng.integers(-3, 4, (64 if by_hand else 256, 192)).astype("float16")
        c = device.empty((len(a), len(b)), np.float32)
        if by_hand:
            call = product.launch(2, cluster=2).call(device.put(a), device.put(b), c, 64, 32, 64, 2)
        else:
            call = crossed.launch((4, 2), cluster=2).call(device.put(a), device.put(b), c, 2)
        return Trial(call, [(c, a.astype(np.float32) @ b.astype(np.float32).T)])

    return Case(op, "", make, "by_hand" if by_hand else "multiplied")


CASES = [told(f"cluster.{n}") for n in ("rank", "sync", "barrier_on", "address", "arrive")]
CASES += [filled(f"cluster.{n}", s) for n in ("mask", "arrive_peers", "arrive") for s in (1, 2)]
CASES += [multiplied("cluster.mask", by_hand) for by_hand in (False, True)]
CASES += [multiplied("cluster.arrive", False), multiplied("tma.load_box", False)]
