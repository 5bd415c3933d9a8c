"""The stream of weights: what one role brings, and how warps multiply with it.

The sizes of `plan.py` on the device. Knows nothing of what the vectors mean.
"""

import warploom as wl
from warploom.kernels.token.plan import (
    COPIES,
    LINE,
    MOST_TOKENS,
    PACED,
    ROWS,
    SPAN,
    UNIT,
    UNIT_LINES,
)

# Rows of 8 numbers that hold one unit of weights, and of 4 that hold one of MOST_TOKENS vectors:
# 4 steps of the instruction, 32 threads.
_UNIT_ROWS = UNIT // LINE * 32


@wl.struct
class Steps:
    """A matrix: see `plan.Matrix`."""

    N: wl.const
    K: wl.const
    HIGH: wl.const
    WIDE: wl.const
    BLOCKS: wl.const
    BASE: wl.const
    PARTS: wl.const

    def in_band(self):
        """Steps of a band."""
        return self.K // (self.WIDE * UNIT)

    def total(self):
        return -(-self.N // (ROWS * self.HIGH)) * self.in_band()

    def start(self, block):
        """The first step of a block's share."""
        return wl.minimum(block, self.BLOCKS) * self.total() // self.BLOCKS

    def owner(self, step):
        """The block that has a step."""
        return ((step + 1) * self.BLOCKS - 1) // self.total()

    def first_owner(self, band):
        return self.owner(band * self.in_band())

    def last_owner(self, band):
        return self.owner(band * self.in_band() + self.in_band() - 1)

    def lines(self):
        """Lines of the input that are read together: they lie in one step."""
        return min(SPAN, self.WIDE * UNIT) // LINE

    def longest(self):
        """Steps whose columns a block holds at most."""
        return min(-(-self.total() // self.BLOCKS), self.in_band())


@wl.function
def streamed(ring, packed, first, matrix, block, IS_PACED):
    """Bring this block's steps of a matrix, whose first step is row `first` of `packed`; IS_PACED:
    the first ones one after the other."""
    start, end = matrix.start(block), matrix.start(block + 1)
    paced = wl.minimum(start + PACED, end) if IS_PACED else start
    for step in wl.range(start, paced):
        step_brought(ring.put(in_flight=COPIES), packed, first + step)
    for step in wl.range(paced, end):
        step_brought(ring.put(), packed, first + step)


@wl.function
def step_brought(put, packed, row):
    with put as tile:
        ELEMENTS = tile.shape[0] * tile.shape[1]
        run = packed[row, wl.ds(0, ELEMENTS)]
        wl.copy_bulk(run, tile.reshape((ELEMENTS,)), cache="evict_first")


@wl.function
def keep(vectors, TOKENS, line, t, values):
    """Put lines of token t from line `line` of `vectors` on, where the columns that a block has to
    multiply with begin at 0: a line of all TOKENS lies together, as warps read them."""
    LINES = vectors.shape[0] * 4 // (TOKENS * LINE)
    flat = vectors.reshape((LINES, TOKENS * LINE))
    flat[wl.ds(line, values.shape[0]), wl.ds(t * LINE, LINE)].store(values.cast(vectors.dtype))


@wl.function
def multiplied(team, ring, vectors, matrix, out, turn, SCALED):
    """Multiply this block's share of a matrix with `vectors`, and write the sums of each band to
    its part of `out` [part, token, line, 16]; SCALED: times `team.roots`. Gives the half of
    `team.sums` that is free."""
    lo, hi, STEPS = matrix.start(team.b), matrix.start(team.b + 1), matrix.in_band()
    for band in wl.range(lo // STEPS, (hi + STEPS - 1) // STEPS):
        acc = wl.zeros((32, 4), wl.f32)
        for step in wl.range(wl.maximum(lo, band * STEPS), wl.minimum(hi, band * STEPS + STEPS)):
            unit = (step - lo) % STEPS * matrix.WIDE + team.r % matrix.WIDE
            vector = unit_of(vectors, unit, team.TOKENS)
            with ring.get() as tile:
                weights = tile[wl.ds(team.r * _UNIT_ROWS, _UNIT_ROWS), :].load()
                acc = wl.mma(weights, vector, acc)
        put_sums(team, acc, matrix, band, out, turn, SCALED)
        turn = 1 - turn
    return turn


@wl.function
def unit_of(vectors, unit, TOKENS):
    """A unit of all vectors, as the instruction takes it: thread 4t + j has 4 columns of token t.
    Columns of the instruction without a token repeat others, and nobody reads their sums."""
    ROWS_HELD = UNIT_LINES * 4 * TOKENS
    window = vectors[wl.ds(unit * ROWS_HELD, ROWS_HELD), :]
    if TOKENS == MOST_TOKENS:
        return window.load()
    row = wl.arange(_UNIT_ROWS)
    step, thread = row // 32, row % 32
    at = step * (4 * TOKENS) + thread % (4 * TOKENS)
    return window.gather(at[:, None] + wl.zeros((1, 4), wl.i32))


@wl.function
def put_sums(team, acc, matrix, band, out, turn, SCALED):
    """Add up the sums of the warps that have the same rows, in their order, and write them."""
    WARPS, HIGH, WIDE = team.WARPS, matrix.HIGH, matrix.WIDE
    base = turn * WARPS
    team.sums[wl.ds((base + team.r) * 32, 32), :].store(acc)
    team.meet()
    part = team.b - matrix.first_owner(band)
    flat = team.sums.reshape((2 * WARPS * 128,))
    row = wl.arange(ROWS)
    for i in wl.range(team.r, team.TOKENS * HIGH, WARPS):
        t, high = i % team.TOKENS, i // team.TOKENS
        # Where the matrix instruction leaves row and column of its sums: ir/ops/mma.py.
        place = (row % 8 * 4 + t // 2) * 4 + row // 8 * 2 + t % 2
        place = place + (base + high * WIDE) * 128
        total = flat.gather(place)
        for w in wl.unroll(1, WIDE):
            total = total + flat.gather(place + w * 128)
        if SCALED:
            total = total * team.roots.gather(row * 0 + t)
        wl.store(out[part, t, band * HIGH + high, wl.ds(0, ROWS)], total)


@wl.function
def summed(parts, matrix, t, rows):
    """Results of a matrix for token t: its parts, added in the order of the blocks. Where a band
    has fewer, the others are zeros, which nobody writes."""
    total = wl.gather(parts, (0, t, rows // LINE, rows % LINE))
    for p in wl.unroll(1, matrix.PARTS):
        total = total + wl.gather(parts, (p, t, rows // LINE, rows % LINE))
    return total


@wl.function
def summed_lines(parts, matrix, t, line, LINES):
    """As `summed`: lines of 16 results, of shape (LINES, 16)."""
    total = wl.load(parts[0, t, wl.ds(line, LINES), wl.ds(0, LINE)])
    for p in wl.unroll(1, matrix.PARTS):
        total = total + wl.load(parts[p, t, wl.ds(line, LINES), wl.ds(0, LINE)])
    return total
