"""Wrong: one lane waits for the copy, and the others of its warp read what it brings."""

# expect: R101 15 19

import warploom as wl


@wl.kernel
def taken(x: wl.Tensor, y: wl.Tensor):
    tile, full = wl.shared((16, 16), x.dtype), wl.barrier(1)
    with wl.roles():
        with wl.role("load", warps=1):
            with wl.one_thread():
                full.expect(16 * 16 * 4)
                wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 16)], tile, barrier=full)
        with wl.role("store", warps=1):
            with wl.one_thread():
                full.wait(0)
            wl.store(y[wl.ds(0, 16), wl.ds(0, 16)], tile.load())


@taken.example
def _small(make):
    return taken.launch(1).call(make.randn((16, 16)), make.zeros((16, 16)))
