"""Tile sizes of decode attention. Depend on head size and ratio only, never on the context."""

from dataclasses import dataclass

# Keys of one block. Fixed, so that a row's result does not depend on the capacity of the cache.
SPLIT = 256
# Splits that the merging block reads at a time.
MERGE = 16
# Query heads of one block: each keeps a row of queries and a tile of sums in registers.
MOST_HEADS = 7


@dataclass(frozen=True, slots=True)
class Config:
    """`heads` query heads share one read of BN keys; `groups` blocks share a key head."""

    heads: int
    groups: int
    BN: int


def choose(ratio: int, head_dim: int) -> Config:
    """The tile for `ratio` query heads a key head of `head_dim` columns."""
    heads = max(n for n in range(1, MOST_HEADS + 1) if ratio % n == 0)
    elements = 2048 if heads <= 3 else 1024
    rows = max(4, elements // head_dim)
    return Config(heads, ratio // heads, min(64, 1 << (rows.bit_length() - 1)))
