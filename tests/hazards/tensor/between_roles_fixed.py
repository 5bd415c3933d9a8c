"""Right: beside it, one role reads what another writes, and nothing orders them."""

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, w: wl.Tensor, y: wl.Tensor):
    done = wl.named_barrier(256)
    with wl.roles():
        with wl.role("first", warps=4):
            t = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
            wl.store(w[wl.ds(0, 64), wl.ds(0, 64)], t + t)
            done.arrive()
        with wl.role("second", warps=4):
            done.sync()
            t = wl.load(w[wl.ds(0, 64), wl.ds(0, 64)])
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], t + t)


@passed.example
def _small(make):
    x, w, y = make.randn((64, 64)), make.zeros((64, 64)), make.zeros((64, 64))
    return passed.launch(1).call(x, w, y)
