"""Schedules as structs of the kernel language: which tile a block works on first, and which next.

Knows nothing of what is done with a tile.
"""

import warploom as wl


@wl.struct
class Grid:
    """A grid of rows x columns tiles, or `batch` of them, dealt to the blocks of the launch in
    turn: down GROUP rows, then one column on, so that the tiles in work at a time share what they
    read.

    A cluster takes a tile for each of its blocks at a time, as many rows and columns as it has
    blocks along axes 0 and 1 of the launch; along axis 1 the launch is one cluster wide, and GROUP
    counts the rows of clusters. All blocks of a cluster go on equally long: at the edge some get
    tiles outside of the grid.
    """

    rows: int
    columns: int
    batch: int | None = None
    GROUP: wl.const = 8

    def first(self):
        return wl.program_id(0) // wl.cluster_size(0)

    def valid(self, t):
        tiles = self.high() * self.wide()
        return t < (tiles if self.batch is None else tiles * self.batch)

    def next(self, t):
        return t + wl.num_programs(0) // wl.cluster_size(0)

    def high(self):
        """Rows of clusters."""
        return (self.rows + wl.cluster_size(0) - 1) // wl.cluster_size(0)

    def wide(self):
        """Columns of clusters."""
        return (self.columns + wl.cluster_size(1) - 1) // wl.cluster_size(1)

    def place(self, t):
        """Grid, row and column of this block's tile when its cluster is at t."""
        high, wide = self.high(), self.wide()
        batch = 0 if self.batch is None else t // (high * wide)
        t = t - batch * (high * wide)
        group = t // (self.GROUP * wide)
        first = group * self.GROUP
        height = wl.minimum(high - first, self.GROUP)
        inside = t - group * (self.GROUP * wide)
        i, j = first + inside % height, inside // height
        i = i * wl.cluster_size(0) + wl.cluster_rank(0)
        return batch, i, j * wl.cluster_size(1) + wl.cluster_rank(1)


@wl.struct
class Shares:
    """The steps of `tiles` tiles, one tile after the other, dealt to the blocks of the launch in
    equal shares: a block ends a tile that others began, does whole ones, and begins one. Each share
    and tile has one step or more; (tiles · steps + 1) · blocks fits 32 bits."""

    tiles: int
    steps: int

    def start(self, block):
        """The first step of a block's share."""
        return block * (self.tiles * self.steps) // wl.num_programs(0)

    def owner(self, step):
        """The block whose share has a step."""
        return ((step + 1) * wl.num_programs(0) - 1) // (self.tiles * self.steps)

    def first(self):
        return self.start(wl.program_id(0))

    def valid(self, at):
        return at < self.start(wl.program_id(0) + 1)

    def next(self, at):
        return (at // self.steps + 1) * self.steps

    def part(self, at):
        """The tile of step `at`, and its own steps from lo to hi that this block does."""
        tile = at // self.steps
        first = tile * self.steps
        end = self.start(wl.program_id(0) + 1)
        return tile, at - first, wl.minimum(end - first, self.steps)

    def owners(self, tile):
        """The blocks that have steps of a tile: from the first to the last."""
        first = tile * self.steps
        return self.owner(first), self.owner(first + self.steps - 1)


@wl.struct
class Groups:
    """Tiles of grids of one width and of different heights, the grid of group g after that of group
    g - 1: it has the rows from offsets[g] to offsets[g + 1], in tiles of BM rows, and `columns`
    tiles a row. Dealt to the blocks of the launch in turn, down the rows of a group first.

    With ALIGN a group's tiles begin at the multiple of it at or before its first row.

    An item is the number of a tile, its group, and the first tile of that group and of the next.
    """

    offsets: wl.Tensor
    columns: int
    BM: wl.const
    ALIGN: wl.const = 1

    def rows(self, group):
        """From which row to which a group goes."""
        return wl.load(self.offsets[group]), wl.load(self.offsets[group + 1])

    def high(self, group):
        """Tiles of a group one below the other; none beyond the last group, or of no rows."""
        lo, hi = self.rows(group)
        begin = wl.where(lo < hi, lo // self.ALIGN * self.ALIGN, hi)
        return wl.maximum(hi - begin + (self.BM - 1), 0) // self.BM

    def count(self):
        return self.offsets.shape[0] - 1

    def at(self, t, group, start, end):
        """Tile t, seen from a group before it or its own."""
        while t >= end and group < self.count():
            start, group = end, group + 1
            end = start + self.high(group) * self.columns
        return t, group, start, end

    def first(self):
        return self.at(wl.program_id(0), 0, 0, self.high(0) * self.columns)

    def valid(self, item):
        _, group, _, _ = item
        return group < self.count()

    def next(self, item):
        t, group, start, end = item
        return self.at(t + wl.num_programs(0), group, start, end)

    def place(self, item):
        """Group, row and column of a tile in its grid."""
        t, group, start, _ = item
        high = self.high(group)
        return group, (t - start) % high, (t - start) // high


@wl.struct
class Dynamic:
    """`count` tiles, each for the block that is free first. Every block begins with the tile of its
    own number; for each tile that it has done it draws the number of the next from `counter` (one
    i32, 0 before and after the launch).

    A role of one warp calls `deal`, the others go over the schedule: the numbers come to them by
    `ring`, a pipe of `wl.shared((1,), wl.i32)`, which all of them take from.
    """

    counter: wl.Tensor
    ring: object
    count: int

    def deal(self):
        """Draw and hand on the numbers; the last one, which is no tile any more, ends the loops."""
        t = wl.program_id(0)
        while t < self.count:
            drawn = wl.atomic_add(self.counter[0], 1)
            if drawn == self.count - 1:
                # One number is drawn for each tile: this was the last of the launch.
                wl.atomic_exchange(self.counter[0], 0)
            t = drawn + wl.num_programs(0)
            with self.ring.put() as slot:
                slot.store(wl.full((1,), t, wl.i32))

    def first(self):
        return wl.program_id(0)

    def valid(self, t):
        return t < self.count

    def next(self, t):
        with self.ring.get() as slot:
            drawn = wl.scalar(slot.load()[0])
        return drawn
