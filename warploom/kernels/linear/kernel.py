"""Matrix times a few vectors: the weights stream once past all tokens. No matrix units; knows
nothing of which shapes deserve which tile (`config.py`)."""

import warploom as wl


@wl.kernel
def linear(
    x: wl.Tensor,
    w: wl.Tensor,
    out: wl.Tensor,
    bias: wl.Tensor = None,
    residual: wl.Tensor = None,
    T: wl.const = 1,
    BN: wl.const = 4,
    BK: wl.const = 256,
    DEPTH: wl.const = 1,
):
    """out[t, n] = Σ_k x[t, k]·w[n, k] (+ bias[n]) (+ residual[t, n]) for T tokens, BN rows a block.

    Products are summed in f32 in BN × BK partial sums a token, walking along k; they are folded
    once at the end. DEPTH tiles of weights are requested before the first one is used.
    """
    wl.launch_dependents()
    wl.wait_for_previous()
    n = wl.program_id(0) * BN
    sums = [wl.zeros((BN, BK), wl.f32)] * T
    for k in wl.range(0, x.shape[1], BK * DEPTH):
        tiles = []
        for d in wl.unroll(DEPTH):
            tiles = tiles + [wl.load(w[wl.ds(n, BN), wl.ds(k + d * BK, BK)])]
        for d in wl.unroll(DEPTH):
            weights = tiles[d].cast(wl.f32)
            for t in wl.unroll(T):
                v = wl.load(x[t, wl.ds(k + d * BK, BK)]).cast(wl.f32)
                sums[t] = sums[t] + weights * v[None, :]
    for t in wl.unroll(T):
        y = wl.sum(sums[t], 1)
        if bias is not None:
            y = y + wl.load(bias[wl.ds(n, BN)]).cast(wl.f32)
        if residual is not None:
            y = y + wl.load(residual[t, wl.ds(n, BN)]).cast(wl.f32)
        wl.store(out[t, wl.ds(n, BN)], y.cast(out.dtype))


@linear.example
def _small(make):
    x, w = make.randn((2, 200), wl.f32), make.randn((22, 200), wl.bf16)
    bias, residual = make.randn((22,), wl.f32), make.randn((2, 22), wl.f32)
    out = make.empty((2, 22), wl.f32)
    return linear.launch(6).call(x, w, out, bias, residual, T=2, BN=4, BK=64, DEPTH=2)


@linear.example("bench")
def _bench(make):
    x, w = make.randn((1, 4096), wl.bf16), make.randn((14336, 4096), wl.bf16)
    out = make.empty((1, 14336), wl.bf16)
    return linear.launch(3584).call(x, w, out, T=1, BN=4, BK=256, DEPTH=6)


@linear.example("tokens")
def _tokens(make):
    """The most sums that a configuration keeps in registers: eight tokens, two rows a warp."""
    x, w = make.randn((8, 300), wl.f32), make.randn((20, 300), wl.bf16)
    out = make.empty((8, 20), wl.f32)
    return linear.launch(3).call(x, w, out, T=8, BN=8, BK=256, DEPTH=1)
