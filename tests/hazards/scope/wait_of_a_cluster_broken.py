"""Wrong: a flag of another cluster is waited for within the own one."""

# expect: R103 14 15
# expect: R102 13 16

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    other = (here + 2) % blocks
    wl.store(held[here, wl.ds(0, 64)], wl.load(x[here, wl.ds(0, 64)]))
    wl.signal(flags[here], 1)
    wl.wait(flags[other], at_least=1, scope="cluster")
    part = wl.load(held[other, wl.ds(0, 64)])
    wl.store(y[here, wl.ds(0, 64)], part)


@passed.example
def _small(make):
    x, held, y = make.randn((4, 64)), make.zeros((4, 64)), make.zeros((4, 64))
    launcher = passed.launch(4, cluster=2, cooperative=True)
    return launcher.call(x, held, make.zeros((4,), wl.i32), y)
