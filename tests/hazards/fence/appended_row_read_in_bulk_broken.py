"""Wrong: a row is stored to a cache and read by a bulk copy; the fence comes after it."""

# expect: M016 12 17

import warploom as wl


@wl.kernel
def appended(row: wl.Tensor, cache: wl.Tensor, y: wl.Tensor, POSITION: wl.const):
    tile = wl.shared((256,), cache.dtype, swizzle=0)
    full, stored = wl.barrier(), wl.barrier()
    wl.store(cache[POSITION, wl.ds(0, 64)], wl.load(row[wl.ds(0, 64)]))
    stored.arrive()
    stored.wait(0)
    with wl.one_thread():
        full.expect(256 * 4)
        wl.copy_bulk(cache[POSITION, wl.ds(0, 256)], tile, barrier=full)
    wl.fence_async(space="global")
    full.wait(0)
    wl.store(y[wl.ds(0, 256)], tile.load())


@appended.example
def _small(make):
    row, cache = make.randn((64,)), make.zeros((8, 256))
    return appended.launch(1).call(row, cache, make.zeros((256,)), POSITION=3)
