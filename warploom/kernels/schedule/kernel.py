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
