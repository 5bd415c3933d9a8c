"""The exchange of a vector: every party has a share of it, and each ends with all of it in shared
memory. Knows the ways over the grid; over a cluster or a block it is a gathering of tiles."""

from __future__ import annotations

from typing import Any

from warploom.base import protocols
from warploom.base.dtypes import i64
from warploom.ir.op import Block
from warploom.ir.ops import mbarrier
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops.control import If, Yield
from warploom.language.barrier import Barrier, barrier, fence_async
from warploom.language.cluster import cluster_rank, cluster_size
from warploom.language.collective import DTYPES, LARGEST, Scope, all_gather, scope_of
from warploom.language.context import Refused, builder, current, need_all_threads, vocabulary
from warploom.language.copy import copy_bulk
from warploom.language.flagged import flagged
from warploom.language.gathering import Count, Gathering, block_number, blocks, gathering
from warploom.language.kept import keep
from warploom.language.regions import OneThread
from warploom.language.rooms import GatherRoom, carried, meet
from warploom.language.shared import Shared
from warploom.language.tensor import ds, load, store, window
from warploom.language.values import Scalar, Tensor, Tile, need_tile

_UNIT = 16  # bytes of a bulk copy
# Words behind a vector of flagged data: one register of each thread of 8 warps, so that to take
# them off what was received moves nothing.
_BEHIND = 256
_CHUNK = 4  # words of which windows of a tile in a peer are made


class _Vector:
    """Where the blocks of a launch exchange vectors of one length: two halves of global memory."""

    def __init__(self, into: Shared, together: Gathering) -> None:
        self.together, self.length, self.dtype = together, into.shape[0], into.dtype
        self.ring = current().ring()

    def half(self) -> tuple[Scalar, Scalar]:
        """Which half this round takes, and the parity of what completes in it."""
        made = builder().add(role_ops.Position(ring=self.ring, stages=2))
        return Scalar(made.results[0]), Scalar(made.results[1])

    def begin(self, share: Tile) -> Scalar:
        """Where this block's share begins."""
        return block_number() * share.shape[0]


class _Counted(_Vector):
    """Written by all, then read by all behind the counter of the grid, in one bulk copy."""

    def __init__(self, into: Shared, together: Gathering) -> None:
        super().__init__(into, together)
        self.data = keep("grid_vector", self.dtype, 2, 0, (self.length,))
        self.full: Barrier | None = None
        if into.bytes % _UNIT == 0:
            with builder().inside(current().top):
                self.full = barrier(2)
            self.full.value.name = "exchange_full"

    def exchange(self, share: Tile, into: Shared) -> None:
        """One round."""
        half, parity = self.half()
        store(window(self.data, (half, ds(self.begin(share), share.shape[0]))), share)
        self.together.meet()
        whole = window(self.data, (half, ds(0, self.length)))
        if self.full is None:
            into.store(load(whole))
            return
        full = self.full[half]
        alone = OneThread("role")
        alone.enter()
        fence_async(space="global")
        builder().add(mbarrier.Expect(barrier=full.one(), bytes=into.bytes))
        copy_bulk(whole, into, full)
        alone.leave()
        full.wait(parity)


class _Mailed(_Vector):
    """Flagged data: who wants the vector polls its words.

    A block may write a half anew once it has had words of the next round from all who read it. So
    those whose whole share lies behind the end of the vector are waited for too: `_BEHIND` words
    more are sent and polled there. Where even these are too few, all meet."""

    def __init__(self, into: Shared, together: Gathering, polled: int = 0) -> None:
        super().__init__(into, together)
        self.count: Count = together.count(1)
        self.polled = polled or self.length + _BEHIND
        self.words: Tensor = keep("grid_mail", i64, 2, 0, (self.polled,))

    def exchange(self, share: Tile, into: Shared) -> None:
        """One round; words that no block has a share of are not waited for."""
        half, _ = self.half()
        epoch = self.count.first + self.count.next() + 1
        kind = carried(self.dtype)
        size = share.shape[0]
        meet("words of the round before are received, then words are sent again")
        sent = flagged(self.words, kind)[half, ds(self.begin(share), size)]
        sent.send(share.cast(kind), epoch)
        there = self.words.rows(0, blocks() * size, axis=1)
        got = self.received(there, half, epoch)
        into.store(got[0 : self.length].cast(self.dtype))
        self._meet_where_some_send_nothing((blocks() - 1) * size >= self.polled)

    def received(self, there: Tensor, half: Scalar, epoch: Scalar) -> Tile:
        """All words of this round."""
        return flagged(there, carried(self.dtype))[half, ds(0, self.polled)].receive(epoch)

    def _meet_where_some_send_nothing(self, some: Scalar) -> None:
        then, orelse = Block(), Block()
        with builder().inside(then):
            self.together.meet()
        for way in (then, orelse):
            with builder().inside(way):
                builder().add(Yield(values=()))
        builder().add(If(condition=some.value, then=then, orelse=orelse))


class _Relayed(_Mailed):
    """Flagged data of which each block of a cluster polls a part, and pushes it to the others: less
    is read from the second-level cache, where many poll beside other traffic.

    Whoever has the vector has heard of all blocks, by its peers of those whose words it does not
    poll, as there is no part that nobody of a cluster polls."""

    def __init__(self, into: Shared, together: Gathering) -> None:
        n = cluster_size()
        part = -(-into.shape[0] // (n * _CHUNK)) * _CHUNK + _BEHIND
        super().__init__(into, together, n * part)
        self.part = part
        self.room = GatherRoom((((part,), carried(self.dtype)),))

    def received(self, there: Tensor, half: Scalar, epoch: Scalar) -> Tile:
        """All words: those of this block, and of its peers."""
        mine = ds(cluster_rank() * self.part, self.part)
        got = flagged(there, carried(self.dtype))[half, mine].receive(epoch)
        self.room.publish([got])
        return self.room.joined()[0]


_WAYS = {"counter": _Counted, "flagged": _Mailed, "relayed": _Relayed}


@vocabulary
def exchange(share: Tile, into: Shared, over: Any = Scope.GRID, protocol: str = "") -> None:
    """Each party has a share of a vector, and gets all of it into a tile in shared memory: share r
    begins at element r · (its size).

    Over the grid what lies behind the end of `into` is dropped, and elements that no block has are
    zero. `protocol` is "counter" (all write, meet, and read in one bulk copy), "flagged" (values
    with their round in one word, which everybody polls: for small vectors) or "relayed" (so, and
    each block of a cluster polls a part and pushes it to the others); by default a table says. Two
    rounds are under way at most, nothing is reset between launches.

    Shapes: a tile of one axis, the same on all parties; `into` has one axis, the dtype, and no
    swizzle; f32, f16, bf16, i32, up to 64 KB. Over a cluster or a block the shares fill it.
    Executes: the role; then the role sees `into`. All parties come here equally often.
    Since: sm_90.
    PTX: st.global, red.release, ld.acquire, cp.async.bulk; or st.relaxed and ld.relaxed of .b64.
    """
    need_all_threads("all of the role take part")
    scope = scope_of(over)
    held = need_tile(share, "share")
    _check(held, into)
    if scope is not Scope.GRID:
        made = all_gather(held, over=over)
        if made.shape != into.shape:
            raise Refused(
                "T024",
                f"the shares have {made.shape[0]} elements, and `into` {into.shape[0]}",
                argument="into",
            )
        into.store(made)
        return
    together, plan = gathering("wl.exchange(…, over=wl.grid)"), current().role
    way = protocol or _chosen(into)
    if way == "relayed" and cluster_size() == 1:
        way = "flagged"
    if way not in _WAYS:
        raise Refused(
            "T015", '`protocol` is "counter", "flagged" or "relayed"', argument="protocol"
        )
    rooms, key = current().rooms, ("exchange", plan and id(plan), into.shape, into.dtype, way)
    if key not in rooms:
        rooms[key] = _WAYS[way](into, together)
    rooms[key].exchange(held, into)


def _chosen(into: Shared) -> str:
    """What the table says."""
    return protocols.protocol("exchange", into.bytes)


def _check(share: Tile, into: Any) -> None:
    if not isinstance(into, Shared) or into.type.slots:
        raise Refused("T024", "`into` is one tile in shared memory", argument="into")
    if len(share.shape) != 1 or len(into.shape) != 1 or into.type.layout.swizzle:
        raise Refused("T024", "a vector has one axis", argument="share", label=repr(into))
    if share.dtype != into.dtype or share.dtype not in DTYPES:
        raise Refused(
            "T024",
            f"a share of {share.dtype} for a vector of {into.dtype}",
            argument="share",
            hint="f32, f16, bf16 or i32, the same for both",
        )
    if into.bytes > LARGEST:
        raise Refused(
            "T024", f"a vector of {into.bytes:,} bytes: at most {LARGEST:,}", argument="into"
        )
