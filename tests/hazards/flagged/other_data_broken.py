"""Wrong: flagged data brings itself, and nothing else that its sender has written."""

# expect: R102 12 16

import warploom as wl


@wl.kernel
def handed(x: wl.Tensor, held: wl.Tensor, mail: wl.Tensor, y: wl.Tensor):
    box = wl.flagged(mail, wl.i32)
    if wl.program_id(0) == 0:
        wl.store(held[wl.ds(0, 64)], wl.load(x[wl.ds(0, 64)]))
        box[0].send(64, 1)
    else:
        count = box[0].receive(1)
        wl.store(y[wl.ds(0, 64)], wl.load(held[wl.ds(0, 64)]) * 2.0)
        wl.store(y[64], count.cast(wl.f32))


@handed.example
def _small(make):
    x, held, y = make.randn((64,)), make.zeros((64,)), make.zeros((65,))
    launcher = handed.launch(2, cooperative=True)
    return launcher.call(x, held, make.zeros((1,), wl.i64), y)
