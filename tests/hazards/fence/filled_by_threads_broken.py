"""Wrong: threads fill an item that a product of another role reads, and no fence was made."""

# expect: M016 18 24
# without: sync.fence_async 17

import warploom as wl


@wl.kernel
def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)])
    with wl.roles():
        with wl.role("fill", warps=4):
            for k in wl.range(0, STEPS):
                ta = wl.load(a[wl.ds(0, 64), wl.ds(k * 64, 64)])
                tb = wl.load(b[wl.ds(0, 64), wl.ds(k * 64, 64)])
                with ring.put() as (sa, sb):
                    sa.store(ta)
                    sb.store(tb)
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                with ring.get() as (sa, sb):
                    acc = wl.dot_async(sa, sb.T, acc).wait()
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc)


@product.example
def _small(make):
    a, b = make.randn((64, 192), wl.f16), make.randn((64, 192), wl.f16)
    return product.launch(1).call(a, b, make.zeros((64, 64)), STEPS=3)
