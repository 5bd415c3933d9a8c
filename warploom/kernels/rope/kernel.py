"""Rotary position embedding of a few heads of one token a block. Angles are f32, as in the usual
frameworks: position · inverse frequency, rounded once."""

import warploom as wl


@wl.kernel
def rope_half(
    x: wl.Tensor,
    positions: wl.Tensor,
    inv_freq: wl.Tensor,
    out: wl.Tensor,
    BH: wl.const,
    HALF: wl.const,
    REST: wl.const,
):
    """Column i of a head turns with column i + HALF; the REST columns after both are copied."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, h = wl.program_id(0), wl.program_id(1) * BH
    angle = wl.load(positions[t]).cast(wl.f32) * wl.load(inv_freq[wl.ds(0, HALF)])
    cos, sin = wl.cos(angle)[None, :], wl.sin(angle)[None, :]
    # Each thread writes the places that it has read, so `out` may be `x`.
    a = wl.load(x[t, wl.ds(h, BH), wl.ds(0, HALF)]).cast(wl.f32)
    b = wl.load(x[t, wl.ds(h, BH), wl.ds(HALF, HALF)]).cast(wl.f32)
    wl.store(out[t, wl.ds(h, BH), wl.ds(0, HALF)], (a * cos - b * sin).cast(out.dtype))
    wl.store(out[t, wl.ds(h, BH), wl.ds(HALF, HALF)], (b * cos + a * sin).cast(out.dtype))
    if REST > 0:
        rest = wl.load(x[t, wl.ds(h, BH), wl.ds(2 * HALF, REST)]).cast(wl.f32)
        wl.store(out[t, wl.ds(h, BH), wl.ds(2 * HALF, REST)], rest.cast(out.dtype))


@wl.kernel(warps=1)
def rope_interleaved(
    x: wl.Tensor,
    positions: wl.Tensor,
    inv_freq: wl.Tensor,
    out: wl.Tensor,
    BH: wl.const,
    HALF: wl.const,
    REST: wl.const,
):
    """Column 2i of a head turns with column 2i + 1; the REST columns after all pairs are copied.

    Each column is made from its own and its partner's value. One warp a block reads both before
    it writes either, so `out` may be `x`.
    """
    wl.launch_dependents()
    wl.wait_for_previous()
    t, h = wl.program_id(0), wl.program_id(1) * BH
    column = wl.arange(2 * HALF)
    angle = wl.load(positions[t]).cast(wl.f32) * wl.gather(inv_freq, (column // 2,))
    sin = wl.sin(angle)
    cos, sin = wl.cos(angle)[None, :], wl.where(column % 2 == 0, -sin, sin)[None, :]
    own = wl.load(x[t, wl.ds(h, BH), wl.ds(0, 2 * HALF)]).cast(wl.f32)
    partner = wl.gather(x, (t, (wl.arange(BH) + h)[:, None], (column ^ 1)[None, :])).cast(wl.f32)
    turned = own * cos + partner * sin
    wl.store(out[t, wl.ds(h, BH), wl.ds(0, 2 * HALF)], turned.cast(out.dtype))
    if REST > 0:
        rest = wl.load(x[t, wl.ds(h, BH), wl.ds(2 * HALF, REST)]).cast(wl.f32)
        wl.store(out[t, wl.ds(h, BH), wl.ds(2 * HALF, REST)], rest.cast(out.dtype))


@rope_half.example
def _half(make):
    x, out = make.randn((2, 3, 80), wl.bf16), make.empty((2, 3, 80), wl.bf16)
    positions, inv_freq = make.array([5, 131075], wl.i32), make.uniform((20,), 0.0, 1.0, wl.f32)
    return rope_half.launch((2, 1)).call(x, positions, inv_freq, out, BH=4, HALF=20, REST=40)


@rope_interleaved.example
def _interleaved(make):
    x, out = make.randn((2, 3, 64), wl.f32), make.empty((2, 3, 64), wl.f32)
    positions, inv_freq = make.array([0, 77], wl.i32), make.uniform((32,), 0.0, 1.0, wl.f32)
    return rope_interleaved.launch((2, 1)).call(x, positions, inv_freq, out, BH=4, HALF=32, REST=0)
