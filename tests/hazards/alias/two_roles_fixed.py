"""Right: beside it, a role fills a tile on the bytes of one that another role still reads."""

import warploom as wl


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype, swizzle=128)
    other = wl.shared((64, 64), x.dtype, swizzle=128, alias=tile)
    full, free = wl.barrier(1, arrivals=1), wl.barrier(1, arrivals=4)
    at = wl.ds(0, 64)
    with wl.roles():
        with wl.role("load", warps=1):
            with wl.one_thread():
                full.expect(64 * 64 * 2)
                wl.copy_async(x[at, at], tile, barrier=full)
            free.wait(0)
            other.store(wl.load(x[wl.ds(64, 64), at]))
            wl.store(z[at, at], other.load())
        with wl.role("write", warps=4):
            full.wait(0)
            wl.store(y[at, at], tile.load())
            free.arrive(per="warp")


@turned.example
def _small(make):
    x, y, z = make.randn((128, 64), wl.bf16), make.zeros((64, 64), wl.bf16), (64, 64)
    return turned.launch(1).call(x, y, make.zeros(z, wl.bf16))
