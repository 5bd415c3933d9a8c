"""The output head after its matrix: logits, and the largest one of each token.

Every warp of the launch has a run of the vocabulary; a block keeps the largest of its warps, and
all blocks then look at those of all, so that each knows the next tokens by itself. NaN counts as
largest, ties take the lowest.
"""

import math

import warploom as wl
from warploom.kernels.token.device.stream import summed
from warploom.kernels.token.plan import MOST_TOKENS

NEGATIVE_INFINITY = -math.inf
_WIDTH = 128  # logits that a warp takes at a time
_BLOCKS = 256  # whose candidates a warp looks at at a time


@wl.struct
class Head:
    """`logits` [rounds · tokens, vocabulary], of which this round has the rows from `first` on;
    `places` are the bits of `team.sums`, which nobody uses while tokens are chosen;
    `best` and `best_at` [tokens, blocks]."""

    parts: wl.Tensor
    matrix: object
    logits: wl.Tensor
    best: wl.Tensor
    best_at: wl.Tensor
    first: int
    places: object


@wl.function
def logits_written(team, head):
    """Add up the parts of this warp's run of the vocabulary, and write the largest logit of this
    block and where it stands."""
    VOCABULARY = head.matrix.N
    WINDOWS, RUNS = -(-VOCABULARY // _WIDTH), team.BLOCKS * team.WARPS
    values, places = candidates(team, head)
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
        values.scatter(wl.arange(1) + (t * team.WARPS + team.r), best)
        places.scatter(wl.arange(1) + (t * team.WARPS + team.r), at)
    team.meet()
    for t in wl.range(team.r, team.TOKENS, team.WARPS):
        warps = wl.arange(team.WARPS) + t * team.WARPS
        value = values.gather(warps)
        first = wl.argmax(value, 0, keepdims=True) + t * team.WARPS
        wl.store(head.best[t, wl.ds(team.b, 1)], wl.max(value, 0, keepdims=True))
        wl.store(head.best_at[t, wl.ds(team.b, 1)], places.gather(first))


@wl.function
def candidates(team, head):
    """Shared memory for a number of each token and warp, and for where it stands."""
    ALL, COUNT = 2 * team.WARPS * 128, MOST_TOKENS * team.WARPS
    places = head.places.reshape((ALL,))
    return team.sums.reshape((ALL,))[wl.ds(0, COUNT)], places[wl.ds(COUNT, COUNT)]


@wl.function
def chosen(team, head, t):
    """The token with the largest logit, shape (1,)."""
    best = wl.full((1,), NEGATIVE_INFINITY, wl.f32)
    at = wl.zeros((1,), wl.i32)
    for i in wl.range(0, team.BLOCKS, _BLOCKS):
        value = wl.load(head.best[t, wl.ds(i, _BLOCKS)], other=NEGATIVE_INFINITY)
        here = wl.max(value, 0, keepdims=True)
        wins = (here > best) | ((here != here) & (best == best)) | (i == 0)
        block = wl.scalar(wl.argmax(value, 0)) + i
        at = wl.where(wins, wl.load(head.best_at[t, block]), at)
        best = wl.where(wins, here, best)
    return at
