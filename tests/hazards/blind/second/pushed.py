"""All blocks of a cluster push their parts to all, in rounds, into two sets of slots."""

import warploom as wl


@wl.kernel
def pushed(x: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    size, rank = wl.cluster_size(), wl.cluster_rank()
    parts = wl.shared((2 * size, 64), wl.f32, swizzle=0)
    came = wl.barrier(2)
    block = wl.program_id(0)
    mine = wl.load(x[wl.ds(block, 1), wl.ds(0, 64)])
    for i in wl.range(0, ROUNDS):
        s = i % 2
        with wl.one_thread():
            came[s].expect(size * 64 * 4)
        for peer in wl.range(0, size):
            place = parts.on(peer)[wl.ds(s * size + rank, 1), :]
            wl.store_async(place, mine, came[s])
        came[s].wait(i // 2 % 2)
        mine = wl.zeros((1, 64), wl.f32)
        for q in wl.unroll(size):
            mine = mine + 0.5 * parts[wl.ds(s * size + q, 1), :].load()
    wl.store(y[wl.ds(block, 1), wl.ds(0, 64)], mine)


@pushed.example
def small(make):
    return pushed.launch(3, cluster=3).call(make.randn((3, 64)), make.zeros((3, 64)), ROUNDS=5)
