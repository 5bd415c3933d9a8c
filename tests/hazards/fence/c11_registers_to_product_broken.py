"""Wrong: threads store an operand of a product, and no fence stands before it."""

# expect: M016 12 14
# without: sync.fence_async 14

import warploom as wl


@wl.kernel
def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):
    sa, sb = wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)
    sa.store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
    sb.store(wl.load(b[wl.ds(0, 64), wl.ds(0, 64)]))
    acc = wl.dot_async(sa, sb.T, wl.zeros((64, 64), wl.f32)).wait()
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc)


@product.example
def _small(make):
    a, b = make.randn((64, 64), wl.f16), make.randn((64, 64), wl.f16)
    return product.launch(1).call(a, b, make.zeros((64, 64)))
