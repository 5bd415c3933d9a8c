"""Wrong: the warp that copies does not acquire the descriptor that it has made."""

# expect: M038 17 20

import warploom as wl


@wl.kernel
def part(x: wl.Tensor, y: wl.Tensor, start: wl.i32, rows: wl.i32):
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    made = wl.descriptors(x, tile)
    full = wl.barrier()
    of_x = made[0]
    with wl.roles():
        with wl.role("load", warps=1):
            # The rows of x from `start` on.
            of_x.make(start, (rows, 64), acquire=False)
            with wl.one_thread():
                full.expect(16 * 64 * 4)
                wl.copy_async(of_x[wl.ds(0, 16), wl.ds(0, 64)], tile, full)
        with wl.role("use", warps=4):
            full.wait(0)
            wl.store(y[wl.ds(0, 16), wl.ds(0, 64)], tile.load())


@part.example
def _small(make):
    return part.launch(1).call(make.randn((4096,)), make.zeros((16, 64)), 128, 13)
