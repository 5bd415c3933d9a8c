"""The algebra of register layouts: what each operation does to the elements that threads hold."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.ir.layout.layout import LANES, Layout, Mode, Place, parse
from warploom.ir.layout.natural import natural

SHAPES = st.lists(st.sampled_from((1, 2, 3, 7, 8, 24, 80)), min_size=1, max_size=3).map(tuple)
WARPS = st.sampled_from((1, 2, 3, 4, 8))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any layout, not only those that tiles get: digits in any order, pads, replication."""
    rank = draw(st.integers(1, 3))
    warps = draw(WARPS)
    modes: list[Mode] = []
    reach = [1] * rank
    digits = [(Place.LANE, n) for n in draw(st.sampled_from(((32,), (4, 8), (2, 8, 2), (8, 4))))]
    digits += [(Place.WARP, n) for n in draw(st.sampled_from(_splits(warps)))]
    digits += [(Place.REG, n) for n in draw(st.lists(st.sampled_from((2, 3, 4)), max_size=3))]
    for place, extent in draw(st.permutations(digits)):
        axis = draw(
            st.sampled_from((*range(rank), None) if place is not Place.REG else range(rank))
        )
        if axis is None:
            modes.append(Mode(place, extent, None))
        else:
            modes.append(Mode(place, extent, axis, reach[axis]))
            reach[axis] *= extent
    shape = tuple(draw(st.integers(1, n)) for n in reach)
    return Layout(shape, tuple(modes), warps)


def _splits(warps: int) -> list[tuple[int, ...]]:
    return {1: [()], 2: [(2,)], 3: [(3,)], 4: [(4,), (2, 2)], 8: [(8,), (2, 4), (2, 2, 2)]}[warps]


def elements(layout: Layout) -> np.ndarray:
    """Coordinates [registers…, warps, lanes, axis] of what every thread holds."""
    rank = len(layout.shape)
    full = (*layout.reg_extents, layout.warps, LANES)
    out = np.zeros((*full, rank), int)
    for axis in range(rank):
        shape = tuple(-1 if a == axis else 1 for a in range(rank))
        held = layout.coordinates(axis)
        out[..., axis] = held.reshape(shape + held.shape[1:])
    return out


def flat(layout: Layout) -> np.ndarray:
    """`elements` by (warp, lane), registers in one row."""
    held = elements(layout)
    rank = len(layout.shape)
    registers = prod(layout.reg_extents)
    return np.moveaxis(held.reshape(registers, layout.warps, LANES, rank), 0, 2)


@given(layouts())
def test_digits_are_taken_from_lane_warp_and_register_numbers(layout: Layout) -> None:
    held = elements(layout)
    rng = np.random.default_rng(0)
    for _ in range(20):
        place = tuple(int(rng.integers(n)) for n in held.shape[:-1])
        registers, (warp, lane) = place[:-2], place[-2:]
        for axis in range(len(layout.shape)):
            expected = 0
            left = {Place.REG: registers[axis], Place.WARP: warp, Place.LANE: lane}
            for mode in layout.modes:
                if mode.place is Place.REG and mode.axis != axis:
                    continue
                digit = left[mode.place] % mode.extent
                left[mode.place] //= mode.extent
                expected += digit * mode.stride if mode.axis == axis else 0
            assert held[(*place, axis)] == expected


@given(layouts(), st.data())
def test_collapse_forgets_an_axis_and_keeps_the_others(layout: Layout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    small = layout.collapse(axis)
    assert small.shape == (*layout.shape[:axis], 1, *layout.shape[axis + 1 :])
    assert small.reg_extents[axis] == 1
    assert not small.coordinates(axis).any()
    for other in set(range(len(layout.shape))) - {axis}:
        assert (small.coordinates(other) == layout.coordinates(other)).all()
    assert small.collapse(axis) == small


@given(layouts(), st.data())
def test_insert_and_drop_are_inverse(layout: Layout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(layout.shape)))
    wide = layout.insert(axis)
    assert wide.shape == (*layout.shape[:axis], 1, *layout.shape[axis:])
    assert wide.drop(axis) == layout
    assert hash(wide.drop(axis)) == hash(layout)


@given(layouts(), st.data())
def test_drop_is_collapse_without_the_axis(layout: Layout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    kept = [a for a in range(len(layout.shape)) if a != axis]
    dropped = layout.drop(axis)
    for new, old in enumerate(kept):
        assert (dropped.coordinates(new) == layout.coordinates(old)).all()
    assert dropped.insert(axis) == layout.collapse(axis)


@given(layouts(), st.data())
def test_permute_moves_axes_and_comes_back(layout: Layout, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(layout.shape)))))
    moved = layout.permute(order)
    for new, old in enumerate(order):
        assert (moved.coordinates(new) == layout.coordinates(old)).all()
        assert moved.shape[new] == layout.shape[old]
    back = tuple(order.index(a) for a in range(len(order)))
    assert moved.permute(back) == layout


@given(layouts(), layouts())
def test_equal_layouts_hold_equal_elements_and_the_other_way_round(a: Layout, b: Layout) -> None:
    if a.warps != b.warps or a.shape != b.shape:
        assert a != b
        return
    same = a.reg_extents == b.reg_extents and bool((elements(a) == elements(b)).all())
    assert (a == b) == same


@given(layouts(), st.data())
def test_splitting_a_digit_makes_no_other_layout(layout: Layout, data: st.DataObject) -> None:
    modes: list[Mode] = []
    for mode in layout.modes:
        low = data.draw(st.sampled_from([n for n in (1, 2, 3, 4, 8) if mode.extent % n == 0]))
        modes.append(Mode(mode.place, low, mode.axis, mode.stride))
        modes.append(Mode(mode.place, mode.extent // low, mode.axis, mode.stride * low))
    again = Layout(layout.shape, tuple(modes), layout.warps)
    assert again == layout
    assert hash(again) == hash(layout)


@given(layouts())
def test_print_and_parse(layout: Layout) -> None:
    assert parse(str(layout)) == layout
    assert str(parse(str(layout))) == str(layout)


@given(layouts())
def test_replicas_hold_the_same_and_their_first_ones_hold_everything(layout: Layout) -> None:
    held = flat(layout)
    number = {Place.LANE: np.arange(LANES)[None, :], Place.WARP: np.arange(layout.warps)[:, None]}
    first = np.ones((layout.warps, LANES), bool)
    for mode in layout.replicas:
        first &= number[mode.place] // layout.divisor(mode) % mode.extent == 0
    copies = first.size // first.sum()
    assert copies == np.prod([m.extent for m in layout.replicas], dtype=int)
    rows = {tuple(r.ravel()) for r in held[first]}
    assert len(rows) == first.sum(), "two threads of replica 0 hold the same elements"
    assert {tuple(r.ravel()) for r in held.reshape(-1, *held.shape[2:])} == rows


@given(layouts())
def test_covered_is_one_more_than_the_largest_coordinate(layout: Layout) -> None:
    for axis, extent in enumerate(layout.shape):
        assert layout.covered(axis) == layout.coordinates(axis).max() + 1
        assert layout.is_padded(axis) == (layout.coordinates(axis).max() >= extent)


@given(layouts())
def test_a_run_of_registers_is_consecutive_and_no_longer_one_is(layout: Layout) -> None:
    for axis in range(len(layout.shape)):
        values = np.array(layout.reg_values(axis))
        run = layout.run(axis)
        assert len(values) % run == 0
        groups = values.reshape(-1, run)
        assert (groups == groups[:, :1] + np.arange(run)).all()
        if run < len(values):
            assert values[run] != values[run - 1] + 1


def test_scalars_have_a_layout() -> None:
    layout = natural((), 4, 2)
    assert layout.reg_extents == ()
    assert [m.extent for m in layout.replicas] == [32, 2]
    assert parse(str(layout)) == layout


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ((Mode(Place.LANE, 16, 0, 1),), "lane digits multiply to 16, not 32"),
        (
            (Mode(Place.LANE, 32, 0, 1), Mode(Place.WARP, 3, 0, 32)),
            "warp digits multiply to 3, not 4",
        ),
        (
            (Mode(Place.LANE, 32, 0, 1), Mode(Place.WARP, 4, None), Mode(Place.REG, 2, None)),
            "a register digit needs an axis",
        ),
    ],
)
def test_digits_must_make_up_lanes_and_warps(modes: tuple[Mode, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Layout((32,), modes, 4)


@pytest.mark.parametrize("text", ["(8; l32:_ x4:0*1)", "(8; l32:0)", "(8; 32:_)"])
def test_text_that_is_no_layout(text: str) -> None:
    with pytest.raises(ValueError, match="not a layout mode"):
        parse(text)


def test_a_mode_of_another_layout_has_no_divisor() -> None:
    layout = natural((8,), 4, 1)
    with pytest.raises(ValueError, match="is not a mode of"):
        layout.divisor(Mode(Place.LANE, 2, 0, 64))


@settings(max_examples=200)
@given(SHAPES, st.sampled_from((1, 2, 4, 8, 16)), WARPS)
def test_laws_hold_for_the_layouts_that_tiles_get(
    shape: tuple[int, ...], vector: int, warps: int
) -> None:
    layout = natural(shape, vector, warps)
    for axis in range(len(shape)):
        assert layout.drop(axis).insert(axis) == layout.collapse(axis)
    order = tuple(reversed(range(len(shape))))
    assert layout.permute(order).permute(order) == layout
