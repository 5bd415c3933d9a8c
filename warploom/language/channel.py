"""Channels: tiles of registers from one role to others, through shared memory."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import DType
from warploom.language.context import Refused, current, vocabulary
from warploom.language.pipe import DELIVER, Pipe, ring_of, stage_count
from warploom.language.put import Put
from warploom.language.roles import Joint, RolePlan
from warploom.language.shared import Shared, shared
from warploom.language.values import Scalar, Tile


class Channel(Joint):
    """A pipe of one tile, which holds no item longer than a store or a load takes."""

    attributes = ("send", "receive", "skip", "ready", "dtype", "shape")

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    def __repr__(self) -> str:
        (tile,) = self.pipe.buffers
        shape = ", ".join(map(str, tile.shape))
        return f"a channel of {tile.dtype} tiles of shape ({shape})"

    @property
    def dtype(self) -> DType:
        """The element type of a tile."""
        return self.pipe.buffers[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tile."""
        return self.pipe.buffers[0].shape

    def call(self, name: str) -> None:
        """Name what it is made of, for reports."""
        self.pipe.call(name)

    def close(self, plans: list[RolePlan]) -> None:
        """These are the roles of the kernel."""
        self.pipe.close(plans)

    def send(self, tile: Tile) -> None:
        """Hand over a tile of registers, once a stage is free; shape and dtype are the channel's.

        Executes: the role.
        Since: sm_90.
        PTX: st.shared, mbarrier.arrive.
        """
        put = Put(self.pipe)
        target = put.enter()
        assert isinstance(target, Shared)
        try:
            target.store(tile)
        finally:
            put.leave()

    def receive(self) -> Tile:
        """The next tile, once it has been sent.

        Executes: the role.
        Since: sm_90.
        PTX: mbarrier.try_wait.parity, ld.shared.
        """
        item = self.pipe.take()
        tile = item.tiles[0].load()
        item.release()
        return tile

    def skip(self, count: Scalar | int) -> None:
        """Pass the next `count` tiles by, as `skip` of a pipe does."""
        self.pipe.skip(count)

    def ready(self) -> Scalar:
        """Whether `receive` would not have to wait."""
        return self.pipe.ready()


@vocabulary
def channel(shape: Any, dtype: DType, stages: int = 2, deliver: str = "all") -> Channel:
    """A channel for tiles of registers between roles, `stages` of them under way: one role
    `send`s, others `receive`. `deliver` is that of `wl.pipe`.

    Shapes: constants.
    Executes: the block, before its roles split.
    Since: sm_90.
    PTX: mbarrier, st.shared, ld.shared.
    """
    count = stage_count(stages)
    if deliver not in DELIVER:
        raise Refused("T015", '`deliver` is "all" or "one"', argument="deliver")
    tile = ring_of(shared(shape, dtype), count)
    made = Channel(Pipe(count, (tile,), deliver))
    current().joints.append(made)
    return made
