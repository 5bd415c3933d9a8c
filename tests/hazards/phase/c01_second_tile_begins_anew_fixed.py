"""Right: the second tile of a block goes on with the count of the first."""

import warploom as wl


@wl.kernel
def ring(x: wl.Tensor, y: wl.Tensor, TILES: wl.const, STEPS: wl.const, S: wl.const):
    slots = wl.shared((64, 64), x.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=4)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(0, TILES):
                for i in wl.range(0, STEPS):
                    n = t * STEPS + i
                    s = n % S
                    empty[s].wait(n // S % 2 ^ 1)
                    with wl.one_thread():
                        full[s].expect(64 * 64 * 2)
                        window = x[wl.ds((t * STEPS + i) * 64, 64), wl.ds(0, 64)]
                        wl.copy_async(window, slots[s], barrier=full[s])
        with wl.role("write", warps=4):
            for t in wl.range(0, TILES):
                for i in wl.range(0, STEPS):
                    n = t * STEPS + i
                    s = n % S
                    full[s].wait(n // S % 2)
                    tile = slots[s].load()
                    wl.fence_async()
                    with wl.one_thread(per="warp"):
                        empty[s].arrive()
                    wl.store(y[wl.ds((t * STEPS + i) * 64, 64), wl.ds(0, 64)], tile)


@ring.example
def _small(make):
    x, y = make.randn((384, 64), wl.bf16), make.zeros((384, 64), wl.bf16)
    return ring.launch(1).call(x, y, TILES=2, STEPS=3, S=2)
