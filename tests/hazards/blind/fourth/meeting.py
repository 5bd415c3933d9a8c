"""One role of each block writes and reads, another one meets the blocks of the launch for it."""

import warploom as wl


@wl.kernel
def meeting(x: wl.Tensor, work: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    stored, met = wl.barrier(), wl.barrier()
    with wl.roles():
        with wl.role("work", warps=4):
            part = wl.load(x[here, wl.ds(0, 128)])
            for i in wl.range(0, ROUNDS):
                wl.store(work[i % 2, here, wl.ds(0, 128)], part)
                stored.arrive()
                met.wait(i % 2)
                part = 0.5 * part + wl.load(work[i % 2, (here + 1) % blocks, wl.ds(0, 128)])
            wl.store(y[here, wl.ds(0, 128)], part)
        with wl.role("meet", warps=1):
            for i in wl.range(0, ROUNDS):
                stored.wait(i % 2)
                wl.grid_sync()
                met.arrive()


@meeting.example
def small(make):
    x, work, y = make.randn((3, 128)), make.zeros((2, 3, 128)), make.zeros((3, 128))
    return meeting.launch(3, cooperative=True).call(x, work, y, ROUNDS=4)


def expected(x, work, y, ROUNDS):
    for _ in range(ROUNDS):
        x = 0.5 * x + x[[1, 2, 0]]
    return {"y": x}
