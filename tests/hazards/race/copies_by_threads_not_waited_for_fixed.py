"""Right: threads wait for their copies, then read the tile."""

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    wl.copy_by_threads(x[wl.ds(0, 64), wl.ds(0, 64)], tile)
    wl.threads_commit()
    wl.threads_wait()
    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.T.load())


@copied.example
def _small(make):
    return copied.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))
