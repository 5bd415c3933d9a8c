"""Tiles in the shared memory of other blocks of the cluster. Knows no barrier: what completes on
one is in `copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.base.dtypes import DType
from warploom.ir.op import Value
from warploom.ir.ops import remote
from warploom.language import core
from warploom.language.context import Handle, Refused, builder
from warploom.language.values import Tile, need_tile

if TYPE_CHECKING:
    from warploom.language.shared import Shared


class RemoteShared(Handle):
    """A tile in the shared memory of a block of the cluster, at the place of the block's own; views
    of it move nothing."""

    attributes = ("dtype", "shape", "T", "load", "store")
    hint = "load it to registers: `t = tile.on(rank).load()`"
    absent = "a peer's tile is loaded, stored, or the target of `wl.store_async`, `wl.copy_bulk`"

    def __init__(self, own: Shared, rank: Value) -> None:
        self.own, self.rank = own, rank

    def __repr__(self) -> str:
        return f"{self.own!r} of another block"

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.own.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one slot."""
        return self.own.shape

    @property
    def T(self) -> RemoteShared:
        """The transposed view."""
        return RemoteShared(self.own.T, self.rank)

    def __getitem__(self, index: Any) -> RemoteShared:
        """A slot `ring.on(rank)[i]`, or a window as of the tile itself."""
        return RemoteShared(self.own[index], self.rank)

    def value(self) -> Value:
        """The tile in the IR; refuses several slots."""
        self.own.check_single()
        return builder().emit(remote.TileOn(tile=self.own.value, rank=self.rank))

    def check_fits(self, tile: Any, argument: str = "tile") -> Tile:
        """A tile of registers that is to be written here; refuses another shape or dtype."""
        held = need_tile(tile, argument)
        if held.shape != self.shape or held.dtype != self.dtype:
            raise Refused(
                "T005",
                f"{core.describe(held.value)} does not fit {self!r}",
                argument=argument,
                hint=f"cast it: `.cast(wl.{self.dtype})`" if held.shape == self.shape else "",
            )
        return held

    def load(self) -> Tile:
        """The elements in registers. It takes the way to the peer and back: where the peer can
        write to this block instead, that is faster.

        Shapes: that of the tile.
        Executes: the role.
        Since: sm_90.
        PTX: ld.shared::cluster.
        """
        return Tile(builder().emit(remote.Load(source=self.value())))

    def store(self, tile: Tile) -> None:
        """Write a tile of registers; the peer sees it behind a wait for an arrival made after it
        (`bar.on(rank).arrive()`), or behind `wl.cluster_sync()`.

        Shapes: equal, and so are the dtypes.
        Executes: the role.
        Since: sm_90.
        PTX: st.shared::cluster.
        """
        held = self.check_fits(tile)
        builder().add(remote.Store(target=self.value(), value=held.value))
