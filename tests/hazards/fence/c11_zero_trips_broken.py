"""Wrong: the only fence stands in a loop that has no trips."""

# expect: M016 13 19
# without: sync.fence_async 18

import warploom as wl


@wl.kernel
def summed(x: wl.Tensor, y: wl.Tensor, STEPS: wl.i32):
    tile = wl.shared((64, 64), x.dtype)
    total = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
    tile.store(total)
    for i in wl.range(1, STEPS):
        total = total + wl.load(x[wl.ds(i * 64, 64), wl.ds(0, 64)])
        tile.store(total)
        wl.fence_async()
    with wl.one_thread():
        wl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 64)])
        wl.copy_commit()
        wl.copy_wait()


@summed.example
def _small(make):
    return summed.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)), 1)
