"""Wrong: the copy waits for the phase before."""

# expect: R101 24 16

import warploom as wl


@wl.kernel
def written_out(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile = wl.shared((64, 64), x.dtype)
    filled, emptied = wl.barrier(1, arrivals=4), wl.barrier(1, arrivals=1)
    with wl.roles():
        with wl.role("fill", warps=4):
            for i in wl.range(0, STEPS):
                emptied.wait(i % 2 ^ 1)
                tile.store(wl.load(x[wl.ds(i * 64, 64), wl.ds(0, 64)]))
                wl.fence_async()
                with wl.one_thread(per="warp"):
                    filled.arrive()
        with wl.role("out", warps=1):
            for i in wl.range(0, STEPS):
                filled.wait(i % 2 ^ 1)
                with wl.one_thread():
                    wl.copy_async(tile, y[wl.ds(i * 64, 64), wl.ds(0, 64)])
                    wl.copy_commit()
                    wl.copy_wait(reads=True)
                    emptied.arrive()
            with wl.one_thread():
                wl.copy_wait()


@written_out.example
def _small(make):
    x, y = make.randn((256, 64), wl.bf16), make.zeros((256, 64), wl.bf16)
    return written_out.launch(1).call(x, y, STEPS=4)
