"""Which tile a linear call uses. A table by dtype and sizes; no measurement at run time, no device.

A row's sums are dealt to lanes by its length and the dtype of the weights alone, and tiles are
added in the order of k: so a result depends on neither the number of tokens nor that of rows.
Figures: H200, bf16, weights cold.
"""

from dataclasses import dataclass

# Tokens of one launch: their sums live in registers side by side.
MOST_TOKENS = 8
# Tiles of weights in flight for one token, and for a few.
DEEPEST = 6
DEEP = 3
# Rows from which on several tokens take two rows a warp: activations are read half as often, and
# enough blocks are left.
MANY_ROWS = 2048


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
    # One warp a row, or two rows a warp: 32 lanes × 8 elements either way.
    tiles = max(1, -(-columns // 256))
    if tokens > 2 and rows >= MANY_ROWS:
        return Config(8, 256, 1)
    return Config(4, 256, min(tiles, DEEPEST if tokens == 1 else DEEP))
