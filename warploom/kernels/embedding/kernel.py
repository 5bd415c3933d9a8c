"""Rows of a table by index. Knows nothing of vocabularies."""

import warploom as wl


@wl.kernel
def embed(ids: wl.Tensor, table: wl.Tensor, out: wl.Tensor, BH: wl.const):
    """Block (t, j) copies columns j·BH … of row ids[t]; a row outside the table reads as zero."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, h = wl.program_id(0), wl.program_id(1) * BH
    row = wl.load(table[wl.load(ids[t]), wl.ds(h, BH)])
    wl.store(out[t, wl.ds(h, BH)], row.cast(wl.f32).cast(out.dtype))


@embed.example
def _small(make):
    ids = make.array([2, 0, 9, 5], wl.i32)
    table, out = make.randn((10, 70), wl.bf16), make.empty((4, 70), wl.f32)
    return embed.launch((4, 1)).call(ids, table, out, BH=128)
