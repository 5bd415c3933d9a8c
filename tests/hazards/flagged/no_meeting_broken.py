"""Wrong: a warp sends the next round while others of its block still poll for this one."""

# expect: U107 15 16
# without: sync.barrier 15

import warploom as wl


@wl.kernel
def gathered(x: wl.Tensor, mail: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    here = wl.program_id(0)
    box = wl.flagged(mail, wl.f32)
    part = wl.load(x[here, wl.ds(0, 64)])
    for i in wl.range(0, ROUNDS):
        box[i % 2, here, wl.ds(0, 64)].send(part, i + 1)
        parts = box[i % 2, wl.ds(0, 3), wl.ds(0, 64)].receive(i + 1)
        wl.store(y[i, here, wl.ds(0, 3), wl.ds(0, 64)], parts)
        part = part + 1.0


@gathered.example
def _small(make):
    x, y = make.randn((3, 64)), make.zeros((4, 3, 3, 64))
    launcher = gathered.launch(3, cooperative=True)
    return launcher.call(x, make.zeros((2, 3, 64), wl.i64), y, ROUNDS=4)
