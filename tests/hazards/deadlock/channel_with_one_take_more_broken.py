"""Wrong: a role takes one tile more from a channel than is given."""

# expect: D001 17

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tiles = wl.channel((64, 64), x.dtype, stages=2)
    with wl.roles():
        with wl.role("give", warps=4):
            for i in wl.range(0, STEPS):
                tiles.send(wl.load(x[wl.ds(i * 64, 64), wl.ds(0, 64)]))
        with wl.role("take", warps=4):
            for i in wl.range(0, STEPS + 1):
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], tiles.receive())


@passed.example
def _small(make):
    return passed.launch(1).call(make.randn((192, 64)), make.zeros((192, 64)), STEPS=3)
