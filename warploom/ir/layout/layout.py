"""Register layouts: which (warp, lane, register) holds which coordinate of a tile, as a product of
mixed-radix modes. Pure and hashable; knows neither dtypes nor addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod

import numpy as np

LANES = 32


class Place(Enum):
    """Where a digit comes from."""

    REG = "r"
    LANE = "l"
    WARP = "w"


@dataclass(frozen=True, slots=True)
class Mode:
    """One digit: `extent` values taken from `place`, each worth `stride` coordinates on `axis`.

    `axis` None is replication: all values of the digit hold the same elements.
    """

    place: Place
    extent: int
    axis: int | None
    stride: int = 0

    def __str__(self) -> str:
        if self.axis is None:
            return f"{self.place.value}{self.extent}:_"
        return f"{self.place.value}{self.extent}:{self.axis}*{self.stride}"


@dataclass(frozen=True)
class Layout:
    """A tile of `shape` over `warps` warps of 32 lanes.

    Modes of one place stand fastest first; register digits count within their own axis. Coordinates
    beyond `shape` are pad elements with unspecified values.
    """

    shape: tuple[int, ...]
    modes: tuple[Mode, ...]
    warps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "modes", _canonical(self.modes))
        for place, total in ((Place.LANE, LANES), (Place.WARP, self.warps)):
            product = 1
            for mode in self.modes:
                if mode.place is place:
                    product *= mode.extent
            if product != total:
                raise ValueError(f"{place.name.lower()} digits multiply to {product}, not {total}")
        if any(m.place is Place.REG and m.axis is None for m in self.modes):
            raise ValueError("a register digit needs an axis")

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"({shape}; {' '.join(map(str, self.modes))})"

    # ---- reading ---------------------------------------------------------------------------

    def divisor(self, mode: Mode) -> int:
        """What the lane or warp number (or the axis's register number) is divided by for a
        digit."""
        product = 1
        for other in self.modes:
            if other is mode:
                return product
            same_axis = mode.place is not Place.REG or other.axis == mode.axis
            if other.place is mode.place and same_axis:
                product *= other.extent
        raise ValueError(f"{mode} is not a mode of {self}")

    def of(self, place: Place, axis: int | None) -> tuple[Mode, ...]:
        """The modes of a place that feed an axis, fastest first."""
        return tuple(m for m in self.modes if m.place is place and m.axis == axis)

    @cached_property
    def reg_extents(self) -> tuple[int, ...]:
        """Register extent of every axis."""
        return tuple(len(self.reg_values(axis)) for axis in range(len(self.shape)))

    def reg_values(self, axis: int) -> tuple[int, ...]:
        """Coordinate contributed by each register number of an axis."""
        values = [0]
        for mode in self.of(Place.REG, axis):
            values = [v + d * mode.stride for d in range(mode.extent) for v in values]
        return tuple(values)

    def covered(self, axis: int) -> int:
        """Extent that the digits reach on an axis; more than the shape where the tile is padded."""
        return 1 + sum((m.extent - 1) * m.stride for m in self.modes if m.axis == axis)

    def is_padded(self, axis: int) -> bool:
        return self.covered(axis) > self.shape[axis]

    @property
    def replicas(self) -> tuple[Mode, ...]:
        """Lane and warp digits without an axis: effects belong to digit 0 of each."""
        return tuple(m for m in self.modes if m.axis is None and m.extent > 1)

    def run(self, axis: int) -> int:
        """Number of consecutive registers of an axis that hold consecutive coordinates."""
        length = 1
        for mode in self.of(Place.REG, axis):
            if mode.stride != length:
                break
            length *= mode.extent
        return length

    def coordinates(self, axis: int) -> np.ndarray:
        """Coordinates on an axis as an integer array [registers of the axis, warps, lanes]."""
        total = np.array(self.reg_values(axis)).reshape(-1, 1, 1)
        for place, count in ((Place.WARP, self.warps), (Place.LANE, LANES)):
            number = np.arange(count).reshape((1, -1, 1) if place is Place.WARP else (1, 1, -1))
            for mode in self.of(place, axis):
                total = total + number // self.divisor(mode) % mode.extent * mode.stride
        return np.broadcast_to(total, (total.shape[0], self.warps, LANES))

    # ---- making others ---------------------------------------------------------------------

    def collapse(self, axis: int) -> Layout:
        """Extent 1 on an axis: its registers go, its lane and warp digits become replication."""
        modes = tuple(
            Mode(m.place, m.extent, None) if m.axis == axis else m
            for m in self.modes
            if not (m.axis == axis and m.place is Place.REG)
        )
        shape = self.shape[:axis] + (1,) + self.shape[axis + 1 :]
        return Layout(shape, modes, self.warps)

    def drop(self, axis: int) -> Layout:
        """Remove an axis; what fed it is replicated."""
        flat = self.collapse(axis)
        modes = tuple(_renumber(m, lambda a: a - (a > axis)) for m in flat.modes)
        return Layout(self.shape[:axis] + self.shape[axis + 1 :], modes, self.warps)

    def insert(self, axis: int) -> Layout:
        """Add an axis of extent 1 before `axis`."""
        modes = tuple(_renumber(m, lambda a: a + (a >= axis)) for m in self.modes)
        return Layout(self.shape[:axis] + (1,) + self.shape[axis:], modes, self.warps)

    def window(self, axis: int, start: int, size: int) -> tuple[Layout, int, int] | None:
        """The layout of `size` coordinates from `start` on along an axis, with the first register
        of the axis and their number; None where lanes or warps, not whole registers, hold them."""
        if start == 0 and size == self.shape[axis]:
            return self, 0, self.reg_extents[axis]
        modes = [m for m in self.modes if m.axis == axis]
        slowest = max(modes, key=lambda m: m.stride, default=None)
        if slowest is None or slowest.place is not Place.REG or self.is_padded(axis):
            return None
        step = slowest.stride
        if start % step or size % step:
            return None
        kept = tuple(
            Mode(m.place, size // step, m.axis, m.stride) if m is slowest else m for m in self.modes
        )
        shape = self.shape[:axis] + (size,) + self.shape[axis + 1 :]
        unit = self.reg_extents[axis] // slowest.extent
        return Layout(shape, kept, self.warps), start // step * unit, size // step * unit

    def permute(self, order: tuple[int, ...]) -> Layout:
        """Axis i of the result is axis order[i] of this layout."""
        place = {old: new for new, old in enumerate(order)}
        modes = tuple(_renumber(m, lambda a: place[a]) for m in self.modes)
        return Layout(tuple(self.shape[a] for a in order), modes, self.warps)


def _renumber(mode: Mode, rule: Callable[[int], int]) -> Mode:
    if mode.axis is None:
        return mode
    return Mode(mode.place, mode.extent, rule(mode.axis), mode.stride)


def _canonical(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Equal layouts have equal modes: lanes, warps, then registers by axis; digits of extent 1 go
    and neighbours that count as one digit are one."""
    ordered = [m for m in modes if m.place is Place.LANE] + [
        m for m in modes if m.place is Place.WARP
    ]
    ordered += sorted((m for m in modes if m.place is Place.REG), key=lambda m: m.axis or 0)
    kept: list[Mode] = []
    for mode in ordered:
        if mode.extent == 1:
            continue
        last = kept[-1] if kept else None
        if last is not None and _continues(last, mode):
            kept[-1] = Mode(last.place, last.extent * mode.extent, last.axis, last.stride)
        else:
            kept.append(mode)
    return tuple(kept)


def _continues(low: Mode, high: Mode) -> bool:
    """Whether two neighbouring digits count as one."""
    if low.place is not high.place or low.axis != high.axis:
        return False
    return high.axis is None or high.stride == low.stride * low.extent


_MODE = re.compile(r"([rlw])(\d+):(?:(_)|(\d+)\*(\d+))$")


def parse(text: str) -> Layout:
    """Read back what `str(layout)` prints."""
    shape_text, _, modes_text = text.strip("() ").partition(";")
    shape = tuple(int(n) for n in shape_text.split("x")) if shape_text.strip() else ()
    modes = []
    for word in modes_text.split():
        found = _MODE.match(word)
        if found is None:
            raise ValueError(f"not a layout mode: {word}")
        place, extent, replicated, axis, stride = found.groups()
        where = None if replicated else int(axis)
        modes.append(Mode(Place(place), int(extent), where, 0 if replicated else int(stride)))
    warps = prod(m.extent for m in modes if m.place is Place.WARP)
    return Layout(shape, tuple(modes), warps)
