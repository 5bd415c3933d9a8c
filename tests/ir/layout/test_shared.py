"""Where elements of a tile lie in shared memory, held against the swizzle tables of the PTX ISA."""

import itertools

import pytest

from warploom.ir.layout.shared import SharedLayout

# PTX ISA, "Tensor swizzling modes": which 16-byte chunk lies where in the 128-byte lines of an
# atom. A table repeats with the number of lines that it has.
TABLES = {
    128: [
        "01234567",
        "10325476",
        "23016745",
        "32107654",
        "45670123",
        "54761032",
        "67452301",
        "76543210",
    ],
    64: ["01234567", "10325476", "23016745", "32107654"],
    32: ["01234567", "10325476"],
}


@pytest.mark.parametrize(
    ("swizzle", "itemsize", "rows", "panels"),
    list(itertools.product((32, 64, 128), (1, 2, 4), (8, 24), (1, 3))),
)
def test_swizzles_are_those_of_the_copy_engine(swizzle, itemsize, rows, panels):
    wide = swizzle // itemsize
    layout = SharedLayout((rows, panels * wide), itemsize, swizzle)
    for row, column in itertools.product(range(rows), range(panels * wide)):
        panel, inside = divmod(column * itemsize, swizzle)
        # A box is filled row by row; then each chunk of a line changes its place.
        line, byte = divmod(row * swizzle + inside, 128)
        table = TABLES[swizzle][line % len(TABLES[swizzle])]
        chunk = table.index(str(byte // 16))
        expected = panel * rows * swizzle + line * 128 + chunk * 16 + byte % 16
        assert layout.byte_of(row, column) == expected


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("shape", [(8, 64), (5, 128), (3, 4, 64), (256,)])
def test_every_element_has_bytes_of_its_own(shape, swizzle):
    layout = SharedLayout(shape, 2, swizzle)
    starts = [
        layout.byte_of(row, column) for row in range(layout.rows) for column in range(shape[-1])
    ]
    assert len(set(starts)) == len(starts)
    assert all(start % 2 == 0 and 0 <= start < layout.bytes for start in starts)
    assert layout.bytes % layout.align == 0 or layout.panels == 1


def test_without_a_swizzle_rows_follow_each_other():
    layout = SharedLayout((3, 20), 4)
    assert [layout.byte_of(r, c) for r in range(3) for c in range(20)] == list(range(0, 240, 4))
    assert (layout.panels, layout.bytes, layout.align) == (1, 240, 128)


def test_panels_begin_on_atoms():
    layout = SharedLayout((20, 128), 2, 128)
    # The hardware takes the xor from the address: a panel of 20 rows is padded to 24.
    assert layout.panel_bytes == 24 * 128
    assert layout.bytes == 2 * 24 * 128
    assert layout.align == 1024
    assert layout.byte_of(0, 64) % layout.align == 0


@pytest.mark.parametrize(("shape", "swizzle"), [((8, 24), 32), ((8, 32), 128), ((8, 8), 16)])
def test_what_is_no_layout(shape, swizzle):
    with pytest.raises(ValueError, match="swizzle of"):
        SharedLayout(shape, 2, swizzle)
