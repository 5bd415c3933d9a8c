"""Right: one descriptor more than stages: when one is made anew, the copy by it is done."""

import warploom as wl


@wl.kernel
def parts(x: wl.Tensor, y: wl.Tensor, starts: wl.Tensor):
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    ring = wl.pipe(3, slots=[tile])
    count = 4
    made = wl.descriptors(x, tile, count)
    n = starts.shape[0]
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(n):
                # A part of 13 rows: the copy brings zeros behind them.
                start = wl.load(starts[i])
                of_x = made[i % count]
                of_x.make(start, (13, 64))
                # Each is used by one item.
                with ring.put() as t:
                    wl.copy_async(of_x[wl.ds(0, 16), wl.ds(0, 64)], t)
        with wl.role("use", warps=4):
            for i in wl.range(n):
                with ring.get() as t:
                    wl.store(y[i, wl.ds(0, 16), wl.ds(0, 64)], t.load())


@parts.example
def _small(make):
    x, y = make.randn((8192,)), make.zeros((9, 16, 64))
    starts = make.array([0, 4096, 128, 64, 2048, 960, 4, 3000, 64])
    return parts.launch(1).call(x, y, starts)
