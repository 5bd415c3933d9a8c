"""Tiles go round a cluster by bulk copies from shared memory, with an answer for each."""

import warploom as wl


@wl.kernel
def passed_on(x: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    held = wl.shared((128,), wl.f32, swizzle=0)
    box = wl.shared((128,), wl.f32, swizzle=0)
    came, answer = wl.barrier(), wl.barrier()
    size, rank, block = wl.cluster_size(), wl.cluster_rank(), wl.program_id(0)
    ahead, behind = (rank + 1) % size, (rank + size - 1) % size
    total = wl.zeros((128,), wl.f32)
    held.store(wl.load(x[block, wl.ds(0, 128)]))
    for i in wl.range(0, ROUNDS):
        with wl.one_thread():
            came.expect(128 * 4)
            wl.copy_bulk(held, box.on(ahead), came)
        came.wait(i % 2)
        got = box.load()
        total = total + got
        answer.on(behind).arrive()
        answer.wait(i % 2)
        held.store(got)
    wl.store(y[block, wl.ds(0, 128)], total)


@passed_on.example
def small(make):
    return passed_on.launch(3, cluster=3).call(make.randn((3, 128)), make.zeros((3, 128)), ROUNDS=4)
