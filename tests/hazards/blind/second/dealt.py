"""Tiles are dealt to two replicas, one of which takes at a time; the engine writes their sums."""

import warploom as wl


@wl.kernel
def dealt(x: wl.Tensor, y: wl.Tensor, TILES: wl.const, STEPS: wl.const, S: wl.const):
    ring = wl.pipe(S, slots=wl.shared((32, 64), x.dtype), deliver="one")
    out = wl.pipe(2, slots=wl.shared((32, 64), x.dtype), to=wl.copy_engine)
    unit = wl.turns(2)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(0, TILES):
                for k in wl.range(0, STEPS):
                    with ring.put() as tile:
                        wl.copy_async(x[t, k, wl.ds(0, 32), wl.ds(0, 64)], tile)
        with wl.role("add", warps=4, replicas=2) as r:
            for t in wl.range(0, TILES):
                if t % 2 == r:
                    with unit.turn(r):
                        total = wl.zeros((32, 64), wl.f32)
                        for _ in wl.range(0, STEPS):
                            with ring.get() as tile:
                                total = total + tile.load()
                    with out.put() as slot:
                        slot.store(total)
                        wl.copy_async(slot, y[t, wl.ds(0, 32), wl.ds(0, 64)])
                else:
                    ring.skip(STEPS)


@dealt.example
def small(make):
    x, y = make.randn((5, 3, 32, 64)), make.zeros((5, 32, 64))
    return dealt.launch(1).call(x, y, TILES=5, STEPS=3, S=2)
