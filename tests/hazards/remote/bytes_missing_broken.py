"""Wrong: the barrier waits for twice the bytes that come."""

# expect: D001 17

import warploom as wl


@wl.kernel
def exchange(x: wl.Tensor, y: wl.Tensor):
    """y[block] = x of the other block."""
    here = wl.shared((1, 64), x.dtype)
    came = wl.barrier()
    block, peer = wl.program_id(0), 1 - wl.cluster_rank()
    with wl.one_thread():
        came.expect(2 * 64 * 4)
    wl.store_async(here.on(peer), wl.load(x[wl.ds(block, 1), wl.ds(0, 64)]), came)
    came.wait(0)
    wl.store(y[wl.ds(block, 1), wl.ds(0, 64)], here.load())


@exchange.example
def _small(make):
    return exchange.launch(2, cluster=2).call(make.randn((2, 64)), make.zeros((2, 64), wl.f32))
