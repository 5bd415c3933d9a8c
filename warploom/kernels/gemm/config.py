"""Which tile a matrix product uses: the one whose rounds over all SMs are estimated to end first.
No measurement at run time, no device.

Results do not depend on the tile: every element is summed in the order of k, 16 at a time.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache

# Bytes of a block's shared memory, less what barriers and alignment take.
SHARED = 227 * 1024 - 2048
BK = 64
MOST_STAGES = 10
# What one SM does in a cycle, in bytes: all of it from L2, and from memory when every SM reads.
FROM_L2, FROM_MEMORY = 40.0, 20.0
# Cycles before the first product of a launch, and after the last one of a tile besides the stores.
START, FINISH = 1500.0, 500.0
STORED = 16.0  # elements of a finished tile a cycle


@dataclass(frozen=True, slots=True)
class Config:
    """A tile of BM x BN, in steps of BK, STAGES of them in flight, finished in slices of EN columns
    by MATH replicas; tiles in groups of GROUP rows."""

    BM: int
    BN: int
    EN: int
    STAGES: int
    MATH: int
    GROUP: int = 8
    BK: int = BK

    def constants(self) -> dict[str, int]:
        """The compile-time arguments of the kernel."""
        return asdict(self)

    def tiles(self, m: int, n: int) -> int:
        """Tiles of a product of m x n elements."""
        return -(-m // self.BM) * -(-n // self.BN)


@lru_cache(maxsize=1024)
def choose(m: int, n: int, k: int, a_t: bool, b_t: bool, out_bytes: int, sms: int) -> Config:
    """The tile for m x n sums over k; `a_t`, `b_t` as in the kernel, `out_bytes` an element of the
    result."""
    return min(
        candidates(b_t, out_bytes),
        key=lambda c: (round(cycles(c, m, n, k, sms)), c.BM, -c.BN),
    )


def candidates(b_t: bool, out_bytes: int) -> Iterator[Config]:
    """Every tile that fits. A `b` that is contiguous along N comes in panels of 64 columns."""
    for rows, math, widest in ((128, 2, 256), (256, 2, 128), (64, 1, 256)):
        for columns in range(16 if b_t else 64, widest + 1, 16 if b_t else 64):
            yield fitted(rows, columns, math, out_bytes)


def fitted(rows: int, columns: int, math: int, out_bytes: int) -> Config:
    """The tile with the widest slices that divide it and as many stages as fit."""
    widest = (64 if rows <= 128 else 32) * 2 // out_bytes
    slice_columns = next(w for w in (64, 32, 16) if w <= widest and columns % w == 0)
    slices = 2 * rows * slice_columns * out_bytes
    stage = (rows + columns) * BK * 2
    stages = min(MOST_STAGES, (SHARED - slices) // stage)
    return Config(rows, columns, slice_columns, stages, math)


def cycles(c: Config, m: int, n: int, k: int, sms: int) -> float:
    """Estimated cycles of the busiest SM."""
    multiply = c.BM * c.BN * c.BK / 2048
    alone = -(-m // c.BM) == 1  # nobody else reads these columns of b
    read = (c.BM + c.BN) * c.BK * 2 / FROM_L2
    if alone:
        read = max(read, c.BN * c.BK * 2 / FROM_MEMORY)
    steps = -(-k // c.BK)
    rounds = -(-c.tiles(m, n) // sms)
    tile = steps * max(multiply, read) + FINISH + c.BM * c.BN / STORED
    return START + rounds * tile
