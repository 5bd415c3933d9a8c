"""Right: the lanes meet behind their waits: the compiler sees to it."""

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((16, 16), x.dtype)
    with wl.roles():
        with wl.role("copy", warps=1):
            wl.copy_by_threads(x[wl.ds(0, 16), wl.ds(0, 16)], tile)
            wl.threads_commit()
            wl.threads_wait()
            wl.store(y[wl.ds(0, 16), wl.ds(0, 16)], tile.T.load())
        with wl.role("idle", warps=1):
            pass


@copied.example
def _small(make):
    return copied.launch(1).call(make.randn((16, 16)), make.zeros((16, 16)))
