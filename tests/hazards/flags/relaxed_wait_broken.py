"""Wrong: a relaxed wait says that data is there, and does not bring it."""

# expect: R102 13 18

import warploom as wl


@wl.kernel
def handed(x: wl.Tensor, held: wl.Tensor, y: wl.Tensor, flag: wl.Tensor, ROUNDS: wl.const):
    if wl.program_id(0) == 0:
        for i in wl.range(0, ROUNDS):
            wl.wait(flag[1], at_least=i)
            wl.store(held[wl.ds(0, 64)], wl.load(x[i, wl.ds(0, 64)]))
            wl.signal(flag[0], i + 1)
    else:
        for i in wl.range(0, ROUNDS):
            wl.wait(flag[0], at_least=i + 1, order="relaxed")
            part = wl.load(held[wl.ds(0, 64)])
            wl.signal(flag[1], i + 1)
            wl.store(y[i, wl.ds(0, 64)], part)


@handed.example
def _small(make):
    x, held, y = make.randn((4, 64)), make.zeros((64,)), make.zeros((4, 64))
    launcher = handed.launch(2, cooperative=True)
    return launcher.call(x, held, y, make.zeros((2,), wl.i32), ROUNDS=4)
