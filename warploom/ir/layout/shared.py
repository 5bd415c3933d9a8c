"""Shared-memory layouts: where an element of a tile lies, in bytes, with the XOR swizzle of the
copy engine and the matrix unit. Pure and hashable; knows no buffer and no instruction."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

SWIZZLES = (0, 32, 64, 128)
ATOM_ROWS = 8  # after which a swizzle repeats
_LEAST_ALIGN = 128  # bytes, of what the copy engine reads or writes


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """A tile stored as rows of `shape[-1]` contiguous elements of `itemsize` bytes.

    With a swizzle of `swizzle` bytes the last axis is cut into panels of that many bytes: a panel
    holds all rows (padded to whole atoms of 8), `swizzle` bytes each, and the 16-byte chunk number
    within the span is xored with the number of the 128-byte line (modulo the chunks of a span).
    Without a swizzle there is one panel. A tile wider than the span is a row of panels, each the
    target of one copy box. Source: PTX ISA, "Tensor swizzling modes".
    """

    shape: tuple[int, ...]
    itemsize: int
    swizzle: int = 0

    def __post_init__(self) -> None:
        if self.swizzle not in SWIZZLES:
            raise ValueError(f"a swizzle of {self.swizzle} bytes")
        if self.swizzle and self.row_bytes % self.swizzle:
            raise ValueError(f"rows of {self.row_bytes} bytes under a swizzle of {self.swizzle}")

    def __str__(self) -> str:
        return f"({'x'.join(map(str, self.shape))}; {self.itemsize} B; swizzle {self.swizzle})"

    @property
    def row_bytes(self) -> int:
        """Bytes of one row over all panels."""
        return self.shape[-1] * self.itemsize

    @property
    def rows(self) -> int:
        """Rows: the product of all axes but the last."""
        return prod(self.shape[:-1])

    @property
    def panel_columns(self) -> int:
        """Elements of a row within one panel."""
        return self.swizzle // self.itemsize if self.swizzle else self.shape[-1]

    @property
    def panels(self) -> int:
        """Number of panels."""
        return self.shape[-1] // self.panel_columns

    @property
    def panel_bytes(self) -> int:
        """Bytes from one panel to the next."""
        step = ATOM_ROWS if self.swizzle else 1
        return -(-self.rows // step) * step * self.panel_columns * self.itemsize

    @property
    def bytes(self) -> int:
        """Bytes of the tile, padding of rows included."""
        return self.panels * self.panel_bytes

    @property
    def align(self) -> int:
        """Bytes that the base address must be a multiple of: the swizzle atom, at least 128."""
        return max(_LEAST_ALIGN, ATOM_ROWS * self.swizzle)

    @property
    def chunk_mask(self) -> int:
        """Chunks of 16 bytes in a span, less one: the bits that the xor may change."""
        return self.swizzle // 16 - 1 if self.swizzle else 0

    def byte_of(self, row: int, column: int) -> int:
        """Byte of the element (row, column)."""
        panel, inside = divmod(column, self.panel_columns)
        byte = inside * self.itemsize
        if self.swizzle:
            # The xor takes address bits above the chunk: 128-byte lines, whatever the span.
            line = (row * self.swizzle) // 128
            chunk = (byte // 16) ^ (line & self.chunk_mask)
            byte = chunk * 16 + byte % 16
        return panel * self.panel_bytes + row * self.panel_columns * self.itemsize + byte
