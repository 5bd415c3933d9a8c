"""Which tile a linear call uses. A table by dtype and row length; no measurement at run time.

A row's sums are dealt to lanes and warps by its length and the dtype of the weights alone, and
tiles are added in the order of k: so results depend on neither the number of tokens nor that of
rows, and not on the device. Figures: H200, one token, weights cold.
"""

from dataclasses import dataclass

# Tokens of one launch: their sums live in registers side by side.
MOST_TOKENS = 8
# Rows up to this length are requested as a whole before the first product (1.9 µs for 576 × 576
# against 2.7 in three steps).
SHORT = 768


@dataclass(frozen=True, slots=True)
class Config:
    """BN rows × BK columns a tile, DEPTH tiles in flight."""

    BN: int
    BK: int
    DEPTH: int

    def constants(self) -> dict[str, int]:
        """The compile-time arguments of the kernel."""
        return {"BN": self.BN, "BK": self.BK, "DEPTH": self.DEPTH}


def choose(dtype: str, tokens: int, columns: int) -> Config:
    """The tile for `tokens` × `columns` activations and rows of `columns` weights of `dtype`."""
    few = tokens <= 2
    if dtype == "f32":
        # 16 lanes × 4 elements × 3: a row of 576 is covered without a remainder. Other lanes deal
        # with fewer rows, so there BN is always 8.
        if columns % 192 == 0 and columns % 256:
            return Config(8, 192, 1)
        return Config(8 if tokens <= 4 else 4, 256, 1)
    if columns <= SHORT:
        # One warp a row.
        tiles = max(1, -(-columns // 256))
        return Config(4, 256, tiles if few else min(tiles, 2))
    # Two warps a row.
    tiles = -(-columns // 512)
    return Config(2, 512, (tiles if tiles <= 3 else 2) if few else 1)
