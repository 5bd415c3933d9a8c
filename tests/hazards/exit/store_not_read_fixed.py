"""Right: beside it, a block ends while a copy reads its shared memory."""

import warploom as wl


@wl.kernel
def doubled(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile = wl.shared((32, 64), x.dtype)
    for i in wl.range(0, STEPS):
        with wl.one_thread():
            wl.copy_wait(reads=True)
        part = wl.load(x[wl.ds(i * 32, 32), wl.ds(0, 64)])
        tile.store(part + part)
        with wl.one_thread():
            wl.copy_async(tile, y[wl.ds(i * 32, 32), wl.ds(0, 64)])
            wl.copy_commit()
    with wl.one_thread():
        wl.copy_wait()


@doubled.example
def _small(make):
    x, y = make.randn((128, 64), wl.bf16), make.zeros((128, 64), wl.bf16)
    return doubled.launch(1).call(x, y, STEPS=4)
