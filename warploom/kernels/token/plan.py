"""How the matrices of a model become one stream of weights, dealt to the blocks of a launch.

A *unit* is 16 rows × UNIT columns, what one warp multiplies at a time. A *step* is one unit for
each of WARPS warps: HIGH units one below the other, WIDE beside each other. A *band* is the rows of
a step over all columns, STEPS steps. A matrix is its bands one after the other; its steps are dealt
to the blocks in equal shares, so a band may be the work of several blocks, and then has as many
*parts*, which who reads the result adds up in the order of the blocks.

Numbers only: knows no arrays and no kernel.
"""

from dataclasses import dataclass, replace

import numpy as np

from warploom.base.target import SM_90A
from warploom.kernels import arguments

UNIT = 64
"""Columns of a unit: a constant, because the order of a sum depends on it."""
ROWS = 16
"""Rows of a unit, those of the matrix instruction."""
MOST_TOKENS = 8
"""Columns of the matrix instruction: tokens of a launch."""
LINE = 16
"""Neighbouring columns of a vector that lie together for all tokens: a step of the instruction."""
UNIT_LINES = UNIT // LINE
SPAN = 128
"""Columns of the input that a warp makes at a time."""
IN_FLIGHT = 2
"""Most spans that a warp begins with at a time, so that it waits once for all."""
SUMMED_IN_FLIGHT = 4
"""The same where parts have been added up."""
REDUCED = 3
"""From so many columns on, parts are added up once for all blocks."""
MOST_HELD = 6
"""Most spans of a source that a warp holds in registers."""
CHUNK = 256
"""Keys that attention takes at a time, whatever the batch."""
PACED, COPIES = 6, 1
"""First steps of a matrix that come one after the other, and how many of them are under way at a
time: a block asks for them before the exchange ahead of the matrix, and what blocks tell each other
would stand in the memory system behind all of them."""
KEYS = 16
"""Keys that a warp attends to at a time."""
PAIRS = 8
"""Most queries at a time: the matrix instruction has rows for so many, each twice."""
MERGED = 8
"""Chunks of a head that are merged at a time, and most of all columns that every block merges."""
MANY = 32
"""The same where a cache has room for more: these are merged once for all blocks."""
# Most units of a step beside each other, and columns of all vectors that a block holds for that.
_WIDEST = 8
_HELD = 4096
_PIECE = 16  # columns of a head that are merged at a time
# Shared memory of a block that the ring of weights leaves for all else, in bytes.
_MEMORY = 227 * 1024 - 1024
_RING = 192 * 1024
# Registers that bringing weights takes, and from how many warps on the others want the rest.
_FEW, _MANY_WARPS = 32, 16
_SPARED = 20  # of so many blocks one may have no share of a matrix, for fewer parts
_FILLING = 0.03  # of the weights: what rows of zeros may cost before fewer warps are taken


COUNTERS = 4
"""Counters of what blocks have done and go on from without waiting: `device/parallel.py`."""
APART = 32
"""Numbers between two counters, so that each has a line of the cache."""


def state_size(parallel: bool) -> int:
    """Numbers that launches hand on: a counter and its start; the same of `COUNTERS`."""
    return APART * (1 + COUNTERS) if parallel else 2


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model that decide what the kernel looks like."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    rotary_dim: int
    rope_style: str = "half"
    parallel: bool = False
    """Whether attention and MLP of a layer begin with the same stream."""
    gated: bool = True
    """Whether the MLP is silu(gate) · up, else gelu(up)."""

    @property
    def query(self) -> int:
        """Outputs of the query projection."""
        return self.heads * self.head_dim

    @property
    def key(self) -> int:
        """Outputs of the key (and of the value) projection."""
        return self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix of `rows` × `columns`: its steps, and how they are dealt to `blocks` blocks."""

    rows: int
    columns: int
    high: int
    wide: int
    blocks: int
    base: int
    """The first of its steps among those of a layer."""

    @property
    def band_rows(self) -> int:
        """Rows of a band."""
        return ROWS * self.high

    @property
    def bands(self) -> int:
        """Bands; the last one may have rows beyond the matrix, of zeros."""
        return -(-self.rows // self.band_rows)

    @property
    def steps(self) -> int:
        """Steps of a band."""
        return self.columns // (self.wide * UNIT)

    @property
    def total(self) -> int:
        """Steps of the matrix."""
        return self.bands * self.steps

    def start(self, block: int) -> int:
        """The first step of a block's share."""
        return min(block, self.blocks) * self.total // self.blocks

    def owner(self, step: int) -> int:
        """The block that has a step."""
        return ((step + 1) * self.blocks - 1) // self.total

    @property
    def longest(self) -> int:
        """Steps of the longest share."""
        return -(-self.total // self.blocks)

    @property
    def parts(self) -> int:
        """Most blocks that share a band."""
        first = np.arange(self.bands) * self.steps
        last = first + self.steps - 1
        owners = [((step + 1) * self.blocks - 1) // self.total for step in (first, last)]
        return int((owners[1] - owners[0]).max()) + 1

    @property
    def held_steps(self) -> int:
        """Steps whose columns of the input a block holds at a time."""
        return min(self.longest, self.steps)

    @property
    def constants(self) -> tuple[int, ...]:
        """What the kernel is told of it."""
        return (self.rows, self.columns, self.high, self.wide, self.blocks, self.base, self.parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """A model's matrices for `blocks` blocks of `warps` multiplying warps each."""

    shape: Shape
    blocks: int
    warps: int
    qkv: Matrix
    out: Matrix
    gate_up: Matrix
    down: Matrix
    head: Matrix

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Those of a layer. In which order they are streamed, `base` tells."""
        return (self.qkv, self.out, self.gate_up, self.down)

    @property
    def layer_steps(self) -> int:
        """Steps of a layer."""
        return sum(matrix.total for matrix in self.matrices)

    @property
    def total_steps(self) -> int:
        """Steps of the model."""
        return self.shape.layers * self.layer_steps + self.head.total

    @property
    def step_elements(self) -> int:
        """Weights of a step."""
        return self.warps * ROWS * UNIT

    @property
    def streamers(self) -> int:
        """Warps of the role that brings weights. One does it; where registers are scarce, four are
        a warpgroup that can leave its own to the others."""
        return 4 if self.warps >= _MANY_WARPS else 1

    def is_direct(self, columns: int, chunks: int) -> bool:
        """Whether every block merges the chunks of a head itself: with few of them, reading all
        costs less than one more exchange."""
        return columns * chunks <= MERGED

    def is_held(self, columns: int) -> bool:
        """Whether the registers of a block's warps hold a source that is to be normalised."""
        spans = max(m.columns // min(SPAN, m.wide * UNIT) for m in self._normed)
        return columns < REDUCED and columns * spans <= MOST_HELD * self.warps

    def is_reduced(self, columns: int) -> bool:
        """Whether parts are added up once for all blocks. Who makes two matrices' inputs of one
        source holds it, or reads it twice, but not in parts."""
        return columns >= REDUCED or (self.shape.parallel and not self.is_held(columns))

    @property
    def _normed(self) -> tuple[Matrix, ...]:
        """What is multiplied with a normalised source."""
        return (self.qkv, self.gate_up, self.head)

    @property
    def registers(self) -> tuple[int, int]:
        """Registers a thread of the two roles; 0 where nobody has to give up any."""
        if self.streamers == 1:
            return 0, 0
        groups = -(-self.warps // 4)
        entry = SM_90A.registers_for(128 * (groups + 1))
        return _FEW, ((groups + 1) * entry - _FEW) // groups // 8 * 8

    def stages(self, columns: int) -> int:
        """Items of the ring: what memory allows, for what one column needs less of."""
        item = 2 * self.step_elements
        return max(2, min(_RING, _MEMORY - self.other_bytes(columns)) // item)

    @property
    def held_units(self) -> int:
        """Units of input that a block holds at most."""
        return max(m.held_steps * m.wide for m in (*self.matrices, self.head))

    def rows(self, columns: int) -> int:
        """Queries of a key head that a block attends with at a time: those that a sequence can
        have, as a power of two, and no more than the matrix instruction has rows for."""
        most = self.shape.heads // self.shape.kv_heads * columns
        return min(PAIRS, 1 << (most - 1).bit_length())

    def other_bytes(self, columns: int) -> int:
        """Shared memory of a block without the ring."""
        width = self.shape.head_dim
        # While heads are attended to, what they need lies where vectors and sums do.
        vectors = self.held_units * UNIT * columns * 2
        gathered = CHUNK // KEYS * self.rows(columns) * width * 4
        staged = PAIRS * width * 8
        if self.shape.heads == self.shape.kv_heads:
            gathered, staged = (4 * columns + 32) * width, (self.warps + 1) * width * 4
        vectors = max(vectors, gathered)
        sums = max(2 * self.warps * 32 * 4 * 4, 4 * PAIRS * (2 * CHUNK // KEYS + 2) + staged)
        stats = 4 * (self.stats + 8 * MOST_TOKENS)
        return vectors + sums + stats + 2 * columns * width * 4

    def shared_bytes(self, columns: int) -> int:
        """Shared memory of a block."""
        return self.stages(columns) * 2 * self.step_elements + self.other_bytes(columns)

    @property
    def stats(self) -> int:
        """Numbers about all tokens that warps leave for each other: two a span."""
        spans = max(m.columns // min(SPAN, m.wide * UNIT) for m in self._normed)
        return 2 * MOST_TOKENS * spans


def make(shape: Shape, blocks: int, warps: int = 0) -> Plan:
    """The plan of a model; 0 multiplying warps: as many as suit it. Raises ShapeError T201 where a
    size does not fit the kernel's rules."""
    _check(shape)
    warps = warps or _warps(shape, blocks)
    plan = Plan(shape, blocks, warps, *_matrices(shape, blocks, warps))
    arguments.require(
        plan.shared_bytes(MOST_TOKENS) <= _MEMORY,
        "token",
        f"{plan.shared_bytes(MOST_TOKENS):,} bytes of shared memory a block",
        f"{_MEMORY:,} are there; {blocks} blocks hold {plan.held_units * UNIT} columns each",
        hint="use more blocks, or the kernels of one launch an operation",
    )
    return plan


def _warps(shape: Shape, blocks: int) -> int:
    """Of those numbers of warps whose bands leave few rows of zeros, the largest."""
    sizes = {}
    for warps in (16, 12):
        sizes[warps] = sum(
            matrix.total * (shape.layers if number < 4 else 1) * warps
            for number, matrix in enumerate(_matrices(shape, blocks, warps))
        )
    least = min(sizes.values())
    return next(warps for warps, size in sizes.items() if size <= least * (1 + _FILLING))


def _matrices(shape: Shape, blocks: int, warps: int) -> list[Matrix]:
    """The matrices of a layer, then the head."""
    sizes = {
        "qkv": (shape.query + 2 * shape.key, shape.hidden),
        "out": (shape.hidden, shape.query),
        "gate_up": ((2 if shape.gated else 1) * shape.feed_forward, shape.hidden),
        "down": (shape.hidden, shape.feed_forward),
    }
    order, widest = tuple(sizes), dict.fromkeys(sizes, _WIDEST)
    if shape.parallel:
        # As a block goes through a layer. Its first two inputs are made of the same spans.
        order = ("qkv", "gate_up", "down", "out")
        shared = [_matrix(*sizes[name], blocks, warps, 0).wide for name in order[:2]]
        widest |= dict.fromkeys(order[:2], min(shared))
    held = dict.fromkeys(sizes, _HELD)
    if not shape.parallel:
        held["out"] = _HELD // 2  # each block merges chunks of heads for what it needs
    base, made = 0, {}
    for name in order:
        found = _matrix(*sizes[name], blocks, warps, base, widest[name], held[name])
        made[name] = found if shape.parallel else _aligned(found)
        base += found.total
    head = _matrix(shape.vocabulary, shape.hidden, blocks, warps, shape.layers * base)
    return [*(made[name] for name in sizes), head]


def _aligned(matrix: Matrix) -> Matrix:
    """The matrix dealt to a few blocks less where shares then begin with bands, or divide them: its
    results have fewer parts, which all others read, and the longest share stays what it is."""
    least = matrix.blocks - matrix.blocks // _SPARED
    dealt = [replace(matrix, blocks=count) for count in range(matrix.blocks, least - 1, -1)]
    return min((d for d in dealt if d.longest <= matrix.longest), key=lambda d: d.parts)


def _matrix(
    rows: int,
    columns: int,
    blocks: int,
    warps: int,
    base: int,
    widest: int = _WIDEST,
    held: int = _HELD,
) -> Matrix:
    """As many units beside each other as the columns and the memory of a block allow: a band then
    has few rows, so few blocks share it, and its sums come together in shared memory. But the
    columns that a block needs are more."""
    wide = widest
    while wide > 1:
        made = _split(rows, columns, blocks, warps, base, wide)
        if made is not None and made.held_steps * wide * UNIT <= held:
            return made
        wide //= 2
    made = _split(rows, columns, blocks, warps, base, 1)
    assert made is not None
    return made


def _split(rows: int, columns: int, blocks: int, warps: int, base: int, wide: int) -> Matrix | None:
    if warps % wide or columns % (wide * UNIT):
        return None
    alone = Matrix(rows, columns, warps // wide, wide, 1, base)
    return Matrix(rows, columns, warps // wide, wide, min(blocks, alone.total), base)


def _check(shape: Shape) -> None:
    widths = {
        "hidden": shape.hidden,
        "heads · head_dim": shape.query,
        "feed_forward": shape.feed_forward,
    }
    for name, width in widths.items():
        arguments.require(
            width % UNIT == 0,
            "token",
            f"`{name}` is {width}",
            f"the kernel takes multiples of {UNIT}",
            hint="use the kernels of one launch an operation",
        )
    arguments.require(
        shape.head_dim % _PIECE == 0 and shape.head_dim <= 128,
        "token",
        f"`head_dim` is {shape.head_dim}",
        f"the kernel takes multiples of {_PIECE} up to 128",
        hint="use the kernels of one launch an operation",
    )
