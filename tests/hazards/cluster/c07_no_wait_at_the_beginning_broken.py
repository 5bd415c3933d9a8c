"""Wrong: a block arrives at a barrier of a peer that may not have been made yet."""

# expect: U104 12
# without: cluster.sync 11

import warploom as wl


@wl.kernel
def around(y: wl.Tensor):
    told = wl.barrier()
    told.on((wl.cluster_rank() + 1) % wl.cluster_size()).arrive()
    told.wait(0)
    wl.store(y[wl.program_id(0), wl.ds(0, 1)], wl.full((1,), 1, wl.i32))


@around.example
def _small(make):
    return around.launch(4, cluster=4).call(make.zeros((4, 1), wl.i32))
