"""Two products in flight: a slot goes back when the product after the one that read it runs."""

import warploom as wl


@wl.kernel
def in_flight(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, S: wl.const):
    sa, sb = wl.shared((64, 64), a.dtype, slots=S), wl.shared((64, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect(2 * 64 * 64 * 2)
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k * 64, 64)], sa[s], barrier=full[s])
                    wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb[s], barrier=full[s])
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                full[k % S].wait(k // S % 2)
                acc = wl.dot_async(sa[k % S], sb[k % S].T, acc)
                acc.wait(in_flight=1)
                if k > 0:
                    with wl.one_thread():
                        empty[(k - 1) % S].arrive()
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


@in_flight.example
def small(make):
    a, b = make.randn((64, 448), wl.f16), make.randn((64, 448), wl.f16)
    return in_flight.launch(1).call(a, b, make.zeros((64, 64), wl.f32), STEPS=7, S=3)
