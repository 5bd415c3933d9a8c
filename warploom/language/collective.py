"""Collectives: what parties of one kind hold becomes one value, or is handed round. Who the parties
are is a parameter: replicas of a role, blocks of a cluster, blocks of the launch.

Everything is done by the role that calls; results are folded in the order of the ranks, so they are
the same bits on every party and in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

from warploom.base.dtypes import bf16, f16, f32, i32
from warploom.base.protocols import protocol
from warploom.ir.op import Block, Value
from warploom.ir.ops.control import For, Yield
from warploom.language import core
from warploom.language.arithmetic import maximum, minimum
from warploom.language.cluster import cluster_size
from warploom.language.context import (
    VOCABULARY,
    Refused,
    builder,
    current,
    need_all_threads,
    vocabulary,
)
from warploom.language.function import Function
from warploom.language.gathering import gathering
from warploom.language.rooms import (
    BlockRoom,
    ClusterRoom,
    GatherRoom,
    GridRoom,
    Kind,
    MailRoom,
    Room,
    ScatterRoom,
    has_pieces,
)
from warploom.language.scalar import scalar
from warploom.language.tile import cat
from warploom.language.tile import max as max_of
from warploom.language.values import Scalar, Tile, kind_of


class Scope(Enum):
    """Whose blocks or replicas take part."""

    BLOCK = "block"
    CLUSTER = "cluster"
    GRID = "grid"

    def __repr__(self) -> str:  # as it is written in a kernel, and in signatures
        return f"wl.{self.value}"


_R = TypeVar("_R", bound=Room)
block, cluster, grid = Scope.BLOCK, Scope.CLUSTER, Scope.GRID
DTYPES = (f32, f16, bf16, i32)
_HALVES = (f16, bf16)
LARGEST = 64 << 10  # bytes that a party may end with
# Bytes that a cluster folds at once, and how many times as many the slots of two stages take.
_AT_ONCE, _SLOTS = 16 << 10, 5
_CHUNK = 8  # elements of which parts of one axis are made: 16 bytes or more

_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "max": maximum,
    "min": minimum,
}


class _Call:
    """One collective: its parties and their room, the values that it was given."""

    def __init__(self, verb: str, value: Any, over: Any) -> None:
        need_all_threads("all of the role take part")
        self.verb, self.scope = verb, scope_of(over)
        plan = current().role
        if self.scope is Scope.CLUSTER and plan is not None and plan.replicas > 1:
            raise Refused(
                "P045",
                f"`wl.{verb}` over a cluster stands in a role of {plan.replicas} replicas, and a "
                "block takes part once",
                hint="fold them first with over=wl.role in one role, and let one replica go on",
            )
        self.many = isinstance(value, tuple | list)
        given = list(value) if self.many else [value]
        self.scalars = [isinstance(v, Scalar) for v in given]
        self.tiles = [_tile(verb, v) for v in given]

    @property
    def alone(self) -> bool:
        """Whether there is one party only, known beforehand."""
        if self.scope is Scope.BLOCK:
            plan = current().role
            return plan is None or plan.replicas == 1
        return self.scope is Scope.CLUSTER and cluster_size() == 1

    @property
    def bytes(self) -> int:
        """Bytes of one party's tiles."""
        return sum(prod(t.shape) * t.dtype.bytes for t in self.tiles)

    def room(self, tiles: list[Tile]) -> Room:
        """The room for tiles of these kinds: one for all calls of a role, which takes turns."""
        kinds: tuple[Kind, ...] = tuple((t.shape, t.dtype) for t in tiles)
        way = protocol(self.scope.value, sum(prod(s) * d.bytes for s, d in kinds))
        return self.kept((kinds, way), lambda: self._new_room(kinds, way))

    def kept(self, key: tuple[Any, ...], make: Callable[[], _R]) -> _R:
        """The room of this role and scope for a key, made where it is new."""
        held, plan = current(), current().role
        whole = (self.scope, None if plan is None else id(plan), *key)
        if whole not in held.rooms:
            held.rooms[whole] = make()
        return held.rooms[whole]

    def _new_room(self, kinds: tuple[Kind, ...], way: str) -> Room:
        if self.scope is Scope.BLOCK:
            return BlockRoom(kinds, current().role)
        if self.scope is Scope.CLUSTER:
            return ClusterRoom(kinds)
        together = gathering(f"wl.{self.verb}(…, over=wl.grid)")
        return MailRoom(kinds, together) if way == "flagged" else GridRoom(kinds, together)

    def result(self, tiles: Sequence[Tile]) -> Any:
        """What the caller gets: of the form that it gave."""
        out = [
            scalar(max_of(t, axis=0)) if single else t
            for t, single in zip(tiles, self.scalars, strict=True)
        ]
        return tuple(out) if self.many else out[0]


def scope_of(over: Any) -> Scope:
    """The scope that a user names."""
    if isinstance(over, Scope):
        return over
    if over is VOCABULARY["role"]:
        return Scope.BLOCK  # the replicas of a role stand in one block
    raise Refused(
        "T015",
        "`over` is `wl.role`, `wl.block`, `wl.cluster` or `wl.grid`",
        argument="over",
        label=f"this is {kind_of(over)}",
    )


def _tile(verb: str, value: Any) -> Tile:
    """A value as a tile of at least one axis; refuses dtypes and sizes."""
    if not isinstance(value, Tile | Scalar):
        raise Refused(
            "T024", f"`{verb}` takes tiles and scalars, not {kind_of(value)}", argument="value"
        )
    if value.dtype not in DTYPES:
        raise Refused(
            "T024",
            f"`{verb}` is not defined for {value.dtype}",
            argument="value",
            hint="cast it: wl.f32, wl.f16, wl.bf16 or wl.i32",
        )
    shape = value.shape if isinstance(value, Tile) else ()
    size = prod(shape) * value.dtype.bytes
    if size > LARGEST:
        raise Refused(
            "T024",
            f"`{verb}` of {size:,} bytes: at most {LARGEST:,}",
            argument="value",
            hint="go on in parts",
        )
    return value if shape and isinstance(value, Tile) else Tile(core.spread(value.value, (1,)))


def _combine(op: Any) -> Callable[[list[Tile], list[Tile]], list[Tile]]:
    """How two parties' values become one."""
    if isinstance(op, Function):
        return lambda a, b: _listed(current().call(op, [_given(a), _given(b)]), a)
    if op not in _FOLDS:
        raise Refused(
            "T015",
            '`op` is "sum", "max", "min" or a `@wl.function` of two values',
            argument="op",
        )
    fold = _FOLDS[op]
    return lambda a, b: [fold(x, y) for x, y in zip(a, b, strict=True)]


def _given(tiles: list[Tile]) -> Any:
    return tuple(tiles) if len(tiles) > 1 else tiles[0]


def _listed(found: Any, like: list[Tile]) -> list[Tile]:
    """What a function of the user gave, which is of the form that it got."""
    made = list(found) if isinstance(found, tuple | list) else [found]
    fits = len(made) == len(like) and all(
        isinstance(m, Tile) and m.shape == t.shape and m.dtype == t.dtype
        for m, t in zip(made, like, strict=True)
    )
    if not fits:
        wanted = ", ".join(core.describe(t.value) for t in like)
        raise Refused(
            "T024",
            "the function of this collective gives something else than it takes",
            argument="op",
            notes=(f"it gets, and gives: {wanted}",),
        )
    return made


def _wide(tiles: list[Tile]) -> list[Tile]:
    """Halves are added up in f32."""
    return [t.cast(f32) if t.dtype in _HALVES else t for t in tiles]


def _narrow(tiles: list[Tile], like: list[Tile]) -> list[Tile]:
    return [t.cast(o.dtype) for t, o in zip(tiles, like, strict=True)]


def _sendable(tiles: list[Tile]) -> list[Tile]:
    """What travels in whole words of 4 bytes: odd rows of halves as f32, which holds them."""
    return [t.cast(f32) if t.shape[-1] * t.dtype.bytes % 4 else t for t in tiles]


def _fold(room: Room, op: Any) -> list[Tile]:
    """The values of all parties as one, in the order of their ranks."""
    combine, total = _combine(op), _wide(room.part(0))
    if isinstance(room.parties, int):
        for party in range(1, room.parties):
            total = combine(total, _wide(room.part(party)))
        return total
    return _loop(room, combine, total)


def _loop(
    room: Room, combine: Callable[[list[Tile], list[Tile]], list[Tile]], first: list[Tile]
) -> list[Tile]:
    """The fold over a number of parties that is known at run time."""
    b, count = builder(), room.parties
    assert isinstance(count, Scalar)
    one, stop = b.const(1), core.convert(count.value, i32)
    number = Value(one.type, "party", b.loc)
    args = tuple(Value(t.value.type, "total", b.loc) for t in first)
    body = Block((number, *args))
    for arg in (number, *args):
        arg.owner = body
    with b.inside(body):
        total = combine([Tile(v) for v in args], _wide(room.part(Scalar(number))))
        b.add(Yield(values=tuple(t.value for t in total)))
    made = b.add(
        For(
            lo=one,
            hi=stop,
            step=b.const(1),
            inits=tuple(t.value for t in first),
            body=body,
            unroll=8,
        ),
    )
    made.results = tuple(Value(t.value.type, "total", b.loc) for t in first)
    for value in made.results:
        value.owner = made
    return [Tile(v) for v in made.results]


@vocabulary
def all_reduce(value: Any, op: Any = "sum", over: Any = Scope.CLUSTER) -> Any:
    """What all parties hold, folded into one value that each of them gets.

    `op` is "sum", "max", "min", or a `@wl.function` of two values; of tuples where `value` is one,
    such as (maximum, denominator, weighted sum) of a softmax. The fold goes in the order of the
    ranks, so all parties get the same bits in every run; f16 and bf16 are folded in f32 and rounded
    once. `over`: `wl.role` or `wl.block` (the replicas of this role), `wl.cluster`, `wl.grid`.

    Shapes: any tile or scalar of f32, f16, bf16, i32, or a tuple of them, up to 64 KB; the same on
    all parties, and so is the result. Over a cluster sums, maxima and minima of more than 16 KB go
    in pieces along the first axis, which share their slots.
    Executes: the role; nothing in it concerns the block's other roles. All parties come here
    equally often.
    Since: sm_90 (over=wl.grid: sm_80).
    PTX: st.async and mbarrier (cluster); red.release, ld.acquire or ld.relaxed (grid).
    """
    held = _Call("all_reduce", value, over)
    if held.alone:
        _combine(op)
        return value
    n = cluster_size() if held.scope is Scope.CLUSTER else 0
    if n and isinstance(op, str) and held.bytes > _AT_ONCE:
        return held.result([_in_pieces(t, op, n) for t in held.tiles])
    return held.result(_reduced(held, op, n))


@vocabulary
def reduce(value: Any, op: Any = "sum", root: int = 0, over: Any = Scope.CLUSTER) -> Any:
    """As `wl.all_reduce`, and the party `root` gets the result; the others keep what they have.

    Shapes: as `wl.all_reduce`; `root` is a constant rank.
    Executes: the role.
    Since: sm_90 (over=wl.grid: sm_80).
    """
    held = _Call("reduce", value, over)
    if held.alone:
        _combine(op)
        return value
    room = held.room(_sendable(held.tiles))
    room.publish(_sendable(held.tiles))
    total = _narrow(_fold(room, op), held.tiles)
    mine = room.rank == _root(root, room)
    return held.result([_chosen(mine, t, o) for t, o in zip(total, held.tiles, strict=True)])


@vocabulary
def broadcast(value: Any, root: int = 0, over: Any = Scope.CLUSTER) -> Any:
    """What the party `root` holds, for all of them.

    Shapes: as `wl.all_reduce`; `root` is a constant rank.
    Executes: the role.
    Since: sm_90 (over=wl.grid: sm_80).
    """
    held = _Call("broadcast", value, over)
    if held.alone:
        return value
    room = held.room(_sendable(held.tiles))
    room.publish(_sendable(held.tiles))
    return held.result(_narrow(room.part(_root(root, room)), held.tiles))


@vocabulary
def all_gather(value: Any, over: Any = Scope.CLUSTER) -> Any:
    """The tiles of all parties, one after the other along the first axis in the order of the ranks.

    Shapes: (m, …) gives (parties · m, …), at most 64 KB; the number of parties is a constant, so
    not over the grid (`wl.exchange`).
    Executes: the role.
    Since: sm_90.
    """
    held = _Call("all_gather", value, over)
    if any(held.scalars):
        raise Refused("T024", "`all_gather` takes tiles", argument="value")
    if held.alone:
        return value
    n = _constant_parties(held, "all_gather")
    if held.bytes * n > LARGEST:
        text = f"`all_gather` of {held.bytes * n:,} bytes: at most {LARGEST:,}"
        raise Refused("T024", text, argument="value")
    return held.result(_gathered(held, held.tiles, n))


@vocabulary
def reduce_scatter(value: Any, op: Any = "sum", over: Any = Scope.CLUSTER) -> Any:
    """As `wl.all_reduce`, and party r gets the r-th part of the result along the first axis.

    Shapes: (parties · m, …) gives (m, …); the number of parties is a constant.
    Executes: the role.
    Since: sm_90.
    """
    held = _Call("reduce_scatter", value, over)
    if held.alone:
        _combine(op)
        return value
    n = _constant_parties(held, "reduce_scatter")
    if not _divides(held.tiles, n):
        first = held.tiles[0].shape[0]
        raise Refused(
            "T024",
            f"a first axis of {first} has no {n} equal parts",
            argument="value",
            hint=f"the nearest: {-(-first // n) * n}",
        )
    return held.result(_narrow(_share_of_all(held, op, n), held.tiles))


def _reduced(held: _Call, op: Any, n: int) -> list[Tile]:
    """The fold of all, by the way that is measured to be the fastest; `n`: blocks of a cluster."""
    if n and _is_staged(held, n):
        shares = _narrow(_share_of_all(held, op, n), held.tiles)
        # All warps have met where the shares were scattered, since they read the last whole.
        return _gathered(held, shares, n, met=True)
    room = held.room(_sendable(held.tiles))
    room.publish(_sendable(held.tiles))
    return _narrow(_fold(room, op), held.tiles)


def _in_pieces(tile: Tile, op: str, n: int) -> Tile:
    """A large tile, one piece along its first axis after the other, which share their slots: whole
    ones that n parties have equal parts of, the rest of such parts, and what is left. Rows too long
    for that are pushed, as many as have room."""
    first, *rest = tile.shape
    row = prod(rest) * tile.dtype.bytes
    unit, most = n * (1 if rest else _CHUNK), _AT_ONCE // row
    if unit > most:
        unit, most = 1, _SLOTS * _AT_ONCE // (2 * n * row)
    step = max(most // unit, 1) * unit
    bounds = sorted({*range(0, first, step), first // unit * unit, first})
    all_of = (slice(None),) * len(rest)
    parts = [tile[(slice(a, b), *all_of)] for a, b in pairwise(bounds)]
    made = [_reduced(_Call("all_reduce", part, Scope.CLUSTER), op, n)[0] for part in parts]
    return cat(made, axis=0) if len(made) > 1 else made[0]


def _is_staged(held: _Call, n: int) -> bool:
    """Whether the table says so, and each party can have an equal part."""
    wanted = protocol("cluster", held.bytes, n) == "staged"
    return wanted and _divides(held.tiles, n) and has_pieces(tuple(_nth(t, n) for t in held.tiles))


def _share_of_all(held: _Call, op: Any, n: int) -> list[Tile]:
    """This party's part of the fold of all. In a cluster it gets no more than that of others."""
    tiles = [t.cast(f32) if _odd(t, n) else t for t in held.tiles]
    kinds = tuple(_nth(t, n) for t in tiles)
    scattered = held.scope is Scope.CLUSTER and has_pieces(kinds)
    if scattered:
        room = held.kept(("scatter", kinds), lambda: ScatterRoom(kinds))
    else:
        tiles = _sendable(held.tiles)
        room = held.room(tiles)
    room.publish(tiles)
    combine, total = _combine(op), None
    for party in range(n):
        part = room.part(party)
        own = _wide(part if scattered else [_own_part(t, room, n) for t in part])
        total = own if total is None else combine(total, own)
    assert total is not None
    return total


def _nth(tile: Tile, n: int) -> Kind:
    """Shape and dtype of an n-th of a tile along its first axis."""
    first, *rest = tile.shape
    return (first // n, *rest), tile.dtype


def _odd(tile: Tile, n: int) -> bool:
    """Whether rows of an n-th of a tile are no whole words of 4 bytes."""
    *_, row = _nth(tile, n)[0]
    return row * tile.dtype.bytes % 4 != 0


def _own_part(tile: Tile, room: Room, n: int) -> Tile:
    """The part of a tile along its first axis whose number is this party's rank."""
    size, rest = tile.shape[0] // n, (slice(None),) * (len(tile.shape) - 1)
    parts = [tile[(slice(r * size, (r + 1) * size), *rest)] for r in range(n)]
    chosen = parts[0]
    for r in range(1, n):
        chosen = _chosen(room.rank == r, parts[r], chosen)
    return chosen


def _gathered(held: _Call, tiles: list[Tile], n: int, met: bool = False) -> list[Tile]:
    """Tiles of all parties, joined; `met`: all warps have met since the last time."""
    sent = _sendable(tiles)
    kinds = tuple((t.shape, t.dtype) for t in sent)
    if held.scope is Scope.CLUSTER and has_pieces(kinds):
        gather = held.kept(("gather", kinds), lambda: GatherRoom(kinds))
        gather.publish(sent, met)
        return _narrow(gather.joined(), tiles)
    room = held.room(sent)
    room.publish(sent)
    parts = [room.part(party) for party in range(n)]
    joined = [cat([p[k] for p in parts], axis=0) for k in range(len(tiles))]
    return _narrow(joined, tiles)


def _divides(tiles: list[Tile], n: int) -> bool:
    return all(t.shape[0] % n == 0 for t in tiles)


def _constant_parties(held: _Call, verb: str) -> int:
    if held.scope is Scope.GRID:
        raise Refused(
            "T024",
            f"`{verb}` gives a tile whose shape is constant, and a grid has any number of blocks",
            argument="over",
            hint="`wl.exchange(share, into=tile, over=wl.grid)` fills a shared tile",
        )
    if held.scope is Scope.CLUSTER:
        return cluster_size()
    return current().role.replicas


def _root(root: Any, room: Room) -> int:
    most = room.parties if isinstance(room.parties, int) else None
    fits = isinstance(root, int) and not isinstance(root, bool) and root >= 0
    if not fits or (most is not None and root >= most):
        bound = "from 0 up" if most is None else f"from 0 to {most - 1}"
        raise Refused("F027", f"`root` is a constant rank {bound}", argument="root")
    return root


def _chosen(test: Any, yes: Tile, no: Tile) -> Tile:
    return Tile(core.select(core.spread(test.value, yes.shape), yes.value, no.value))
