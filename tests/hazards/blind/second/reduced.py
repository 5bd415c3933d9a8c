"""Blocks add their tiles to one window by the copy engine, then all read the sum; the tile that is
sent lies on the one that came."""

import warploom as wl


@wl.kernel
def reduced(x: wl.Tensor, total: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile, landed = wl.shared((32, 64), x.dtype), wl.barrier()
    sent = wl.shared((32, 64), wl.f32, alias=tile)
    here = wl.program_id(0)
    for i in wl.range(0, STEPS):
        with wl.one_thread():
            landed.expect(32 * 64 * 4)
            wl.copy_async(x[here, i, wl.ds(0, 32), wl.ds(0, 64)], tile, barrier=landed)
        landed.wait(i % 2)
        part = tile.load()
        sent.store(part * part)
        with wl.one_thread():
            wl.copy_async(sent, total[wl.ds(0, 32), wl.ds(0, 64)], reduce="add")
            wl.copy_commit()
            wl.copy_wait(reads=True)
    with wl.one_thread():
        wl.copy_wait()
    wl.grid_sync()
    wl.fence_async(space="global")
    wl.store(y[here, wl.ds(0, 32), wl.ds(0, 64)], wl.load(total[wl.ds(0, 32), wl.ds(0, 64)]))


@reduced.example
def small(make):
    x, total, y = make.randn((3, 4, 32, 64)), make.zeros((32, 64)), make.zeros((3, 32, 64))
    return reduced.launch(3, cooperative=True).call(x, total, y, STEPS=4)
