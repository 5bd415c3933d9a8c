"""Threads of two warps bring tiles by cp.async and tell of each when the next one is under way."""

import warploom as wl


@wl.kernel
def told_later(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    ring = wl.shared((32, 64), x.dtype, slots=S)
    full, free = wl.barrier(S, arrivals=2), wl.barrier(S)
    with wl.roles():
        with wl.role("bring", warps=2):
            for k in wl.range(0, STEPS + 1):
                if k < STEPS:
                    s = k % S
                    free[s].wait(k // S % 2 ^ 1)
                    wl.copy_by_threads(x[k, wl.ds(0, 32), wl.ds(0, 64)], ring[s])
                wl.threads_commit()
                if k > 0:
                    wl.threads_wait(1)
                    full[(k - 1) % S].arrive(per="warp")
        with wl.role("add", warps=4):
            total = wl.zeros((32, 64), wl.f32)
            for k in wl.range(0, STEPS):
                full[k % S].wait(k // S % 2)
                total = total + ring[k % S].load()
                free[k % S].arrive()
            wl.store(y[wl.ds(0, 32), wl.ds(0, 64)], total)


@told_later.example
def small(make):
    x, y = make.randn((7, 32, 64)), make.zeros((32, 64))
    return told_later.launch(1).call(x, y, STEPS=7, S=3)


def expected(x, y, **_):
    return {"y": x.sum(0)}
