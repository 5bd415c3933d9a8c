"""Right: a wait leaves the later product in flight, and its own is done."""

import warploom as wl


@wl.kernel
def two(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):
    sa, sb = wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)
    sa.store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
    sb.store(wl.load(b[wl.ds(0, 64), wl.ds(0, 64)]))
    none = wl.zeros((64, 64), wl.f32)
    first = wl.dot_async(sa, sb.T, none)
    second = wl.dot_async(sa, sa.T, none)
    tile = first.wait(in_flight=1)
    # One product only is behind the first.
    square = tile * tile
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], square + second.wait())


@two.example
def _small(make):
    a, b = make.randn((64, 64), wl.f16), make.randn((64, 64), wl.f16)
    return two.launch(1).call(a, b, make.zeros((64, 64)))
