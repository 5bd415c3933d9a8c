"""Steps of all tiles are dealt out in spans of one length; who has the first step of a tile adds up
what those behind it have left in memory."""

import warploom as wl


@wl.kernel
def spans(
    x: wl.Tensor,
    parts: wl.Tensor,
    ready: wl.Tensor,
    y: wl.Tensor,
    STEPS: wl.const,
    SPAN: wl.const,
):
    here = wl.program_id(0)
    lo = here * SPAN
    hi = wl.minimum(lo + SPAN, x.shape[0])
    for t in wl.range(lo // STEPS, (hi + STEPS - 1) // STEPS):
        begin, end = t * STEPS, (t + 1) * STEPS
        total = wl.zeros((64,), wl.f32)
        for k in wl.range(wl.maximum(lo, begin), wl.minimum(hi, end)):
            total = total + wl.load(x[k, wl.ds(0, 64)])
        if lo > begin:
            wl.store(parts[here, wl.ds(0, 64)], total)
            wl.signal(ready[here], 1)
        else:
            for q in wl.range(here + 1, (end - 1) // SPAN + 1):
                wl.wait(ready[q], at_least=1)
                total = total + wl.load(parts[q, wl.ds(0, 64)])
            wl.store(y[t, wl.ds(0, 64)], total)


@spans.example
def small(make):
    x, parts, y = make.randn((21, 64)), make.zeros((7, 64)), make.zeros((3, 64))
    ready = make.zeros((7,), wl.i32)
    return spans.launch(7, cooperative=True).call(x, parts, ready, y, STEPS=7, SPAN=3)


def expected(x, parts, ready, y, **_):
    return {"y": x.reshape(3, 7, 64).sum(1)}
