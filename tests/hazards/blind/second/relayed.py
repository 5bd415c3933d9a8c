"""Registers go over two channels to a role that leaves its results in memory for a third role."""

import warploom as wl


@wl.kernel
def relayed(x: wl.Tensor, kept: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    left, right = wl.channel((64,), x.dtype), wl.channel((64,), x.dtype)
    done = wl.channel((64,), wl.i32)
    with wl.roles():
        with wl.role("split", warps=2):
            for i in wl.range(0, STEPS):
                part = wl.load(x[i, wl.ds(0, 64)])
                left.send(wl.maximum(part, 0.0))
                right.send(wl.minimum(part, 0.0))
        with wl.role("join", warps=2):
            for i in wl.range(0, STEPS):
                high = left.receive()
                low = right.receive()
                wl.store(kept[i, wl.ds(0, 64)], high - low)
                done.send(wl.full((64,), 1, wl.i32))
        with wl.role("sum", warps=4):
            total = wl.zeros((64,), wl.f32)
            for i in wl.range(0, STEPS):
                got = done.receive()
                total = total + wl.load(kept[i, wl.ds(0, 64)]) * got.cast(wl.f32)
            wl.store(y[wl.ds(0, 64)], total)


@relayed.example
def small(make):
    x, kept, y = make.randn((6, 64)), make.zeros((6, 64)), make.zeros((64,))
    return relayed.launch(1).call(x, kept, y, STEPS=6)
