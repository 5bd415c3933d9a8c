"""Items of a pipe in the hands of a role: taking them apart, and handing them back.

An item goes back in the block of program where it was taken, once. What has read it decides how
many groups of products may still be in flight then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warploom.ir.ops import roles as role_ops
from warploom.ir.ops import wgmma
from warploom.language.context import Handle, Refused, builder, current, need_count
from warploom.language.product import Pending
from warploom.language.regions import Region
from warploom.language.shared import Shared
from warploom.language.values import Scalar, kind_of

if TYPE_CHECKING:
    from warploom.language.pipe import Pipe


class Item(Handle):
    """One item taken from a pipe: unpack it into its tiles, and release it."""

    attributes = ("release",)

    def __init__(self, pipe: Pipe, slot: Scalar) -> None:
        self.pipe = pipe
        self.slot = slot
        self.block = builder().block
        self.place = builder().loc
        self.released = False  # or promised to be, behind others
        self.behind = 0
        self.groups = 0  # of products that certainly read it
        self.read_by_product = False
        self.read_by_threads = False
        self.waits: wgmma.Drain | wgmma.Settle | None = None
        self.tiles = tuple(Shared(t.value, self) for t in pipe.views(slot))

    def __repr__(self) -> str:
        return f"an item of {self.pipe!r}"

    def __iter__(self) -> Iterator[Shared]:
        return iter(self.tiles)

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: Any) -> Shared:
        if isinstance(index, bool) or not isinstance(index, int):
            raise Refused(
                "F027",
                f"an item is indexed by a constant, not {kind_of(index)}",
                hint="unpack it: `a, b = item`",
            )
        if not -len(self.tiles) <= index < len(self.tiles):
            raise Refused(
                "F037",
                f"index {index} is outside an item of {len(self.tiles)}",
                hint="unpack it: `a, b = item`",
            )
        return self.tiles[index]

    # ---- what its tiles tell ---------------------------------------------------------------

    def check_held(self) -> None:
        """Refuse the use of a tile that belongs to the producer again."""
        if self.released and not self.behind:
            raise Refused(
                "P024",
                "this item was handed back, and may be filled anew at any time",
                hint="release it after its last use",
            )

    def note_product(self) -> None:
        """A group of products reads one of the tiles."""
        self.read_by_product = True
        if builder().block is self.block:
            self.groups += 1

    # ---- handing back ----------------------------------------------------------------------

    def release(self, after: Pending | None = None, behind: int = 0) -> None:
        """Hand the item back. `after` is the pending product that reads it; with `behind=n` the
        item taken n before this one goes back now instead, when its products have retired, and what
        a loop still holds goes back at its end.

        Executes: one thread of each warp of the role.
        Since: sm_90.
        PTX: mbarrier.arrive.
        """
        self._check(after, behind)
        self.released, self.behind = True, behind
        if self.read_by_product:
            self._retire(after, behind)
        # What only products have read is read when they have retired: nothing is to be ordered.
        ordered = self.read_by_threads or not self.read_by_product
        if behind:
            back = role_ops.HandBack(
                empty=self.pipe.empty.value,
                slot=self.slot.value,
                ring=self.pipe.taken_ring,
                stages=self.pipe.stages,
                behind=behind,
                ordered=ordered,
            )
            builder().add(back)
            if self.pipe.sharing is not None:
                self.pipe.sharing.note(back)
            return
        with builder().one_thread("warp"):
            self.pipe.hand_back(self.slot, ordered)

    def _retire(self, after: Pending | None, behind: int) -> None:
        """Wait for the products that have read what goes back; how many groups may stay in flight
        is known when the role is."""
        if after is not None and after.tile is None and after.block is builder().block:
            self.waits = after.settle(0)
        else:
            self.waits = builder().add(wgmma.Drain())
        self.behind = behind

    def _check(self, after: Any, behind: Any) -> None:
        if self.released:
            raise Refused(
                "P022",
                "this item was handed back before",
                hint="release each item once, or use `with ring.get() as …`",
            )
        need_count("behind", behind, 0)
        own = current().role.items
        held = behind + sum(i.pipe is self.pipe and not i.released for i in own)
        if held > self.pipe.stages:
            raise Refused(
                "P012",
                f"{held} items would be held of {self.pipe.stages}",
                argument="behind",
                hint="use more stages: the producer would wait for ever",
            )
        if after is not None and not isinstance(after, Pending):
            raise Refused(
                "T015",
                f"`after` is a pending product, not {kind_of(after)}",
                argument="after",
                hint="give what `wl.dot_async` returned, or leave it out",
            )
        if builder().block is not self.block:
            raise Refused(
                "P023",
                "an item is handed back in another loop, branch or region than it was taken in",
                hint="take and release it in the same one",
            )
        self._check_order(behind)

    def _check_order(self, behind: int) -> None:
        """With `behind`, items are counted: they go back in the order in which they were taken, and
        all alike."""
        own = [i for i in current().role.items if i.pipe is self.pipe]
        other = next((i for i in own if i.released and i.behind != behind), None)
        if other is not None:
            raise Refused(
                "P025",
                f"a role hands the items of a pipe back with behind={other.behind} and "
                f"behind={behind}",
                argument="behind",
                hint="use one number for all items of the pipe in this role",
            )
        if behind and any(not i.released for i in own[: own.index(self)]):
            raise Refused(
                "P025",
                "with `behind`, items are handed back in the order in which they were taken",
                argument="behind",
                hint="release the earlier item first",
            )

    def settle_account(self) -> None:
        """The role is complete: refuse an item that stays; say how many groups may be in flight."""
        if not self.released:
            raise Refused(
                "P026",
                "this item is never handed back, and the producer waits for it",
                place=self.place,
                hint="call `release` on it, or take it by `with ring.get() as …`",
            )
        if self.waits is not None:
            alike = [i for i in current().role.items if i.pipe is self.pipe]
            self.waits.pending = self.behind * min(i.groups for i in alike)


class Get(Region):
    """Take and release around a block."""

    keyword = "`get`"

    def __init__(self, pipe: Pipe, behind: int) -> None:
        self.pipe = pipe
        self.behind = behind
        self.item: Item | None = None

    def enter(self) -> Any:
        """Take."""
        self.item = self.pipe.take()
        tiles = self.item.tiles
        return tiles[0] if len(tiles) == 1 else tiles

    def leave(self) -> None:
        """Release."""
        assert self.item is not None
        self.item.release(behind=self.behind)
