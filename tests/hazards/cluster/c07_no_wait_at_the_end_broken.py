"""Wrong: a block may have ended when a peer arrives at its barrier."""

# expect: M031 14
# without: cluster.sync 17

import warploom as wl


@wl.kernel
def sends(y: wl.Tensor):
    done = wl.barrier()
    if wl.cluster_rank() == 0:
        for rank in wl.unroll(1, wl.cluster_size()):
            done.on(rank).arrive()
    elif wl.cluster_rank() > 1:
        done.wait(0)
    wl.store(y[wl.program_id(0), wl.ds(0, 1)], wl.full((1,), 1, wl.i32))


@sends.example
def _small(make):
    return sends.launch(4, cluster=4).call(make.zeros((4, 1), wl.i32))
