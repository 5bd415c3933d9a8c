"""A role's threads bring tiles by cp.async and arrive when they are there; another multiplies."""

import warploom as wl


@wl.kernel
def thread_filled(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, S: wl.const):
    sa, sb = wl.shared((64, 64), a.dtype, slots=S), wl.shared((64, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S, arrivals=64), wl.barrier(S, arrivals=4)
    with wl.roles():
        with wl.role("bring", warps=2):
            for k in wl.range(0, STEPS):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                wl.copy_by_threads(a[wl.ds(0, 64), wl.ds(k * 64, 64)], sa[s])
                wl.copy_by_threads(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb[s])
                wl.threads_arrive(full[s])
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                s = k % S
                full[s].wait(k // S % 2)
                wl.fence_async()
                acc = wl.dot_async(sa[s], sb[s].T, acc).wait()
                empty[s].arrive(per="warp")
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc)


@thread_filled.example
def small(make):
    a, b = make.randn((64, 320), wl.bf16), make.randn((64, 320), wl.bf16)
    return thread_filled.launch(1).call(a, b, make.zeros((64, 64), wl.f32), STEPS=5, S=2)
