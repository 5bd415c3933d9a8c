"""Normalisation of rows, one block a row. Arithmetic is f32; the result is cast once, at the end.

`WHOLE` rows are one tile of BH = row length and are read once; longer rows are walked in pieces
of BH, once for the statistics and once more for the result.
"""

import warploom as wl


@wl.function
def inverse_root(mean_square, eps):
    """1/√(mean_square + eps), correctly rounded twice, so that all devices agree."""
    return 1.0 / wl.sqrt(mean_square + eps)


@wl.kernel
def rms_norm(
    x: wl.Tensor, weight: wl.Tensor, out: wl.Tensor, eps: wl.f32, BH: wl.const, WHOLE: wl.const
):
    """out[t] = (x[t] · 1/√(Σ x[t]²/H + eps)) · weight."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, n = wl.program_id(0), x.shape[1]
    if WHOLE:
        v = wl.load(x[t, wl.ds(0, BH)]).cast(wl.f32)
        scale = inverse_root(wl.sum(v * v, 0) / n.cast(wl.f32), eps)
        y = v * scale * wl.load(weight[wl.ds(0, BH)]).cast(wl.f32)
        wl.store(out[t, wl.ds(0, BH)], y.cast(out.dtype))
    else:
        squares = wl.zeros((BH,), wl.f32)
        for h in wl.range(0, n, BH):
            v = wl.load(x[t, wl.ds(h, BH)]).cast(wl.f32)
            squares = squares + v * v
        scale = inverse_root(wl.sum(squares, 0) / n.cast(wl.f32), eps)
        for h in wl.range(0, n, BH):
            v = wl.load(x[t, wl.ds(h, BH)]).cast(wl.f32)
            y = v * scale * wl.load(weight[wl.ds(h, BH)]).cast(wl.f32)
            wl.store(out[t, wl.ds(h, BH)], y.cast(out.dtype))


@wl.kernel
def layer_norm(
    x: wl.Tensor,
    weight: wl.Tensor,
    bias: wl.Tensor,
    out: wl.Tensor,
    eps: wl.f32,
    BH: wl.const,
    WHOLE: wl.const,
):
    """out[t] = (d · 1/√(Σ d²/H + eps)) · weight + bias with d = x[t] − Σ x[t]/H."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, n = wl.program_id(0), x.shape[1]
    count = n.cast(wl.f32)
    if WHOLE:
        v = wl.load(x[t, wl.ds(0, BH)]).cast(wl.f32)
        d = v - wl.sum(v, 0) / count
        scale = inverse_root(wl.sum(d * d, 0) / count, eps)
        y = d * scale * wl.load(weight[wl.ds(0, BH)]).cast(wl.f32)
        y = y + wl.load(bias[wl.ds(0, BH)]).cast(wl.f32)
        wl.store(out[t, wl.ds(0, BH)], y.cast(out.dtype))
    else:
        total = wl.zeros((BH,), wl.f32)
        for h in wl.range(0, n, BH):
            total = total + wl.load(x[t, wl.ds(h, BH)]).cast(wl.f32)
        mean = wl.sum(total, 0) / count
        squares = wl.zeros((BH,), wl.f32)
        for h in wl.range(0, n, BH):
            d = wl.load(x[t, wl.ds(h, BH)]).cast(wl.f32) - mean
            # Columns past the end were read as zero: their distance from the mean must not count.
            squares = squares + wl.where(wl.arange(BH) + h < n, d * d, 0.0)
        scale = inverse_root(wl.sum(squares, 0) / count, eps)
        for h in wl.range(0, n, BH):
            d = wl.load(x[t, wl.ds(h, BH)]).cast(wl.f32) - mean
            y = d * scale * wl.load(weight[wl.ds(h, BH)]).cast(wl.f32)
            y = y + wl.load(bias[wl.ds(h, BH)]).cast(wl.f32)
            wl.store(out[t, wl.ds(h, BH)], y.cast(out.dtype))


@rms_norm.example
def _rms(make):
    x, weight = make.randn((3, 96), wl.bf16), make.randn((96,), wl.f32)
    return rms_norm.launch(3).call(x, weight, make.empty((3, 96), wl.bf16), 1e-5, BH=96, WHOLE=True)


@layer_norm.example
def _layer(make):
    x, weight, bias = (
        make.randn((3, 80), wl.f32),
        make.randn((80,), wl.f32),
        make.randn((80,), wl.f32),
    )
    return layer_norm.launch(3).call(
        x, weight, bias, make.empty((3, 80), wl.f32), 1e-5, BH=32, WHOLE=False
    )
