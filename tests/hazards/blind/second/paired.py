"""Two blocks of a cluster write into each other's tiles, round by round, by ordinary stores."""

import warploom as wl


@wl.kernel
def paired(x: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    boxes, came = wl.shared((1, 128), wl.f32, slots=2, swizzle=0), wl.barrier(2)
    block, peer = wl.program_id(0), 1 - wl.cluster_rank()
    mine = wl.load(x[wl.ds(block, 1), wl.ds(0, 128)])
    for i in wl.range(0, ROUNDS):
        s = i % 2
        boxes.on(peer)[s].store(mine)
        came[s].on(peer).arrive()
        came[s].wait(i // 2 % 2)
        mine = 0.5 * (mine + boxes[s].load())
    wl.store(y[wl.ds(block, 1), wl.ds(0, 128)], mine)


@paired.example
def small(make):
    x, y = make.randn((4, 128)), make.zeros((4, 128))
    return paired.launch(4, cluster=2).call(x, y, ROUNDS=5)
