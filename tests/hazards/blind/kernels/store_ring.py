"""Results go through a ring to a warp that lets the copy engine store them, two at a time."""

import warploom as wl


@wl.kernel
def doubled(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    tiles = wl.shared((64, 64), x.dtype, slots=S)
    filled, emptied = wl.barrier(S, arrivals=4), wl.barrier(S)
    with wl.roles():
        with wl.role("fill", warps=4):
            for i in wl.range(0, STEPS):
                s = i % S
                part = wl.load(x[wl.ds(i * 64, 64), wl.ds(0, 64)])
                emptied[s].wait(i // S % 2 ^ 1)
                tiles[s].store(part + part)
                wl.fence_async()
                with wl.one_thread(per="warp"):
                    filled[s].arrive()
        with wl.role("out", warps=1):
            for i in wl.range(0, STEPS):
                s = i % S
                filled[s].wait(i // S % 2)
                with wl.one_thread():
                    wl.copy_async(tiles[s], y[wl.ds(i * 64, 64), wl.ds(0, 64)])
                    wl.copy_commit()
                    wl.copy_wait(1, reads=True)
                    if i > 0:
                        emptied[(i - 1) % S].arrive()
            with wl.one_thread():
                wl.copy_wait()


@doubled.example
def small(make):
    x, y = make.randn((448, 64), wl.f32), make.zeros((448, 64), wl.f32)
    return doubled.launch(1).call(x, y, STEPS=7, S=3)
