"""Which tile a linear call uses. A table by dtype; no measurement at run time, no device.

Results do not depend on BN or DEPTH: a row's sums are dealt to lanes by BK alone, and tiles are
added in the order of k. BK depends on the dtype of the weights and on K only.
"""

from dataclasses import dataclass

# Tokens of one launch: their sums live in registers side by side.
MOST_TOKENS = 8
# Rows from which on a block takes twice as many: enough blocks are left for every SM, and the
# activations are read half as often.
MANY_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Config:
    """BN rows × BK columns a tile, DEPTH tiles in flight."""

    BN: int
    BK: int
    DEPTH: int

    def constants(self) -> dict[str, int]:
        """The compile-time arguments of the kernel."""
        return {"BN": self.BN, "BK": self.BK, "DEPTH": self.DEPTH}


def choose(dtype: str, tokens: int, rows: int, columns: int) -> Config:
    """The tile for `tokens` × `columns` activations and `rows` × `columns` weights of `dtype`."""
    if dtype == "f32":
        # 16 lanes × 4 elements × 3: a row of 576 is covered without a remainder. Other lanes deal
        # with fewer rows, so there BN is always 8.
        if columns % 192 == 0 and columns % 256:
            return Config(8, 192, 1)
        return Config(8 if tokens <= 4 else 4, 256, 1)
    few = tokens <= 2
    block = 8 if few and rows >= MANY_ROWS else 4
    depth = min(4 if few else 2, max(1, -(-columns // 256)))
    return Config(block, 256, depth)
