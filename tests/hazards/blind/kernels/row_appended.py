"""A new row is appended to a cache in global memory, then the copy engine reads all of it."""

import warploom as wl


@wl.kernel
def row_appended(new: wl.Tensor, cache: wl.Tensor, y: wl.Tensor, ROWS: wl.const):
    rows = wl.shared((ROWS * 64,), wl.f32, swizzle=0)
    written, landed = wl.barrier(arrivals=2), wl.barrier()
    with wl.roles():
        with wl.role("append", warps=2):
            wl.store(cache[0, wl.ds((ROWS - 1) * 64, 64)], wl.load(new[wl.ds(0, 64)]))
            wl.fence_async(space="global")
            with wl.one_thread(per="warp"):
                written.arrive()
        with wl.role("read", warps=4):
            written.wait(0)
            with wl.one_thread():
                landed.expect(ROWS * 64 * 4)
                wl.copy_bulk(cache[0, wl.ds(0, ROWS * 64)], rows, barrier=landed)
            landed.wait(0)
            wl.store(y[wl.ds(0, ROWS * 64)], rows.load())


@row_appended.example
def small(make):
    new, cache = make.randn((64,)), make.randn((1, 512))
    return row_appended.launch(1).call(new, cache, make.zeros((512,)), ROWS=8)
