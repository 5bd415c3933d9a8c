"""Right: two roles add to one tile of a tensor in turns."""

import warploom as wl


@wl.kernel
def added(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    turns = wl.turns(2)
    with wl.roles():
        with wl.role("add", warps=4, replicas=2) as r:
            for i in wl.range(0, STEPS):
                part = wl.load(x[wl.ds((i * 2 + r) * 64, 64), wl.ds(0, 64)])
                with turns.turn(r):
                    sum = wl.load(y[wl.ds(0, 64), wl.ds(0, 64)]) + part
                    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], sum)


@added.example
def _small(make):
    return added.launch(1).call(make.randn((256, 64)), make.zeros((64, 64)), STEPS=2)
