"""Wrong: threads store a tile that the copy engine takes away, and no fence stands between."""

# expect: M016 13 15
# without: sync.fence_async 14

import warploom as wl


@wl.kernel
def doubled(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    part = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
    tile.store(part + part)
    with wl.one_thread():
        wl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 64)])
        wl.copy_commit()
        wl.copy_wait()


@doubled.example
def _small(make):
    return doubled.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))
