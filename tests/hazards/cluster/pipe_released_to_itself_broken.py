"""Wrong: a consumer of a cluster's pipe hands an item back to its own block only."""

# expect: D001 16
# without: cluster.arrive 22

import warploom as wl


@wl.kernel
def shared(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(2, slots=[wl.shared((64, 64), x.dtype)], cluster=True)
    rank = wl.cluster_rank()
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                with ring.put() as tile:
                    part = x[wl.ds(k * 64 + rank * 32, 32), wl.ds(0, 64)]
                    everyone = wl.cluster_mask(0)
                    wl.copy_async(part, tile[wl.ds(rank * 32, 32), :], multicast=everyone)
        with wl.role("write", warps=4):
            for k in wl.range(0, STEPS):
                with ring.get() as tile:
                    part = tile.load()
                wl.store(y[rank, wl.ds(k * 64, 64), wl.ds(0, 64)], part)


@shared.example
def _small(make):
    x, y = make.randn((192, 64)), make.zeros((2, 192, 64))
    return shared.launch(2, cluster=2).call(x, y, STEPS=3)
