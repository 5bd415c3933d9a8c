"""Right: beside it, flagged data brings itself, and nothing else that its sender has written: a
flag does."""

import warploom as wl


@wl.kernel
def handed(x: wl.Tensor, held: wl.Tensor, flag: wl.Tensor, y: wl.Tensor):
    if wl.program_id(0) == 0:
        wl.store(held[wl.ds(0, 64)], wl.load(x[wl.ds(0, 64)]))
        wl.signal(flag[0], 64)
    else:
        wl.wait(flag[0], at_least=64)
        wl.store(y[wl.ds(0, 64)], wl.load(held[wl.ds(0, 64)]) * 2.0)
        wl.store(y[64], 64.0)


@handed.example
def _small(make):
    x, held, y = make.randn((64,)), make.zeros((64,)), make.zeros((65,))
    launcher = handed.launch(2, cooperative=True)
    return launcher.call(x, held, make.zeros((1,), wl.i32), y)
