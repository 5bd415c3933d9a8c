"""Sums leave by a tile that lies on the ring that brought the tiles; the ring is filled for the
next sum when the copy engine has read it."""

import warploom as wl


@wl.kernel
def lent(x: wl.Tensor, y: wl.Tensor, SUMS: wl.const, STEPS: wl.const, S: wl.const):
    slots = wl.shared((32, 32), wl.f32, slots=S, swizzle=0)
    out = wl.shared((32, 32), wl.f32, swizzle=0, alias=slots)
    full, free, left = wl.barrier(S), wl.barrier(S), wl.barrier()
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(0, SUMS):
                if t > 0:
                    left.wait((t - 1) % 2)
                for k in wl.range(0, STEPS):
                    n = t * STEPS + k
                    free[n % S].wait(n // S % 2 ^ 1)
                    with wl.one_thread():
                        full[n % S].expect(32 * 32 * 4)
                        window = x[n, wl.ds(0, 32), wl.ds(0, 32)]
                        wl.copy_async(window, slots[n % S], barrier=full[n % S])
        with wl.role("add", warps=4):
            for t in wl.range(0, SUMS):
                total = wl.zeros((32, 32), wl.f32)
                for k in wl.range(0, STEPS):
                    n = t * STEPS + k
                    full[n % S].wait(n // S % 2)
                    total = total + slots[n % S].load()
                    free[n % S].arrive()
                out.store(total)
                with wl.one_thread():
                    wl.copy_async(out, y[t, wl.ds(0, 32), wl.ds(0, 32)])
                    wl.copy_commit()
                    wl.copy_wait(reads=True)
                    left.arrive()
            with wl.one_thread():
                wl.copy_wait()


@lent.example
def small(make):
    x, y = make.randn((12, 32, 32)), make.zeros((4, 32, 32))
    return lent.launch(1).call(x, y, SUMS=4, STEPS=3, S=2)


def expected(x, y, **_):
    return {"y": x.reshape(4, 3, 32, 32).sum(1)}
