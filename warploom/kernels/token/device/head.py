"""The output head after its matrix: logits, and the largest one of each token.

Every warp of the launch has a run of the vocabulary; all blocks then look at the largest of all
runs, so that each knows the next tokens by itself. NaN counts as largest, ties take the lowest.
"""

import math

import warploom as wl
from warploom.kernels.token.device.stream import summed

NEGATIVE_INFINITY = -math.inf
_WIDTH = 128  # logits that a warp takes at a time
_RUNS = 256  # candidates that a warp looks at a time


@wl.struct
class Head:
    """`logits` [rounds · tokens, vocabulary], of which this round has the rows from `first` on;
    `best` and `best_at` [tokens, warps of the launch]."""

    parts: wl.Tensor
    matrix: object
    logits: wl.Tensor
    best: wl.Tensor
    best_at: wl.Tensor
    first: int

    def runs(self, team):
        return team.BLOCKS * team.WARPS


@wl.function
def logits_written(team, head):
    """Add up the parts of this warp's run of the vocabulary, and note its largest logit."""
    VOCABULARY = head.matrix.N
    WINDOWS, RUNS = -(-VOCABULARY // _WIDTH), head.runs(team)
    run = team.b * team.WARPS + team.r
    for t in wl.range(0, team.TOKENS):
        best = wl.full((1,), NEGATIVE_INFINITY, wl.f32)
        at = wl.zeros((1,), wl.i32)
        begin = WINDOWS * run // RUNS
        for i in wl.range(begin, WINDOWS * (run + 1) // RUNS):
            column = wl.arange(_WIDTH) + i * _WIDTH
            value = summed(head.parts, head.matrix, t, column)
            wl.store(head.logits[head.first + t, wl.ds(i * _WIDTH, _WIDTH)], value)
            value = wl.where(column < VOCABULARY, value, NEGATIVE_INFINITY)
            here = wl.max(value, 0, keepdims=True)
            # Later columns win only if they are larger, or the first NaN.
            wins = (here > best) | ((here != here) & (best == best)) | (i == begin)
            at = wl.where(wins, wl.argmax(value, 0, keepdims=True) + i * _WIDTH, at)
            best = wl.where(wins, here, best)
        wl.store(head.best[t, wl.ds(run, 1)], best)
        wl.store(head.best_at[t, wl.ds(run, 1)], at)


@wl.function
def chosen(team, head, t):
    """The token with the largest logit, shape (1,)."""
    RUNS = head.runs(team)
    best = wl.full((1,), NEGATIVE_INFINITY, wl.f32)
    at = wl.zeros((1,), wl.i32)
    for i in wl.range(0, RUNS, _RUNS):
        value = wl.load(head.best[t, wl.ds(i, _RUNS)], other=NEGATIVE_INFINITY)
        here = wl.max(value, 0, keepdims=True)
        wins = (here > best) | ((here != here) & (best == best)) | (i == 0)
        run = wl.scalar(wl.argmax(value, 0)) + i
        at = wl.where(wins, wl.load(head.best_at[t, run]), at)
        best = wl.where(wins, here, best)
    return at
