"""Tile sizes of decode attention. Depend on head size and ratio only, never on the context."""

from dataclasses import dataclass

# Keys of one block. Fixed, so that a row's result does not depend on the capacity of the cache.
SPLIT = 256
# Splits that the merging block reads at a time.
MERGE = 16
# Query heads of one block. More share the reading of keys, which only long contexts notice; one or
# two leave more blocks and shorter loops.
MOST_HEADS = 2
# Elements of a tile of keys: 16 a thread.
TILE_ELEMENTS = 2048
DEPTH = 2


@dataclass(frozen=True, slots=True)
class Config:
    """`heads` query heads share one read of BN keys; `groups` blocks share a key head."""

    heads: int
    groups: int
    BN: int


def choose(ratio: int, head_dim: int) -> Config:
    """The tile for `ratio` query heads a key head of `head_dim` columns."""
    heads = max(n for n in range(1, MOST_HEADS + 1) if ratio % n == 0)
    rows = max(4, TILE_ELEMENTS // head_dim)
    return Config(heads, ratio // heads, min(64, 1 << (rows.bit_length() - 1)))
