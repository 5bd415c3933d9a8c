"""Wrong: a ring of one stage is waited for as if it had two."""

# expect: U102 21

import warploom as wl


@wl.kernel
def ring(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    slot = wl.shared((64, 64), x.dtype, swizzle=128)
    full, empty = wl.barrier(arrivals=1), wl.barrier(arrivals=4)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty.wait(i % 2 ^ 1)
                with wl.one_thread():
                    full.expect(64 * 64 * 2)
                    wl.copy_async(x[wl.ds(i * 64, 64), wl.ds(0, 64)], slot, barrier=full)
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                full.wait(i // 2 % 2)
                tile = slot.load()
                wl.fence_async()
                with wl.one_thread(per="warp"):
                    empty.arrive()
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], tile)


@ring.example
def _small(make):
    x, y = make.randn((320, 64), wl.bf16), make.zeros((320, 64), wl.bf16)
    return ring.launch(1).call(x, y, STEPS=5)
