"""Right: a copy fills one of the slots that there are."""

import warploom as wl


@wl.kernel
def ring(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    slots = wl.shared((8, 32), x.dtype, slots=S)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=1)
    out = wl.shared((8, 32), x.dtype)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                s = i % S
                empty[s].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect(8 * 32 * 4)
                    window = x[wl.ds(i * 8, 8), wl.ds(0, 32)]
                    wl.copy_async(window, slots[s], barrier=full[s])
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                s = i % S
                full[s].wait(i // S % 2)
                out.store(slots[s].load())
                empty[s].arrive()
                wl.store(y[wl.ds(i * 8, 8), wl.ds(0, 32)], out.load())


@ring.example
def _small(make):
    return ring.launch(1).call(make.randn((40, 32)), make.zeros((40, 32)), STEPS=5, S=2)
