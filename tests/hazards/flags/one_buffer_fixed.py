"""Right: beside it, a block overwrites what another still reads: one buffer for all rounds."""

import warploom as wl


@wl.kernel
def rounds(x: wl.Tensor, held: wl.Tensor, count: wl.Tensor, ROUNDS: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    part = wl.load(x[here, wl.ds(0, 64)])
    for i in wl.range(0, ROUNDS):
        wl.store(held[i % 2, here, wl.ds(0, 64)], part)
        wl.signal(count[0], add=1)
        wl.wait(count[0], at_least=(i + 1) * blocks)
        part = wl.load(held[i % 2, (here + 1) % blocks, wl.ds(0, 64)]) + 1
    wl.store(x[here, wl.ds(0, 64)], part)


@rounds.example
def _small(make):
    x, held = make.integers(0, 9, (3, 64)), make.zeros((2, 3, 64), wl.i32)
    launcher = rounds.launch(3, cooperative=True)
    return launcher.call(x, held, make.zeros((1,), wl.i32), ROUNDS=4)
