"""All blocks write one tensor, meet, read another block's part, write the second tensor, meet."""

import warploom as wl


@wl.kernel
def to_and_fro(x: wl.Tensor, a: wl.Tensor, b: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    tile, landed = wl.shared((64,), wl.f32, swizzle=0), wl.barrier()
    here, blocks = wl.program_id(0), wl.num_programs(0)
    after, before = (here + 1) % blocks, (here + blocks - 1) % blocks
    part = wl.load(x[here, wl.ds(0, 64)])
    for i in wl.range(0, ROUNDS):
        wl.store(a[here, wl.ds(0, 64)], part)
        wl.grid_sync()
        wl.fence_async(space="global")
        with wl.one_thread():
            landed.expect(64 * 4)
            wl.copy_bulk(a[after, wl.ds(0, 64)], tile, landed)
        landed.wait(i % 2)
        wl.store(b[here, wl.ds(0, 64)], tile.load() + part)
        wl.grid_sync()
        part = 0.5 * wl.load(b[before, wl.ds(0, 64)])
    wl.store(y[here, wl.ds(0, 64)], part)


@to_and_fro.example
def small(make):
    x, a, b, y = (make.randn((4, 64)) for _ in range(4))
    return to_and_fro.launch(4, cooperative=True).call(x, a, b, y, ROUNDS=3)
