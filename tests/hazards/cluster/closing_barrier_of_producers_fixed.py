"""Right: beside it, only the producers wait at the end. Who reaches peers waits for them too."""

import warploom as wl


@wl.kernel
def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, S: wl.const):
    sa, sb = wl.shared((64, 64), a.dtype, slots=S), wl.shared((32, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S, arrivals=4 * wl.cluster_size())
    rank = wl.cluster_rank()
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1] // 64):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect((64 + 32) * 64 * 2)
                    part = a[wl.ds(rank * 32, 32), wl.ds(k * 64, 64)]
                    where = sa[s][wl.ds(rank * 32, 32), :]
                    everyone = wl.cluster_mask(0)
                    wl.copy_async(part, where, barrier=full[s], multicast=everyone)
                    own = b[wl.ds(rank * 32, 32), wl.ds(k * 64, 64)]
                    wl.copy_async(own, sb[s], barrier=full[s])
            wl.cluster_sync()
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 32), wl.f32)
            for k in wl.range(0, a.shape[1] // 64):
                s = k % S
                full[s].wait(k // S % 2)
                acc = wl.dot_async(sa[s], sb[s].T, acc).wait()
                with wl.one_thread(per="warp"):
                    for peer in wl.unroll(2):
                        empty[s].on(peer).arrive()
            wl.store(c[wl.ds(0, 64), wl.ds(rank * 32, 32)], acc)
            wl.cluster_sync()


@product.example
def _small(make):
    a, b = make.randn((64, 320), wl.f16), make.randn((64, 320), wl.f16)
    launcher = product.launch(2, cluster=2)
    return launcher.call(a, b, make.zeros((64, 64), wl.f32), S=2)
