"""The accumulator of the matrix unit, held against the figure of the PTX ISA."""

import itertools

import pytest

from warploom.ir.layout.fragments import accumulator


def place(layout, axis, register, warp, lane):
    return int(layout.coordinates(axis)[register, warp, lane])


@pytest.mark.parametrize("columns", [8, 16, 96, 256])
@pytest.mark.parametrize(("rows", "warps"), [(64, 4), (128, 4), (256, 4), (128, 8), (256, 8)])
def test_each_register_is_where_the_figure_has_it(rows, columns, warps):
    """PTX ISA, "Register fragments for wgmma": d[4j + 2h + e] of lane l in warp w of a warpgroup is
    row 16w + l / 4 + 8h, column 8j + 2(l mod 4) + e. Warpgroups take 64-row blocks in turn."""
    layout = accumulator((rows, columns), warps)
    groups = warps // 4
    assert layout.reg_extents == (rows // (32 * groups), columns // 4)
    for warp, lane in itertools.product(range(warps), range(0, 32, 5)):
        group, inside = divmod(warp, 4)
        for block, half in itertools.product(range(rows // (64 * groups)), range(2)):
            row = 64 * (group + groups * block) + 16 * inside + lane // 4 + 8 * half
            assert place(layout, 0, 2 * block + half, warp, lane) == row
        for j, e in itertools.product(range(columns // 8), range(2)):
            assert place(layout, 1, 2 * j + e, warp, lane) == 8 * j + 2 * (lane % 4) + e


@pytest.mark.parametrize(
    ("shape", "warps"), [((32, 8), 4), ((64, 4), 4), ((64, 8), 8), ((64, 8), 2), ((96, 8), 4)]
)
def test_what_is_no_accumulator(shape, warps):
    with pytest.raises(ValueError, match="a fragment of"):
        accumulator(shape, warps)


def test_slices_of_whole_columns_are_registers():
    layout = accumulator((64, 64), 4)
    found = layout.window(1, 16, 32)
    assert found is not None
    part, first, size = found
    assert part == accumulator((64, 32), 4)
    assert (first, size) == (4, 8)
    assert layout.window(1, 4, 32) is None, "half of a group of 8 columns lies in other lanes"
    assert layout.window(0, 0, 32) is None, "warps hold the rows"
