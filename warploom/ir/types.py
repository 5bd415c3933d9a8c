"""Types of IR values. A layout on a `Regs` type is an annotation: equality ignores it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from warploom.base.dtypes import DType
from warploom.ir.layout.layout import Layout
from warploom.ir.layout.shared import SharedLayout


class Uniformity(IntEnum):
    """Over which set of actors a scalar has one value; larger means less uniform."""

    GRID = 0
    BLOCK = 1
    ROLE = 2
    WARP = 3


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value for all threads of the set named by `uniform`."""

    dtype: DType
    uniform: Uniformity = Uniformity.GRID

    def __str__(self) -> str:
        return f"{self.dtype.name}@{self.uniform.name.lower()}"


@dataclass(frozen=True, slots=True)
class Tile:
    """Stages tile and roles: a logical array of a role, any positive extents, `()` allowed.

    `pending`: the matrix unit may still be writing it; only another product and a wait take it.
    """

    dtype: DType
    shape: tuple[int, ...]
    layout: Layout | None = field(default=None, compare=False)
    pending: bool = False

    def __str__(self) -> str:
        return f"{self.dtype.name}<{'x'.join(map(str, self.shape))}{'~' if self.pending else ''}>"


@dataclass(frozen=True, slots=True)
class Regs:
    """Machine stage: one register extent a tile axis, for every thread; extent 1 broadcasts."""

    dtype: DType
    extents: tuple[int, ...]
    layout: Layout | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{'x'.join(map(str, self.extents))}]"


@dataclass(frozen=True, slots=True)
class TensorClass:
    """What a compiled variant is specialised on, for one tensor argument.

    `strides`: one letter an axis, "0", "1" or "n" (any other). `align`: largest power of two ≤ 16
    bytes dividing the base address and every "n" stride. `extent_pow2`: largest power of two ≤ 16
    (elements) dividing the extent of the stride-1 axis (16 where there is none). `aliased`:
    overlaps an argument that is written. `wide`: some offset may not fit 32 bits.
    """

    strides: str
    align: int = 16
    extent_pow2: int = 16
    aliased: bool = False
    wide: bool = False

    def __str__(self) -> str:
        flags = (", aliased" if self.aliased else "") + (", wide" if self.wide else "")
        return f"{self.strides or '-'}, align {self.align}, extent {self.extent_pow2}{flags}"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory."""

    dtype: DType
    rank: int
    cls: TensorClass

    def __str__(self) -> str:
        return f"tensor<{self.dtype.name}, {self.cls}>"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in the block's shared memory, addressed by element."""

    dtype: DType
    elements: int

    def __str__(self) -> str:
        return f"buffer<{self.dtype.name}, {self.elements}>"


@dataclass(frozen=True, slots=True)
class SharedTile:
    """Stages tile and roles: a tile in shared memory, or `slots` of them one after another.

    `layout` is of the tile as stored; `order` says which stored axis is axis i of the tile, so that
    a transposed view moves nothing. At the machine stage such a value has become a byte address.
    """

    dtype: DType
    shape: tuple[int, ...]
    layout: SharedLayout
    order: tuple[int, ...]
    slots: int = 0

    def __str__(self) -> str:
        slots = f"{self.slots} of " if self.slots else ""
        order = "".join(map(str, self.order))
        shape = "x".join(map(str, self.shape))
        return f"shared<{slots}{self.dtype.name} {shape} @{order} {self.layout}>"

    @property
    def slot_bytes(self) -> int:
        """Bytes from one slot to the next."""
        return -(-self.layout.bytes // self.layout.align) * self.layout.align


@dataclass(frozen=True, slots=True)
class Barriers:
    """Stages tile and roles: `count` mbarriers of 8 bytes in shared memory. At the machine stage
    such a value has become a byte address."""

    count: int

    def __str__(self) -> str:
        return f"barriers<{self.count}>"


@dataclass(frozen=True, slots=True)
class RemoteBarrier:
    """Stages tile and roles: one mbarrier of a block of the cluster, which can only be arrived at.
    At the machine stage such a value has become an address in the cluster."""

    def __str__(self) -> str:
        return "remote_barrier<>"


@dataclass(frozen=True, slots=True)
class RemoteTile:
    """Stages tile and roles: the shared tile at the place of `tile` in a block of the cluster. At
    the machine stage such a value has become an address in the cluster."""

    tile: SharedTile

    def __str__(self) -> str:
        return f"remote_{self.tile}"

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.tile.dtype


Type: TypeAlias = (
    Scalar | Tile | Regs | Tensor | Buffer | SharedTile | Barriers | RemoteBarrier | RemoteTile
)


def broadcast(*extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common extents of register or tile shapes of one rank (1 stretches), or None."""
    if len({len(e) for e in extents}) != 1:
        return None
    out = []
    for axis in zip(*extents, strict=True):
        wide = {n for n in axis if n != 1}
        if len(wide) > 1:
            return None
        out.append(wide.pop() if wide else 1)
    return tuple(out)
