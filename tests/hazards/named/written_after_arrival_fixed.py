"""Right: beside it, the writer arrives before it writes."""

import warploom as wl


@wl.kernel
def handed(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile = wl.shared((64, 64), x.dtype)
    filled, emptied = wl.named_barrier(256), wl.named_barrier(256)
    with wl.roles():
        with wl.role("fill", warps=4):
            for i in wl.range(0, STEPS):
                if i > 0:
                    emptied.sync()
                tile.store(wl.load(x[wl.ds(i * 64, 64), wl.ds(0, 64)]))
                filled.arrive()
        with wl.role("empty", warps=4):
            for i in wl.range(0, STEPS):
                filled.sync()
                part = tile.load()
                if i < STEPS - 1:
                    emptied.arrive()
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], part)


@handed.example
def _small(make):
    x, y = make.randn((256, 64), wl.bf16), make.zeros((256, 64), wl.bf16)
    return handed.launch(1).call(x, y, STEPS=4)
