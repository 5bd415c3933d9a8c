"""The largest elements of rows: blocks of a cluster push theirs to rank 0, which takes the largest
of those."""

import warploom as wl


@wl.kernel
def top(x: wl.Tensor, values: wl.Tensor, K: wl.const = 3, BN: wl.const = 40):
    SIZE, rank = wl.cluster_size(), wl.cluster_rank()
    numbers = wl.shared((SIZE * K, 1), wl.f32, swizzle=0)
    came = wl.barrier()
    t, here = wl.program_id(0) // SIZE, rank * BN
    if rank == 0:
        with wl.one_thread():
            came.expect(SIZE * K * 4)
    v = wl.load(x[t, wl.ds(here, BN)])[:, None]
    for i in wl.range(K):
        best = wl.max(v, 0, keepdims=True)
        wl.store_async(numbers.on(0)[wl.ds(rank * K + i, 1), :], best, came)
        v = wl.where(v == best, -1e9, v)
    if rank == 0:
        came.wait(0)
        sent = numbers.load()
        for i in wl.range(K):
            best = wl.max(sent, 0)
            wl.store(values[t, wl.ds(i, 1)], best)
            sent = wl.where(sent == best[None, :], -1e9, sent)


@top.example
def _small(make):
    return top.launch(8, cluster=4).call(make.randn((2, 160)), make.empty((2, 3), wl.f32))
