"""The orders of the schedules as plain lists."""

from collections.abc import Iterator


def grid(rows: int, columns: int, batch: int, group: int) -> Iterator[tuple[int, int, int]]:
    """Grid, row and column of each tile in the order of their numbers."""
    for number in range(batch):
        for first in range(0, rows, group):
            for column in range(columns):
                for row in range(first, min(first + group, rows)):
                    yield number, row, column
