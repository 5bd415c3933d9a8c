"""Right: barriers are counted modulo their number."""

import warploom as wl


@wl.kernel
def ring(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    tiles = wl.shared((16, 64), x.dtype, slots=S, swizzle=0)
    other = wl.shared((16, 64), x.dtype, slots=S, swizzle=0)
    full, free = wl.barrier(S), wl.barrier(S)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                s = i % S
                free[s].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect(16 * 64 * 4)
                    window = x[wl.ds(i * 16, 16), wl.ds(0, 64)]
                    wl.copy_async(window, tiles[s], barrier=full[s])
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                s = i % S
                full[s].wait(i // S % 2)
                other[s].store(tiles[s].load())
                free[s].arrive()
                wl.store(y[wl.ds(i * 16, 16), wl.ds(0, 64)], other[s].load())


@ring.example
def _small(make):
    return ring.launch(1).call(make.randn((144, 64)), make.zeros((144, 64)), STEPS=9, S=2)
