"""Wrong: a tile that threads have cleared is filled by the copy engine without a fence."""

# expect: M016 13 16
# without: sync.fence_async 14

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    full = wl.barrier()
    tile.store(wl.zeros((64, 64), wl.f32))
    with wl.one_thread():
        full.expect(64 * 64 * 4)
        wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile, barrier=full)
    full.wait(0)
    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.load())


@copied.example
def _small(make):
    return copied.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))
