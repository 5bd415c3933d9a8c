"""Two blocks of a cluster need the same rows of A: each brings half of them to both."""

import warploom as wl


@wl.kernel
def shared_rows(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, S: wl.const):
    sa, sb = wl.shared((64, 64), a.dtype, slots=S), wl.shared((64, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S, arrivals=2)
    rank, both = wl.cluster_rank(), wl.cluster_mask(0)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect((64 + 64) * 64 * 2)
                    mine, place = a[wl.ds(rank * 32, 32), wl.ds(k * 64, 64)], wl.ds(rank * 32, 32)
                    wl.copy_async(mine, sa[s][place, :], barrier=full[s], multicast=both)
                    own = b[wl.ds(rank * 64, 64), wl.ds(k * 64, 64)]
                    wl.copy_async(own, sb[s], barrier=full[s])
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                s = k % S
                full[s].wait(k // S % 2)
                acc = wl.dot_async(sa[s], sb[s].T, acc).wait()
                with wl.one_thread():
                    for peer in wl.unroll(2):
                        empty[s].on(peer).arrive()
            wl.store(c[wl.ds(0, 64), wl.ds(rank * 64, 64)], acc)


@shared_rows.example
def small(make):
    a, b = make.randn((64, 320), wl.bf16), make.randn((128, 320), wl.bf16)
    c = make.zeros((64, 128), wl.f32)
    return shared_rows.launch(2, cluster=2).call(a, b, c, STEPS=5, S=2)
