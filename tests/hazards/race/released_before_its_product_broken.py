"""Wrong: an item goes back while the product that reads it is pending."""

# expect: R101 23 16
# without: wgmma.wait_group 24

import warploom as wl


@wl.kernel
def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k * 64, 64)], sa)
                    wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb)
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, STEPS):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa, sb.T, acc)
                item.release(after=acc)
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


@product.example
def _small(make):
    a, b = make.randn((64, 320), wl.f16), make.randn((64, 320), wl.f16)
    return product.launch(1).call(a, b, make.zeros((64, 64)), STEPS=5)
