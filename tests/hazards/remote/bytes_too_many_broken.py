"""Wrong: the barrier counts the bytes of one of two rows."""

# expect: M012 18

import warploom as wl


@wl.kernel
def exchange(x: wl.Tensor, y: wl.Tensor):
    """y[block] = x of the other block."""
    here = wl.shared((2, 64), x.dtype, swizzle=0)
    came = wl.barrier()
    block, peer = wl.program_id(0), 1 - wl.cluster_rank()
    with wl.one_thread():
        came.expect(64 * 4)
    mine = wl.load(x[wl.ds(block, 1), wl.ds(0, 64)])
    for row in wl.unroll(2):
        wl.store_async(here.on(peer)[wl.ds(row, 1), :], mine, came)
    came.wait(0)
    wl.store(y[wl.ds(block, 1), wl.ds(0, 64)], here[wl.ds(1, 1), :].load())


@exchange.example
def _small(make):
    return exchange.launch(2, cluster=2).call(make.randn((2, 64)), make.zeros((2, 64), wl.f32))
