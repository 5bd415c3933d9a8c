"""A ring of two operands between a copying warp and two warpgroups, over several tiles of C."""

import warploom as wl


@wl.kernel
def ring_gemm(
    a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, TILES: wl.const, STEPS: wl.const, S: wl.const
):
    sa = wl.shared((128, 64), a.dtype, slots=S)
    sb = wl.shared((64, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S, arrivals=2)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(0, TILES):
                for k in wl.range(0, STEPS):
                    n = t * STEPS + k
                    s = n % S
                    empty[s].wait(n // S % 2 ^ 1)
                    with wl.one_thread():
                        full[s].expect((128 + 64) * 64 * 2)
                        rows = a[wl.ds(t * 128, 128), wl.ds(k * 64, 64)]
                        wl.copy_async(rows, sa[s], barrier=full[s])
                        wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb[s], barrier=full[s])
        with wl.role("math", warps=4, replicas=2) as r:
            for t in wl.range(0, TILES):
                acc = wl.zeros((64, 64), wl.f32)
                for k in wl.range(0, STEPS):
                    n = t * STEPS + k
                    s = n % S
                    full[s].wait(n // S % 2)
                    pending = wl.dot_async(sa[s][wl.ds(r * 64, 64), :], sb[s].T, acc)
                    acc = pending.wait()
                    with wl.one_thread():
                        empty[s].arrive()
                wl.store(c[wl.ds(t * 128 + r * 64, 64), wl.ds(0, 64)], acc)


@ring_gemm.example
def small(make):
    a, b = make.randn((384, 192), wl.f16), make.randn((64, 192), wl.f16)
    c = make.zeros((384, 64), wl.f32)
    return ring_gemm.launch(1).call(a, b, c, TILES=3, STEPS=3, S=2)
