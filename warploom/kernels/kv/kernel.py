"""Write new keys and values into a cache. Knows nothing of who reads it."""

import warploom as wl


@wl.kernel
def append(
    k: wl.Tensor,
    v: wl.Tensor,
    k_cache: wl.Tensor,
    v_cache: wl.Tensor,
    positions: wl.Tensor,
    BH: wl.const,
    D: wl.const,
):
    """Block (t, j): heads j·BH … of token t go to row positions[t]; outside the cache nothing is
    written."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, h = wl.program_id(0), wl.program_id(1) * BH
    row = wl.load(positions[t])
    key = wl.load(k[t, wl.ds(h, BH), wl.ds(0, D)]).cast(wl.f32)
    value = wl.load(v[t, wl.ds(h, BH), wl.ds(0, D)]).cast(wl.f32)
    wl.store(k_cache[row, wl.ds(h, BH), wl.ds(0, D)], key.cast(k_cache.dtype))
    wl.store(v_cache[row, wl.ds(h, BH), wl.ds(0, D)], value.cast(v_cache.dtype))


@append.example
def _small(make):
    k, v = make.randn((2, 3, 64), wl.f32), make.randn((2, 3, 64), wl.f32)
    k_cache, v_cache = make.zeros((7, 3, 64), wl.bf16), make.zeros((7, 3, 64), wl.bf16)
    return append.launch((2, 1)).call(
        k, v, k_cache, v_cache, make.array([3, 6], wl.i32), BH=4, D=64
    )
