"""Right: a consumer holds two items of a ring of two."""

import warploom as wl


@wl.kernel
def pairs(x: wl.Tensor, y: wl.Tensor, S: wl.const):
    slots = wl.shared((64, 64), x.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=4)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, 4):
                empty[i % S].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[i % S].expect(64 * 64 * 2)
                    window = x[wl.ds(i * 64, 64), wl.ds(0, 64)]
                    wl.copy_async(window, slots[i % S], barrier=full[i % S])
        with wl.role("add", warps=4):
            for i in wl.range(0, 4, 2):
                one, two = i % S, (i + 1) % S
                full[one].wait(i // S % 2)
                full[two].wait((i + 1) // S % 2)
                tile = slots[one].load() + slots[two].load()
                with wl.one_thread(per="warp"):
                    empty[one].arrive()
                    empty[two].arrive()
                wl.store(y[wl.ds(i * 32, 64), wl.ds(0, 64)], tile)


@pairs.example
def _small(make):
    x, y = make.randn((256, 64), wl.bf16), make.zeros((128, 64), wl.bf16)
    return pairs.launch(1).call(x, y, S=2)
