"""A pipe of tiles, read by two warpgroups: one multiplies, one adds the tiles up."""

import warploom as wl


@wl.kernel
def piped(x: wl.Tensor, w: wl.Tensor, y: wl.Tensor, z: wl.Tensor, STEPS: wl.const, S: wl.const):
    ring = wl.pipe(S, slots=[wl.shared((64, 64), x.dtype), wl.shared((64, 64), w.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                with ring.put() as (tile, weight):
                    wl.copy_async(x[wl.ds(0, 64), wl.ds(i * 64, 64)], tile)
                    wl.copy_async(w[wl.ds(0, 64), wl.ds(i * 64, 64)], weight)
        with wl.role("multiply", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, STEPS):
                item = ring.take()
                tile, weight = item
                acc = wl.dot_async(tile, weight.T, acc)
                item.release(after=acc)
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())
        with wl.role("add", warps=4):
            total = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, STEPS):
                with ring.get() as (tile, _weight):
                    total = total + tile.load().cast(wl.f32)
            wl.store(z[wl.ds(0, 64), wl.ds(0, 64)], total)


@piped.example
def small(make):
    x, w = make.randn((64, 320), wl.f16), make.randn((64, 320), wl.f16)
    y, z = make.zeros((64, 64), wl.f32), make.zeros((64, 64), wl.f32)
    return piped.launch(1).call(x, w, y, z, STEPS=5, S=2)
