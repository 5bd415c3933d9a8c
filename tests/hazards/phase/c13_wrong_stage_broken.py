"""Wrong: the wait for B is at the next stage."""

# expect: U102 30
# expect: D001 30

import warploom as wl


@wl.kernel
def gemm(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, S: wl.const):
    sa = wl.shared((128, 64), a.dtype, slots=S, swizzle=128)
    sb = wl.shared((64, 64), b.dtype, slots=S, swizzle=128)
    full_a, full_b = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=1)
    empty = wl.barrier(S, arrivals=2)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full_a[s].expect(128 * 64 * 2)
                    wl.copy_async(a[wl.ds(0, 128), wl.ds(k * 64, 64)], sa[s], barrier=full_a[s])
                    full_b[s].expect(64 * 64 * 2)
                    wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb[s], barrier=full_b[s])
        with wl.role("math", warps=4, replicas=2) as r:
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                s = k % S
                full_a[s].wait(k // S % 2)
                full_b[(k + 1) % S].wait((k + 1) // S % 2)
                pending = wl.dot_async(sa[s][wl.ds(r * 64, 64), :], sb[s].T, acc)
                acc = pending.wait()
                with wl.one_thread():
                    empty[s].arrive()
            wl.store(c[wl.ds(r * 64, 64), wl.ds(0, 64)], acc)


@gemm.example
def _small(make):
    a, b = make.randn((128, 320), wl.f16), make.randn((64, 320), wl.f16)
    return gemm.launch(1).call(a, b, make.zeros((128, 64), wl.f32), STEPS=5, S=2)
