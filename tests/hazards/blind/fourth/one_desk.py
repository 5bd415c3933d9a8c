"""Two replicas write their tiles by way of one tile in shared memory, which they have in turn; the
launch may begin before the one before it has ended."""

import warploom as wl


@wl.kernel
def one_desk(x: wl.Tensor, y: wl.Tensor, scale: wl.Tensor, TILES: wl.const):
    desk = wl.shared((32, 32), wl.f32, swizzle=0)
    turns = wl.turns(2)
    wl.launch_dependents()
    wl.wait_for_previous()
    by = wl.load(scale[0])
    with wl.roles(), wl.role("write", warps=2, replicas=2) as r:
        for t in wl.range(r, TILES, 2):
            part = wl.load(x[t, wl.ds(0, 32), wl.ds(0, 32)]) * by
            with turns.turn(r):
                desk.store(part)
                with wl.one_thread():
                    wl.copy_async(desk, y[t, wl.ds(0, 32), wl.ds(0, 32)])
                    wl.copy_commit()
                    wl.copy_wait(reads=True)
        with wl.one_thread():
            wl.copy_wait()


@one_desk.example
def small(make):
    x, y = make.randn((6, 32, 32)), make.zeros((6, 32, 32))
    return one_desk.launch(1, pdl=True).call(x, y, make.array([0.5], wl.f32), TILES=6)


def expected(x, y, scale, TILES):
    return {"y": x * scale[0]}
