"""Where a register tile stands in C++: a variable or array, and how its registers are numbered.

A view, slice or spread is another place over the same variable. Knows no operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from warploom.codegen.names import REGISTER_LOOPS


@dataclass(frozen=True, slots=True)
class Place:
    """Register (i, j, …) of a value is `root[offset + i·strides[0] + j·strides[1] + …]`, or `root`
    itself where it is no array. Axes of extent 1 have stride 0.

    `variable`: root names a variable, so that its address can be taken. `mutable`: a storage that
    later operations may overwrite, so that no other value may be a view of it.
    """

    root: str
    extents: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0
    array: bool = False
    variable: bool = True
    mutable: bool = False

    @classmethod
    def of(cls, root: str, extents: tuple[int, ...], mutable: bool = False) -> Place:
        """A variable of its own: registers row-major, a plain scalar where there is only one."""
        return cls(root, extents, row_major(extents), 0, prod(extents) > 1, True, mutable)

    @classmethod
    def expression(cls, text: str, extents: tuple[int, ...] = ()) -> Place:
        """A literal or a kernel parameter's name: no address, never changes."""
        return cls(text, extents, (0,) * len(extents), 0, False, False, False)

    def at(self, index: str) -> str:
        """The register whose number, computed by `walk`, is `index`."""
        return f"{self.root}[{index}]" if self.array else self.root

    @property
    def only(self) -> str:
        """The one register of a place that has one."""
        return self.at(str(self.offset))

    def view(self, axes: tuple[int, ...]) -> Place:
        """Axis i of the result is axis axes[i], or a new one of extent 1 for −1."""
        extents = tuple(1 if a < 0 else self.extents[a] for a in axes)
        strides = tuple(0 if a < 0 else self.strides[a] for a in axes)
        return replace(self, extents=extents, strides=strides)

    def spread(self, extents: tuple[int, ...]) -> Place:
        """Repeated along axes of extent 1."""
        pairs = zip(self.strides, self.extents, extents, strict=True)
        strides = tuple(0 if old != new else stride for stride, old, new in pairs)
        return replace(self, extents=extents, strides=strides)

    def slice(self, axis: int, start: int, size: int) -> Place:
        """Registers start … start + size − 1 along an axis."""
        extents = self.extents[:axis] + (size,) + self.extents[axis + 1 :]
        strides = self.strides
        if size == 1:
            strides = strides[:axis] + (0,) + strides[axis + 1 :]
        offset = self.offset + start * self.strides[axis]
        return replace(self, extents=extents, strides=strides, offset=offset)

    def groups(self, axis: int, vec: int) -> Place:
        """The first registers of the vector groups along an axis."""
        if vec == 1:
            return self
        extents = self.extents[:axis] + (self.extents[axis] // vec,) + self.extents[axis + 1 :]
        strides = self.strides[:axis] + (self.strides[axis] * vec,) + self.strides[axis + 1 :]
        return replace(self, extents=extents, strides=strides)


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop over registers."""

    variable: str
    extent: int

    def __str__(self) -> str:
        v = self.variable
        return f"UNROLL for (int {v} = 0; {v} < {self.extent}; ++{v})"


@dataclass(frozen=True, slots=True)
class Walk:
    """Loops over the registers of some extents, and the register of each place inside them."""

    loops: tuple[Loop, ...]
    registers: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def header(self) -> str:
        """The loops in front of one statement."""
        return "".join(f"{loop} " for loop in self.loops)


def walk(extents: tuple[int, ...], *places: Place) -> Walk:
    """Loops over `extents`, as few as the places allow; an extent of 1 in a place repeats.

    Neighbouring axes become one loop where every place numbers them consecutively.
    """
    groups: list[tuple[int, list[int]]] = []
    for axis in reversed(range(len(extents))):
        if extents[axis] == 1:
            continue
        strides = [p.strides[axis] for p in places]
        if groups:
            extent, inner = groups[-1]
            if all(s == i * extent for s, i in zip(strides, inner, strict=True)):
                groups[-1] = (extent * extents[axis], inner)
                continue
        groups.append((extents[axis], strides))
    groups.reverse()
    loops = tuple(Loop(REGISTER_LOOPS[n], extent) for n, (extent, _) in enumerate(groups))
    strides = tuple(tuple(g[number] for _, g in groups) for number in range(len(places)))
    registers = tuple(
        p.at(index_text(loops, s, p.offset)) for p, s in zip(places, strides, strict=True)
    )
    return Walk(loops, registers, strides)


def index_text(loops: Sequence[Loop], strides: Sequence[int], offset: int) -> str:
    """offset + Σ stride · variable, without what is zero."""
    terms = []
    for loop, stride in zip(loops, strides, strict=True):
        if stride:
            terms.append(loop.variable if stride == 1 else f"{stride} * {loop.variable}")
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms)


def row_major(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of registers numbered row by row; 0 on axes of extent 1."""
    strides = []
    step = 1
    for extent in reversed(extents):
        strides.append(step if extent > 1 else 0)
        step *= extent
    return tuple(reversed(strides))
