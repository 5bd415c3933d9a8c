"""Register layouts that the hardware dictates: one element a thread, and those of the matrix unit.
Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma."""

from __future__ import annotations

from warploom.ir.layout.layout import LANES, Layout, Mode, Place

WARPGROUP = 4  # warps


def accumulator(shape: tuple[int, int], warps: int) -> Layout:
    """The accumulator of an (M, N) product over `warps` warps (4 a warpgroup): 32-bit numbers.

    Warpgroup g holds the 64-row blocks g, g + groups, …; registers of axis 0 are (row, row + 8) of
    each block, those of axis 1 pairs of neighbouring columns.
    """
    return _fragment(shape, warps, 2)


def operand(shape: tuple[int, int], warps: int, itemsize: int) -> Layout:
    """Operand A of an (M, K) product in registers, elements of so many bytes: like an accumulator,
    but neighbouring columns fill a register of 32 bits. For 16 bits the two are the same."""
    return _fragment(shape, warps, 4 // itemsize)


def _fragment(shape: tuple[int, int], warps: int, run: int) -> Layout:
    """`run` neighbouring columns a thread, four threads a row."""
    rows, columns = shape
    groups = warps // WARPGROUP
    if warps % WARPGROUP or rows % (64 * groups) or columns % (4 * run):
        raise ValueError(f"a fragment of {rows}x{columns} over {warps} warps")
    blocks = rows // (64 * groups)
    return Layout(
        shape,
        (
            Mode(Place.LANE, 4, 1, run),
            Mode(Place.LANE, 8, 0, 1),
            Mode(Place.WARP, WARPGROUP, 0, 16),
            Mode(Place.WARP, groups, 0, 64),
            Mode(Place.REG, 2, 0, 8),
            Mode(Place.REG, blocks, 0, 64 * groups),
            *([Mode(Place.REG, run, 1, 1)] if run > 1 else []),
            Mode(Place.REG, columns // (4 * run), 1, 4 * run),
        ),
        warps,
    )


def one_a_thread(warps: int) -> Layout:
    """Element i in thread i of `warps` warps."""
    modes = (Mode(Place.LANE, LANES, 0, 1), Mode(Place.WARP, warps, 0, LANES))
    return Layout((LANES * warps,), modes, warps)


def fragments(shape: tuple[int, int], warps: int) -> Layout:
    """Fragments of a product of single warps: row i of the tile in thread i, and where there are
    more rows than threads, thread i has row i of each step."""
    rows, elements = shape
    threads = LANES * warps
    if rows % threads:
        raise ValueError(f"fragments of {rows} rows over {warps} warps")
    steps = rows // threads
    return Layout(
        shape,
        (
            Mode(Place.LANE, LANES, 0, 1),
            *([Mode(Place.WARP, warps, 0, LANES)] if warps > 1 else []),
            *([Mode(Place.REG, steps, 0, threads)] if steps > 1 else []),
            Mode(Place.REG, elements, 1, 1),
        ),
        warps,
    )


def matrix_rows(shape: tuple[int, int], warps: int) -> Layout:
    """Which element of a tile each lane gives the address of when an accumulator of 16-bit elements
    moves by 8 x 8 matrices: lane 8m + i that of row i of matrix m, the four matrices of a register
    being 16 rows by 16 columns, upper left, lower left, upper right, lower right."""
    return _matrices(shape, warps, Mode(Place.LANE, 16, 0, 1), Mode(Place.LANE, 2, 1, 8))


def matrix_columns(shape: tuple[int, int], warps: int) -> Layout:
    """The same where the rows of matrices are columns of the tile."""
    modes = (Mode(Place.LANE, 8, 1, 1), Mode(Place.LANE, 2, 0, 8), Mode(Place.LANE, 2, 1, 8))
    return _matrices(shape, warps, *modes)


def _matrices(shape: tuple[int, int], warps: int, *lanes: Mode) -> Layout:
    rows, columns = shape
    groups = warps // WARPGROUP
    if warps % WARPGROUP or rows % (64 * groups) or columns % 16:
        raise ValueError(f"matrices of {rows}x{columns} over {warps} warps")
    # Elements that no lane gives an address of: the rest of a row of a matrix, as registers.
    rest = Mode(Place.REG, 8, 1, 1) if lanes[0].axis == 0 else Mode(Place.REG, 8, 0, 1)
    return Layout(
        shape,
        (
            *lanes,
            Mode(Place.WARP, WARPGROUP, 0, 16),
            Mode(Place.WARP, groups, 0, 64),
            rest,
            Mode(Place.REG, rows // (64 * groups), 0, 64 * groups),
            Mode(Place.REG, columns // 16, 1, 16),
        ),
        warps,
    )
