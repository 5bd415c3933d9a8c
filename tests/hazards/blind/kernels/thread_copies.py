"""Tiles brought by the threads themselves, two steps ahead of their use, and given out turned."""

import warploom as wl


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    ring = wl.shared((64, 64), x.dtype, slots=S)
    for i in wl.unroll(S - 1):
        wl.copy_by_threads(x[wl.ds(i * 64, 64), wl.ds(0, 64)], ring[i])
        wl.threads_commit()
    for i in wl.range(0, STEPS):
        wl.threads_wait(S - 2)
        part = ring[i % S].T.load()
        ahead = i + S - 1
        if ahead < STEPS:
            wl.copy_by_threads(x[wl.ds(ahead * 64, 64), wl.ds(0, 64)], ring[ahead % S])
        wl.threads_commit()
        wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], part)


@turned.example
def small(make):
    x, y = make.randn((384, 64), wl.f32), make.zeros((384, 64), wl.f32)
    return turned.launch(1).call(x, y, STEPS=6, S=3)
