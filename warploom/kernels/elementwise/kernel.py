"""Sums of equal arrays, element by element: grid axis 0 walks rows, axis 1 pieces of a row."""

import warploom as wl


@wl.kernel
def add(a: wl.Tensor, b: wl.Tensor, out: wl.Tensor, BC: wl.const):
    """out = a + b in f32, cast once."""
    wl.launch_dependents()
    wl.wait_for_previous()
    r, c = wl.program_id(0), wl.program_id(1) * BC
    x = wl.load(a[r, wl.ds(c, BC)]).cast(wl.f32)
    y = wl.load(b[r, wl.ds(c, BC)]).cast(wl.f32)
    wl.store(out[r, wl.ds(c, BC)], (x + y).cast(out.dtype))


@wl.kernel
def add_vectors(a: wl.Tensor, b: wl.Tensor, out: wl.Tensor, BC: wl.const):
    """out = a + b in f32, cast once, for arrays of one axis."""
    wl.launch_dependents()
    wl.wait_for_previous()
    c = wl.program_id(0) * BC
    x = wl.load(a[wl.ds(c, BC)]).cast(wl.f32)
    y = wl.load(b[wl.ds(c, BC)]).cast(wl.f32)
    wl.store(out[wl.ds(c, BC)], (x + y).cast(out.dtype))


@add.example
def _rows(make):
    a, b = make.randn((5, 70), wl.bf16), make.randn((5, 70), wl.f32)
    return add.launch((5, 1)).call(a, b, make.empty((5, 70), wl.f32), BC=128)


@add_vectors.example
def _vector(make):
    a, b = make.randn((300,), wl.f32), make.randn((300,), wl.f32)
    return add_vectors.launch(3).call(a, b, make.empty((300,), wl.f32), BC=128)
