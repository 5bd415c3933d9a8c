"""SiLU times a gate, GELU in both forms, softmax of rows. Arithmetic is f32, cast once, last."""

import math

import warploom as wl

NEGATIVE_INFINITY = -math.inf
ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


@wl.function
def silu(v):
    """v / (1 + e^−v)."""
    return v / (1.0 + wl.exp(-v))


@wl.function
def relu(v):
    """max(v, 0); NaN stays."""
    return wl.maximum(v, 0.0)


@wl.function
def gelu_by_erf(v):
    """v · Φ(v)."""
    return 0.5 * v * (1.0 + wl.erf(v * ROOT_HALF))


@wl.function
def gelu_by_tanh(v):
    """v · Φ(v) with the approximation of Φ by tanh."""
    return 0.5 * v * (1.0 + wl.tanh(ROOT_TWO_OVER_PI * (v + 0.044715 * v * v * v)))


@wl.kernel
def silu_mul(gate: wl.Tensor, up: wl.Tensor, out: wl.Tensor, BF: wl.const):
    """out = silu(gate) · up."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, f = wl.program_id(0), wl.program_id(1) * BF
    g = wl.load(gate[t, wl.ds(f, BF)]).cast(wl.f32)
    u = wl.load(up[t, wl.ds(f, BF)]).cast(wl.f32)
    wl.store(out[t, wl.ds(f, BF)], (silu(g) * u).cast(out.dtype))


@wl.kernel
def gelu(x: wl.Tensor, out: wl.Tensor, TANH: wl.const, BF: wl.const):
    """out = x · Φ(x), Φ by erf or by its approximation with tanh."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, f = wl.program_id(0), wl.program_id(1) * BF
    v = wl.load(x[t, wl.ds(f, BF)]).cast(wl.f32)
    made = gelu_by_tanh(v) if TANH else gelu_by_erf(v)
    wl.store(out[t, wl.ds(f, BF)], made.cast(out.dtype))


@wl.kernel
def softmax(x: wl.Tensor, out: wl.Tensor, BR: wl.const, BC: wl.const):
    """BR rows a block, each row one tile of BC columns or more."""
    wl.launch_dependents()
    wl.wait_for_previous()
    r = wl.program_id(0) * BR
    v = wl.load(x[wl.ds(r, BR), wl.ds(0, BC)], other=NEGATIVE_INFINITY).cast(wl.f32)
    e = wl.exp(v - wl.max(v, 1)[:, None])
    y = e * (1.0 / wl.sum(e, 1))[:, None]
    wl.store(out[wl.ds(r, BR), wl.ds(0, BC)], y.cast(out.dtype))


@wl.kernel
def softmax_long(x: wl.Tensor, out: wl.Tensor, BC: wl.const):
    """One row a block, walked three times in pieces of BC: maximum, sum, result."""
    wl.launch_dependents()
    wl.wait_for_previous()
    r, n = wl.program_id(0), x.shape[1]
    top = wl.full((BC,), NEGATIVE_INFINITY, wl.f32)
    for c in wl.range(0, n, BC):
        v = wl.load(x[r, wl.ds(c, BC)], other=NEGATIVE_INFINITY).cast(wl.f32)
        top = wl.maximum(top, v)
    highest = wl.max(top, 0)
    total = wl.zeros((BC,), wl.f32)
    for c in wl.range(0, n, BC):
        v = wl.load(x[r, wl.ds(c, BC)], other=NEGATIVE_INFINITY).cast(wl.f32)
        total = total + wl.exp(v - highest)
    factor = 1.0 / wl.sum(total, 0)
    for c in wl.range(0, n, BC):
        v = wl.load(x[r, wl.ds(c, BC)], other=NEGATIVE_INFINITY).cast(wl.f32)
        wl.store(out[r, wl.ds(c, BC)], (wl.exp(v - highest) * factor).cast(out.dtype))


@silu_mul.example
def _silu_mul(make):
    gate, up = make.randn((2, 200), wl.bf16), make.randn((2, 200), wl.bf16)
    return silu_mul.launch((2, 1)).call(gate, up, make.empty((2, 200), wl.bf16), BF=256)


@gelu.example
def _gelu(make):
    return gelu.launch((2, 1)).call(
        make.randn((2, 200), wl.f32), make.empty((2, 200), wl.f32), TANH=False, BF=256
    )


@softmax.example
def _softmax(make):
    x, out = make.randn((6, 70), wl.f32), make.empty((6, 70), wl.f32)
    return softmax.launch(2).call(x, out, BR=4, BC=70)


@softmax_long.example
def _softmax_long(make):
    return softmax_long.launch(2).call(
        make.randn((2, 200), wl.f32), make.empty((2, 200), wl.f32), BC=64
    )
