"""The orders of the schedules as plain lists."""

from collections.abc import Iterator


def grid(rows: int, columns: int, batch: int, group: int) -> Iterator[tuple[int, int, int]]:
    """Grid, row and column of each tile in the order of their numbers."""
    for number in range(batch):
        for first in range(0, rows, group):
            for column in range(columns):
                for row in range(first, min(first + group, rows)):
                    yield number, row, column


def shares(tiles: int, steps: int, blocks: int) -> list[list[tuple[int, int, int]]]:
    """Of each block: the tiles of its share, and the steps from lo to hi of each."""
    found: list[list[tuple[int, int, int]]] = []
    for block in range(blocks):
        at, end = (n * tiles * steps // blocks for n in (block, block + 1))
        parts: list[tuple[int, int, int]] = []
        while at < end:
            tile, lo = divmod(at, steps)
            hi = min(steps, end - tile * steps)
            parts.append((tile, lo, hi))
            at += hi - lo
        found.append(parts)
    return found
