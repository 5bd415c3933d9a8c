"""Blocks leave parts in a workspace; block 0 adds them up and tells the others to go on."""

import warploom as wl


@wl.kernel
def collected(x: wl.Tensor, work: wl.Tensor, y: wl.Tensor, flags: wl.Tensor, ROUNDS: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    for i in wl.range(0, ROUNDS):
        part = wl.load(x[i, here, wl.ds(0, 128)])
        wl.store(work[here, wl.ds(0, 128)], part * part)
        wl.signal(flags[0], add=1)
        if here == 0:
            wl.wait(flags[0], at_least=(i + 1) * blocks)
            total = wl.zeros((128,), wl.f32)
            for b in wl.range(0, blocks):
                total = total + wl.load(work[b, wl.ds(0, 128)])
            wl.store(y[i, wl.ds(0, 128)], total)
            wl.signal(flags[1], value=i + 1)
        wl.wait(flags[1], at_least=i + 1)


@collected.example
def small(make):
    x, work = make.randn((3, 4, 128)), make.zeros((4, 128))
    y, flags = make.zeros((3, 128)), make.zeros((2,), wl.i32)
    return collected.launch(4, cooperative=True).call(x, work, y, flags, ROUNDS=3)
