"""Wrong: a row is stored to a cache by one role and read by a bulk copy of another, unordered."""

# expect: R102 14 20

import warploom as wl


@wl.kernel
def appended(row: wl.Tensor, cache: wl.Tensor, y: wl.Tensor, POSITION: wl.const):
    ring = wl.pipe(stages=2, slots=[wl.shared((256,), cache.dtype, swizzle=0)])
    stored = wl.named_barrier(160)
    with wl.roles():
        with wl.role("append", warps=4):
            wl.store(cache[POSITION, wl.ds(0, 64)], wl.load(row[wl.ds(0, 64)]))
            wl.fence_async(space="global")
            stored.arrive()
        with wl.role("load", warps=1):
            for i in wl.range(0, POSITION + 1):
                with ring.put() as tile:
                    wl.copy_bulk(cache[i, wl.ds(0, 256)], tile)
            stored.sync()
        with wl.role("read", warps=4):
            for i in wl.range(0, POSITION + 1):
                with ring.get() as tile:
                    wl.store(y[i, wl.ds(0, 256)], tile.load())


@appended.example
def _small(make):
    row, cache = make.randn((64,)), make.zeros((8, 256))
    return appended.launch(1).call(row, cache, make.zeros((8, 256)), POSITION=3)
