"""Right: a slot read by loads is handed back behind a fence, which the compiler puts there."""

import warploom as wl


@wl.kernel
def ring(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    slots = wl.shared((64, 64), x.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=4)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                s = i % S
                empty[s].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect(64 * 64 * 2)
                    window = x[wl.ds(i * 64, 64), wl.ds(0, 64)]
                    wl.copy_async(window, slots[s], barrier=full[s])
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                s = i % S
                full[s].wait(i // S % 2)
                tile = slots[s].load()
                with wl.one_thread(per="warp"):
                    empty[s].arrive()
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], tile)


@ring.example
def _small(make):
    x, y = make.randn((320, 64), wl.bf16), make.zeros((320, 64), wl.bf16)
    return ring.launch(1).call(x, y, STEPS=5, S=2)
