"""Schedules as structs of the kernel language: which tile a block works on first, and which next.

Knows nothing of what is done with a tile.
"""

import warploom as wl


@wl.struct
class Grid:
    """A grid of rows x columns tiles, or `batch` of them, dealt to the blocks of the launch in
    turn: down GROUP rows, then one column on, so that the tiles in work at a time share what they
    read."""

    rows: int
    columns: int
    batch: int | None = None
    GROUP: wl.const = 8

    def first(self):
        return wl.program_id(0)

    def valid(self, t):
        tiles = self.rows * self.columns
        return t < (tiles if self.batch is None else tiles * self.batch)

    def next(self, t):
        return t + wl.num_programs(0)

    def place(self, t):
        """Grid, row and column of tile t."""
        batch = 0 if self.batch is None else t // (self.rows * self.columns)
        t = t - batch * (self.rows * self.columns)
        group = t // (self.GROUP * self.columns)
        first = group * self.GROUP
        height = wl.minimum(self.rows - first, self.GROUP)
        inside = t - group * (self.GROUP * self.columns)
        return batch, first + inside % height, inside // height
