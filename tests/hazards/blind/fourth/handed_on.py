"""Tiles go round the blocks of a launch through memory: written by the copy engine, announced by a
flag, and read by the copy engine of the next block."""

import warploom as wl


@wl.kernel
def handed_on(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    sent = wl.shared((32, 32), wl.f32, swizzle=0)
    got = wl.shared((32, 32), wl.f32, swizzle=0)
    landed = wl.barrier()
    here, blocks = wl.program_id(0), wl.num_programs(0)
    before = (here + blocks - 1) % blocks
    tile = wl.load(x[here, wl.ds(0, 32), wl.ds(0, 32)])
    total = tile
    for i in wl.range(0, ROUNDS):
        sent.store(tile)
        with wl.one_thread():
            wl.copy_async(sent, held[i, here, wl.ds(0, 32), wl.ds(0, 32)])
            wl.copy_commit()
            wl.copy_wait()
            wl.signal(flags[here], i + 1)
        wl.wait(flags[before], at_least=i + 1)
        wl.fence_async(space="global")
        with wl.one_thread():
            landed.expect(32 * 32 * 4)
            wl.copy_async(held[i, before, wl.ds(0, 32), wl.ds(0, 32)], got, barrier=landed)
        landed.wait(i % 2)
        tile = got.load()
        total = total + tile
    wl.store(y[here, wl.ds(0, 32), wl.ds(0, 32)], total)


@handed_on.example
def small(make):
    x, held, y = make.randn((3, 32, 32)), make.zeros((4, 3, 32, 32)), make.zeros((3, 32, 32))
    flags = make.zeros((3,), wl.i32)
    return handed_on.launch(3, cooperative=True).call(x, held, flags, y, ROUNDS=4)


def expected(x, held, flags, y, ROUNDS):
    return {"y": sum(x[[(b - i) % 3 for b in range(3)]] for i in range(ROUNDS + 1))}
