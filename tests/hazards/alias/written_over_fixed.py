"""Right: beside it, a tile is read again after another one on the same bytes was written."""

import warploom as wl


@wl.kernel
def halves(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor):
    wide = wl.shared((32, 32), wl.f32)
    narrow = wl.shared((32, 32), wl.f16)
    at = wl.ds(0, 32)
    wide.store(wl.load(x[at, at]))
    narrow.store(wide.load().cast(wl.f16))
    wl.store(z[at, at], narrow.load())
    again = wide.load()
    wl.store(y[at, at], again)


@halves.example
def _small(make):
    x, y, z = make.randn((32, 32)), make.zeros((32, 32)), make.zeros((32, 32), wl.f16)
    return halves.launch(1).call(x, y, z)
