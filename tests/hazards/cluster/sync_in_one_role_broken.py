"""Wrong: one role waits for the whole cluster, and another one never comes."""

# expect: P038 15

import warploom as wl


@wl.kernel
def told(x: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=4):
            with ring.put() as tile:
                wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile)
            wl.cluster_sync()
        with wl.role("write", warps=4):
            with ring.get() as tile:
                wl.store(y[wl.program_id(0), wl.ds(0, 64), wl.ds(0, 64)], tile.load())


@told.example
def _small(make):
    return told.launch(2, cluster=2).call(make.randn((64, 64)), make.zeros((2, 64, 64)))
