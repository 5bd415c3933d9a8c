"""Wrong: an accumulator is read before its product has retired."""

# expect: M014 16
# without: wgmma.wait_group 15

import warploom as wl


@wl.kernel
def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):
    sa, sb = wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)
    sa.store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
    sb.store(wl.load(b[wl.ds(0, 64), wl.ds(0, 64)]))
    acc = wl.dot_async(sa, sb.T, wl.zeros((64, 64), wl.f32))
    tile = acc.wait()
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], tile + 1)


@product.example
def _small(make):
    a, b = make.randn((64, 64), wl.f16), make.randn((64, 64), wl.f16)
    return product.launch(1).call(a, b, make.zeros((64, 64)))
