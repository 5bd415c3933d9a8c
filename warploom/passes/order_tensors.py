"""Orders the accesses of a block to tensors that it writes as the program text orders them.

Two accesses that may touch one element, at least one a write, by different threads, need a meeting
of all warps between them. Windows are compared by value: those that are apart on some axis, in this
trip of a loop or in all earlier ones, need none, and neither do two in which each thread touches
the same elements: those of one window, or of windows of one size that differ in single elements of
an axis, and so are one or have nothing in common. Blocks among each other are not ordered: that is
the user's business. Words of flagged data say themselves that they have come; but all warps have
received what they poll for before the role sends to such words again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from warploom.base.target import Target
from warploom.ir.affine import Affine, ScalarFacts
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import Layout
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cp_async, flagged, flags, scalar, tensor, tile
from warploom.ir.ops.control import For, If, Loop, OneThread
from warploom.ir.ops.roles import Split
from warploom.ir.ops.sync import Barrier, Meet, WarpSync
from warploom.ir.types import Tensor, Tile

_ACCESSES = (
    *(tile.Load, tile.Store, tile.Atomic, tile.Gather, scalar.Load, cp_async.Copy),
    *(flagged.Send, flagged.Receive),
)


def order_tensors(kernel: Kernel, target: Target) -> None:
    """Insert `sync.barrier` (`sync.warp` where the block is one warp) before each access to a
    written tensor that needs it.

    Needs: stage tile with layouts. Gives: accesses of the block to a tensor ordered on every path.
    """
    if kernel.written:
        _Inserter(kernel).block(kernel.body, frozenset())


@dataclass(frozen=True, slots=True)
class _Edge:
    """A window on one axis: `size` elements from `start`; `trip` is the index of the loop in an
    earlier trip of which this was so."""

    start: Affine
    size: int
    trip: Value | None = None


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access since the last barrier; None where nothing is known of a window on an axis.

    `storage` is equal for tensors that may overlap; `sizes` are those of the window, which are
    known also where its place is not.
    """

    storage: int
    tensor: Value
    writes: bool
    window: tuple[_Edge | None, ...]
    sizes: tuple[int | None, ...]
    layout: Layout | None
    polls: bool = False

    @property
    def what(self) -> str:
        return f"{'write' if self.writes else 'read'} of tensor {self.tensor.name}"


class _Inserter:
    def __init__(self, kernel: Kernel) -> None:
        self.warps = kernel.warps
        self.barrier_id = 0
        self.per_replica = False
        self.facts = ScalarFacts.of(kernel.body)
        self.storages = _storages(kernel)

    # ---- along the program ---------------------------------------------------------------------

    def block(self, block: Block, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        """Insert into a block entered with these accesses open; gives those open at its end."""
        ops: list[Op] = []
        for op in block.ops:
            touch = self.touch(op)
            if touch is not None:
                enemies = [p.what for p in pending if self.conflict(p, touch)]
                if enemies:
                    ops.append(self.barrier(f"{min(enemies)}, then {touch.what}", op))
                    pending = frozenset()
                pending |= {touch}
            elif self.meets(op):
                pending = frozenset()
            elif isinstance(op, Loop):
                pending = self.loop(op, pending)
            elif isinstance(op, If):
                pending = self.block(op.then, pending) | self.block(op.orelse, pending)
            elif isinstance(op, OneThread):
                pending = self.block(op.body, pending)
            elif isinstance(op, Split):
                if pending:
                    ops.append(self.barrier("what the block did, then its roles", op))
                self.roles(op)
            ops.append(op)
        block.ops = ops
        return pending

    def meets(self, op: Op) -> bool:
        """Whether all warps meet at an operation."""
        if isinstance(op, Meet):
            return op.waits
        if isinstance(op, flags.Signal | flags.Wait):
            return not op.alone and op.order != "relaxed"
        return isinstance(op, Barrier) or (isinstance(op, WarpSync) and self.warps == 1)

    def loop(self, op: Loop, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        """The body is walked twice: the second walk enters it with what its end leaves open."""
        trips = _Trips(op, self.facts)
        leaves = self.block(op.body, pending)
        leaves = self.block(op.body, pending | {trips.next(t) for t in leaves})
        return pending | {trips.after(t) for t in leaves}

    def roles(self, op: Split) -> None:
        """Each role keeps its own order, with its own barrier; order between roles is not ours."""
        for number, body in enumerate(op.bodies):
            self.warps = op.warps[number]
            self.barrier_id = op.barrier[number]
            self.per_replica = op.replicas[number] > 1
            self.block(body, frozenset())

    def barrier(self, why: str, op: Op) -> Op:
        if self.warps == 1:
            return WarpSync(why=why, loc=op.loc)
        return Barrier(
            threads=32 * self.warps,
            id=self.barrier_id,
            per_replica=self.per_replica,
            why=why,
            loc=op.loc,
        )

    # ---- accesses ------------------------------------------------------------------------------

    def touch(self, op: Op) -> _Touch | None:
        if not isinstance(op, _ACCESSES):
            return None
        root, origins = self.root(op.tensor)
        storage = self.storages.get(root)
        if storage is None:
            return None
        layout = None
        if isinstance(op, tile.Gather):
            window: tuple[_Edge | None, ...] = (None,) * len(origins)
        elif isinstance(op, scalar.Load):
            window = tuple(self.edges(op.indices, (None,) * len(origins), origins))
        else:
            window = tuple(self.edges(op.starts, op.sizes, origins))
            moved = _moved(op)
            layout = moved.type.layout if isinstance(moved.type, Tile) else None
        writes = isinstance(op, tile.Store | tile.Atomic | flagged.Send)
        polls = isinstance(op, flagged.Receive)
        sizes = tuple(None if edge is None else edge.size for edge in window)
        return _Touch(storage, root, writes, window, sizes, layout, polls)

    def root(self, view: Value) -> tuple[Value, list[Affine]]:
        """The argument behind a view, and where the view starts on each axis."""
        assert isinstance(view.type, Tensor)
        origins = [Affine() for _ in range(view.type.rank)]
        while isinstance(view.owner, tensor.Rows):
            rows = view.owner
            origins[rows.axis] = origins[rows.axis].plus(self.facts.affine(rows.lo))
            view = rows.tensor
        return view, origins

    def edges(
        self, starts: tuple[Value, ...], sizes: tuple[int | None, ...], origins: list[Affine]
    ) -> Iterator[_Edge]:
        for start, size, origin in zip(starts, sizes, origins, strict=True):
            yield _Edge(self.facts.affine(start).plus(origin), 1 if size is None else size)

    def conflict(self, earlier: _Touch, now: _Touch) -> bool:
        if earlier.storage != now.storage or not (earlier.writes or now.writes) or now.polls:
            return False
        if earlier.tensor is not now.tensor:
            return True  # another view of the storage: nothing can be compared
        pairs = list(zip(earlier.window, now.window, strict=True))
        if any(a is not None and b is not None and self.apart(a, b) for a, b in pairs):
            return False
        same = earlier.sizes == now.sizes and all(
            size == 1 or (size is not None and a == b and a is not None)
            for size, (a, b) in zip(now.sizes, pairs, strict=True)
        )
        return not (same and _same_threads(earlier, now))

    def apart(self, earlier: _Edge, now: _Edge) -> bool:
        """Whether two windows never share a coordinate."""
        distance = now.start.plus(earlier.start, -1)
        if not distance.is_constant:
            return False
        if earlier.trip is None:
            return distance.constant >= earlier.size or distance.constant <= -now.size
        # One trip or more ago the window stood so far back, or more.
        move = _Trips.move(earlier.trip, earlier.start, self.facts)
        nearest = distance.constant + move
        return (move > 0 and nearest >= earlier.size) or (move < 0 and nearest <= -now.size)


_Moves: TypeAlias = (
    tile.Load | tile.Store | tile.Atomic | cp_async.Copy | flagged.Send | flagged.Receive
)


def _moved(op: _Moves) -> Value:
    """The tile whose layout says which thread makes which access."""
    if isinstance(op, cp_async.Copy):
        return op.shape
    return op.value if isinstance(op, tile.Store | flagged.Send) else op.results[0]


def _same_threads(earlier: _Touch, now: _Touch) -> bool:
    """Whether each element of a window is touched by one thread, the same both times. Writes are
    made by the first replica, reads by all."""
    if now.layout is None or earlier.layout != now.layout:
        return False
    return (earlier.writes and now.writes) or not now.layout.replicas


class _Trips:
    """What becomes of windows from one trip of a loop to the next, and after the last."""

    def __init__(self, op: Loop, facts: ScalarFacts) -> None:
        self.facts = facts
        # A loop that does not count has no index: what varies in it varies in no known way.
        self.index = op.body.args[0] if isinstance(op, For) else None
        self.inside = set(op.body.args)
        for inner in walk(op.body):
            self.inside.update(inner.results)
            self.inside.update(a for region in inner.regions() for a in region.args)
        self.steady = isinstance(op, For) and facts.constant(op.step) is not None

    def next(self, touch: _Touch) -> _Touch:
        """The access seen from the next trip."""
        return replace(touch, window=tuple(map(self._next, touch.window)))

    def after(self, touch: _Touch) -> _Touch:
        """The access seen from behind the loop: it may have been in any trip."""
        return replace(
            touch, window=tuple(e if e and not self._varying(e) else None for e in touch.window)
        )

    def _next(self, edge: _Edge | None) -> _Edge | None:
        varying = self._varying(edge) if edge else set()
        if edge is None or not varying:
            return edge
        return replace(edge, trip=self.index) if self.steady and varying == {self.index} else None

    def _varying(self, edge: _Edge) -> set[Value]:
        """The values of this loop that a window depends on."""
        roots = (self.facts.value_of(root) for root, _ in edge.start.terms)
        found = {v for v in roots if self._varies(v)}
        return found | ({edge.trip} if edge.trip and edge.trip is self.index else set())

    def _varies(self, value: Value) -> bool:
        op = value.owner
        if value not in self.inside:
            return False
        if not isinstance(op, Op) or not op.is_pure:
            return True
        return any(self._varies(v) for v in op.operand_values())

    @staticmethod
    def move(index: Value, start: Affine, facts: ScalarFacts) -> int:
        """How far a window moves in one trip of the loop of this index."""
        step = facts.constant(facts.loops[index][1])
        assert step is not None
        return step * sum(c for root, c in start.terms if facts.value_of(root) is index)


def _storages(kernel: Kernel) -> dict[Value, int]:
    """A number for each tensor that is written, under whatever name: those that may overlap share
    one."""
    overlap = [p for p in kernel.params if isinstance(p.type, Tensor) and p.type.cls.aliased]
    numbers = {kernel.params[index]: 1 + index for index in kernel.written}
    return numbers | dict.fromkeys(overlap, 0)
