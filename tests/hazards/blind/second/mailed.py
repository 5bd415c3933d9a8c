"""Blocks exchange a value and a place by flagged data, and block 0 tells them where to stop."""

import warploom as wl


@wl.kernel
def mailed(x: wl.Tensor, mail: wl.Tensor, last: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    box, meeting = wl.flagged(mail, (wl.f32, wl.i32)), wl.named_barrier(128)
    part = wl.load(x[here, wl.ds(0, 64)])
    if here == 0:
        wl.store(last[wl.ds(0, 64)], part + 1.0)
    for i in wl.range(0, ROUNDS):
        box[i % 2, here, wl.ds(0, 64)].send((part, here), i + 1)
        total = wl.zeros((64,), wl.f32)
        for b in wl.range(0, blocks):
            value, place = box[i % 2, b, wl.ds(0, 64)].receive(i + 1)
            total = total + value * place.cast(wl.f32)
        part = total - wl.sum(total, axis=0)
        meeting.sync()
    wl.grid_sync()
    wl.store(y[here, wl.ds(0, 64)], part + wl.load(last[wl.ds(0, 64)]))


@mailed.example
def small(make):
    x, mail = make.randn((3, 64)), make.zeros((2, 3, 64, 2), wl.i64)
    last, y = make.zeros((64,)), make.zeros((3, 64))
    return mailed.launch(3, cooperative=True).call(x, mail, last, y, ROUNDS=4)
