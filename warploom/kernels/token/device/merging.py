"""What the chunks of a head give its query together, in the order of the keys. Knows nothing of how
they were attended to.
"""

import warploom as wl
from warploom.kernels.attention.kernel import reference_point
from warploom.kernels.token.device.alone import NEGATIVE_INFINITY
from warploom.kernels.token.plan import LINE


@wl.struct
class Merged:
    """Mixed values: the chunks of each head, merged in the order of the keys; 0 without a key."""

    heads: object

    def at(self, t, line, LINES):
        heads, BATCH = self.heads, self.heads.BATCH
        head = ((wl.arange(LINES) + line) // (heads.D // LINE))[:, None]
        top, total = wl.full((LINES, 1), NEGATIVE_INFINITY, wl.f32), wl.zeros((LINES, 1), wl.f32)
        out = wl.zeros((LINES, LINE), wl.f32)
        count = heads.chunks(t)
        for begin in wl.range(0, count, BATCH):
            tops, totals, outs = [], [], []
            new_top = top
            for c in wl.unroll(BATCH):
                is_chunk, chunk = begin + c < count, wl.minimum(begin + c, count - 1)
                tops = tops + [wl.gather(heads.tops, (t, chunk, head), is_chunk, NEGATIVE_INFINITY)]
                totals = totals + [wl.gather(heads.totals, (t, chunk, head), is_chunk)]
                window = (t, chunk, wl.ds(line, LINES), wl.ds(0, LINE))
                outs = outs + [wl.load(heads.out[window])]
            for part in tops:
                new_top = wl.maximum(new_top, part)
            base = reference_point(new_top)
            shrink = wl.exp(top - base)
            total, out, top = total * shrink, out * shrink, new_top
            for c in wl.unroll(len(tops)):
                weight = wl.exp(tops[c] - base)
                total = total + totals[c] * weight
                out = out + outs[c] * weight
        # Not `total > 0`: NaN must stay NaN.
        return out * wl.where(total == 0.0, 0.0, 1.0 / total)


@wl.function
def chunks_merged(heads, mixed):
    """`Merged`, once for all blocks: mixed[t, line, 16]."""
    team, LINES = heads.team, heads.D // LINE
    if heads.MANY:
        for i in wl.range(
            team.r * team.BLOCKS + team.b,
            team.TOKENS * heads.HEADS * LINES,
            team.BLOCKS * team.WARPS,
        ):
            t, line = i // (heads.HEADS * LINES), i % (heads.HEADS * LINES)
            wl.store(mixed[t, line, wl.ds(0, LINE)], many_merged(heads, t, line))
    else:
        for i in wl.range(
            team.r * team.BLOCKS + team.b, team.TOKENS * heads.HEADS, team.BLOCKS * team.WARPS
        ):
            t, line = i // heads.HEADS, i % heads.HEADS * LINES
            window = mixed[t, wl.ds(line, LINES), wl.ds(0, LINE)]
            wl.store(window, Merged(heads).at(t, line, LINES))


@wl.function
def many_merged(heads, t, line):
    """One line of the mixed values of a head with many chunks, MANY of them at a time."""
    head, MANY = line // (heads.D // LINE), heads.MANY
    top, total = wl.full((1,), NEGATIVE_INFINITY, wl.f32), wl.zeros((1,), wl.f32)
    out = wl.zeros((LINE,), wl.f32)
    count = heads.chunks(t)
    for begin in wl.range(0, count, MANY):
        chunk = wl.arange(MANY) + begin
        is_chunk, chunk = chunk < count, wl.minimum(chunk, count - 1)
        tops = wl.gather(heads.tops, (t, chunk, head), is_chunk, NEGATIVE_INFINITY)
        totals = wl.gather(heads.totals, (t, chunk, head), is_chunk)
        outs = wl.gather(heads.out, (t, chunk, line, 0), is_chunk, run=LINE)
        new_top = wl.maximum(top, wl.max(tops, 0, keepdims=True))
        base = reference_point(new_top)
        weights, shrink = wl.exp(tops - base), wl.exp(top - base)
        total = total * shrink + wl.sum(totals * weights, 0, keepdims=True)
        out = out * shrink + wl.sum(outs * weights[:, None], 0)
        top = new_top
    # Not `total > 0`: NaN must stay NaN.
    return out * wl.where(total == 0.0, 0.0, 1.0 / total)
