"""Wrong: an ordinary store is announced by an asynchronous one, which orders nothing but itself."""

# expect: R101 17 20

import warploom as wl


@wl.kernel
def exchange(x: wl.Tensor, y: wl.Tensor):
    """y[block] = x of the other block."""
    here, flag = wl.shared((1, 64), x.dtype), wl.shared((1, 1), wl.i32)
    came = wl.barrier()
    block, peer = wl.program_id(0), 1 - wl.cluster_rank()
    with wl.one_thread():
        came.expect(4)
    mine = wl.load(x[wl.ds(block, 1), wl.ds(0, 64)])
    here.on(peer).store(mine)
    wl.store_async(flag.on(peer), wl.full((1, 1), 1, wl.i32), came)
    came.wait(0)
    wl.store(y[wl.ds(block, 1), wl.ds(0, 64)], here.load())


@exchange.example
def _small(make):
    return exchange.launch(2, cluster=2).call(make.randn((2, 64)), make.zeros((2, 64), wl.f32))
