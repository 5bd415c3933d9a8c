"""Gives every tile a register layout and makes each change of layout explicit.

Tiles that are combined element by element share one layout, so values fall into classes. The
largest class is the anchor: it takes the natural layout of its shape, and smaller classes
(reductions of it, rows and columns that are spread over it) follow as slices. Loads, splats and
ranges are free: they are made in whatever layout their users want. Where a value would need two
layouts, a `tile.convert` is inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from warploom.base.errors import error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.fragments import (
    WARPGROUP,
    accumulator,
    fragments,
    one_a_thread,
    operand,
)
from warploom.ir.layout.layout import Layout, parse
from warploom.ir.layout.natural import natural
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cp_async, flagged, lanes, layouts, mma, ptx, remote, shared, tile, wgmma
from warploom.ir.ops.control import If, Loop
from warploom.ir.roles import walk_roles
from warploom.ir.types import Tensor, Tile

Relation = Callable[[Layout], Layout | None]  # None: no such slice, the value goes its own way

_ELEMENTWISE = (
    tile.Binary,
    tile.Unary,
    tile.Fma,
    tile.Compare,
    tile.Select,
    tile.Cast,
    ptx.Compute,
    ptx.Act,
    shared.Element,
    shared.Gather,
    shared.Scatter,
)
_FREE = (tile.Splat, tile.Arange)
_ACCESS_BYTES = 16
_ACCESSES = (
    *(tile.Load, tile.Store, tile.Atomic, tile.Gather, tile.Prefetch),
    *(shared.Load, shared.Store, cp_async.Copy),
    *(remote.Load, remote.Store, remote.Send),
)
_STORES = (tile.Store, shared.Store, remote.Store, remote.Send)
_OF_PRODUCTS = (wgmma.Begin, wgmma.Dot, wgmma.Settle, wgmma.Wait)
_OF_THREADS = (lanes.Number, lanes.Read, lanes.Vote)
_DICTATED = (*_OF_PRODUCTS, *_OF_THREADS, mma.Dot, layouts.Pin, layouts.Like)


def assign_layouts(kernel: Kernel, target: Target) -> None:
    """Set the layout of every tile value.

    Needs: stage tile. Gives: every `Tile` type carries a layout; operations whose operands would
    disagree are joined by `tile.convert`.
    """
    _clone_free_values(kernel.body)
    classes = _Classes()
    for op, warps in walk_roles(kernel):
        classes.note(op, warps)
    classes.solve()
    for op in walk(kernel.body):
        for value in (*op.results, *(a for r in op.regions() for a in r.args)):
            if isinstance(value.type, Tile):
                value.type = replace(value.type, layout=classes.layout(value))
    _insert_converts(kernel.body)


def _clone_free_values(block: Block) -> None:
    """A splat or range for each use: it costs nothing and binds nobody."""
    made: list[Op] = []

    def fresh(value: Value) -> Value:
        op = value.owner
        if not isinstance(op, _FREE):
            return value
        twin = replace(op, results=())
        twin.results = tuple(Value(v.type, v.name, v.loc) for v in op.results)
        twin.result.owner = twin
        made.append(twin)
        return twin.result

    ops: list[Op] = []
    for op in block.ops:
        for inner in op.regions():
            _clone_free_values(inner)
        if isinstance(op, _FREE):
            continue
        made = []
        op.replace_operands(fresh)
        ops += [*made, op]
    block.ops = ops


@dataclass(slots=True)
class _Class:
    """Values that share a layout."""

    shape: tuple[int, ...]
    order: int
    warps: int
    narrowest: int = _ACCESS_BYTES  # bytes of the narrowest element moved to or from memory
    single: bool = False  # flagged data, one word an access: neighbours go to neighbouring lanes
    layout: Layout | None = None
    pinned: Layout | None = None  # by the hardware
    asked: Layout | None = None  # by the kernel
    wish: Layout | None = None  # of a user that would convert it otherwise
    edges: list[tuple[Value, Relation]] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Neighbouring elements that a thread holds."""
        return 1 if self.single else _ACCESS_BYTES // self.narrowest


class _Classes:
    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}
        self.info: dict[Value, _Class] = {}
        self.warps = 0  # of the role whose operations are being noted

    def find(self, value: Value) -> Value:
        if value not in self.parent:
            assert isinstance(value.type, Tile)
            self.parent[value] = value
            self.info[value] = _Class(value.type.shape, len(self.info), self.warps)
        root = value
        while self.parent[root] is not root:
            root = self.parent[root]
        self.parent[value] = root
        return root

    def join(self, *values: Value) -> None:
        tiles = [v for v in values if isinstance(v.type, Tile)]
        for other in tiles[1:]:
            a, b = self.find(tiles[0]), self.find(other)
            if a is b:
                continue
            if self.info[b].order < self.info[a].order:
                a, b = b, a
            self.parent[b] = a
            self.info[a].narrowest = min(self.info[a].narrowest, self.info[b].narrowest)
            self.info[a].single = self.info[a].single or self.info[b].single
            self.info[a].edges += self.info[b].edges
            self.info[a].pinned = self.info[a].pinned or self.info[b].pinned
            self.info[a].asked = self.info[a].asked or self.info[b].asked
            self.info[a].wish = self.info[a].wish or self.info[b].wish
            del self.info[b]

    def relate(self, large: Value, small: Value, rule: Relation) -> None:
        """`small` takes rule(layout of `large`) unless it has one already."""
        self.find(small)
        self.info[self.find(large)].edges.append((small, rule))

    def touch(self, value: Value, dtype_bytes: int) -> None:
        info = self.info[self.find(value)]
        info.narrowest = min(info.narrowest, dtype_bytes)

    def note(self, op: Op, warps: int) -> None:
        self.warps = warps
        for value in filter(_is_tile, op.results):
            self.find(value)
        if isinstance(op, _ELEMENTWISE):
            self.join(*op.results, *(v for v in op.operand_values() if isinstance(v.type, Tile)))
        elif isinstance(op, Loop):
            last = op.body.ops[-1]
            for group in zip(op.inits, op.carried, last.operand_values(), op.results, strict=True):
                self.join(*group)
        elif isinstance(op, If):
            for block in op.regions():
                for pair in zip(block.ops[-1].operand_values(), op.results, strict=True):
                    self.join(*pair)
        elif isinstance(op, _DICTATED):
            self.note_dictated(op, warps)
        elif isinstance(op, flagged.Send | flagged.Receive):
            values = op.values if isinstance(op, flagged.Send) else op.results
            self.join(*values)
            self.info[self.find(values[0])].single = True
        elif isinstance(op, _ACCESSES):
            self.note_access(op)
        else:
            for large, small, rule in _relations(op):
                self.relate(large, small, rule)

    def note_dictated(self, op: Op, warps: int) -> None:
        """What the hardware or the kernel wants of a result, and of operands in registers."""
        if isinstance(op, layouts.Pin):
            asked = parse(op.layout)
            self.info[self.find(op.result)].asked = asked
            self.info[self.find(op.value)].wish = asked
            return
        if isinstance(op, layouts.Like):
            self.join(op.result, op.other)
            return
        self.join(op.result, *_sharing(op))
        self.anchor(op.result, _dictated(op, warps))
        if isinstance(op, wgmma.Dot) and isinstance(op.a.type, Tile):
            self.info[self.find(op.a)].wish = _left(op, warps)
        elif isinstance(op, mma.Dot):
            for value in (op.a, op.b):
                self.info[self.find(value)].wish = _fragments(value, warps)

    def note_access(self, op: Op) -> None:
        """What moves to or from memory wants wide accesses."""
        if isinstance(op, tile.Gather | tile.Atomic):
            self.join(op.result, *(v for v in op.operand_values() if isinstance(v.type, Tile)))
            if isinstance(op, tile.Gather) and op.run:
                self.touch(op.result, tile.tile_of(op.result).dtype.bytes)
                return
            # One element an atomic access: neighbours go to neighbouring lanes.
            self.touch(op.result, _ACCESS_BYTES // (4 if isinstance(op, tile.Gather) else 1))
            return
        if isinstance(op, tile.Prefetch | cp_async.Copy):
            moved = op.mask if isinstance(op, tile.Prefetch) else op.shape
        else:
            moved = op.value if isinstance(op, _STORES) else op.result
        dtype = tile.tile_of(moved).dtype
        if isinstance(op, tile.Load | tile.Store | tile.Prefetch | cp_async.Copy):
            assert isinstance(op.tensor.type, Tensor)
            dtype = op.tensor.type.dtype
        self.touch(moved, dtype.bytes)

    def anchor(self, value: Value, layout: Layout) -> None:
        """The hardware dictates the layout of a value."""
        self.info[self.find(value)].pinned = layout

    def solve(self) -> None:
        # The hardware decides before the kernel, and both before those who would convert.
        for given in ("pinned", "asked"):
            free = [i for i in self.info.values() if i.layout is None and getattr(i, given)]
            for info in free:
                info.layout = getattr(info, given)
            for info in free:
                self.propagate(info)
        for info in list(self.info.values()):
            if info.layout is None and info.wish is not None:
                info.layout = info.wish
                self.propagate(info)
        by_size = sorted(self.info.values(), key=lambda c: (-prod(c.shape), -len(c.shape), c.order))
        for info in by_size:
            if info.layout is None:
                info.layout = natural(info.shape, info.width, info.warps)
                self.propagate(info)

    def propagate(self, info: _Class) -> None:
        assert info.layout is not None
        for small, rule in info.edges:
            other = self.info[self.find(small)]
            if other.layout is None:
                other.layout = rule(info.layout)
                if other.layout is not None:
                    self.propagate(other)

    def layout(self, value: Value) -> Layout:
        layout = self.info[self.find(value)].layout
        assert layout is not None
        return layout


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, Tile)


def _sharing(op: Op) -> Iterator[Value]:
    """Operands that lie where the hardware wants the result."""
    if isinstance(op, (*_OF_PRODUCTS, mma.Dot)):
        yield op.acc
    else:
        yield from op.operand_values()


def _dictated(op: Op, warps: int) -> Layout:
    """The layout that the hardware wants; raises CompileError L014, P029."""
    if isinstance(op, _OF_PRODUCTS):
        return _accumulator(op, warps)
    given = tile.tile_of(op.result).shape[0]
    if isinstance(op, mma.Dot) and given == 32 * warps:
        return _fragments(op.result, warps)
    if given != 32 * warps:
        raise error(
            "P029",
            f"a tile of {given} elements for {32 * warps} threads",
            op.loc,
            label="before the roles",
            hint=f"use it inside a role, or launch with warps={warps}",
        )
    return one_a_thread(warps)


def _accumulator(op: wgmma.Begin | wgmma.Dot | wgmma.Settle | wgmma.Wait, warps: int) -> Layout:
    """The layout that the matrix unit dictates; raises CompileError L014."""
    if warps != WARPGROUP:
        raise error(
            "L014",
            f"a product runs in a role of {WARPGROUP} warps, and this one has {warps}",
            op.loc,
            label="this product",
            hint="launch with warps=4, or use roles: `wl.role(…, warps=4, replicas=2)`",
        )
    shape = tile.any_tile_of(op.acc).shape
    return accumulator((shape[0], shape[1]), warps)


def _left(op: wgmma.Dot, warps: int) -> Layout:
    """The layout of operand A in registers."""
    held = tile.tile_of(op.a)
    return operand((held.shape[0], held.shape[1]), warps, held.dtype.bytes)


def _fragments(value: Value, warps: int) -> Layout:
    """The layout of fragments of a product of single warps."""
    shape = tile.tile_of(value).shape
    return fragments((shape[0], shape[1]), warps)


def _relations(op: Op) -> Iterator[tuple[Value, Value, Relation]]:
    """(value that decides, value that follows, how) of the operations that change the shape."""
    if isinstance(op, tile.Broadcast):
        yield op.result, op.value, lambda layout: _operand_layout(op, layout)
    elif isinstance(op, tile.InsertAxis):
        yield op.result, op.value, lambda layout: layout.drop(op.axis)
        yield op.value, op.result, lambda layout: layout.insert(op.axis)
    elif isinstance(op, tile.DropAxis | tile.Reduce | tile.ArgReduce):
        yield op.value, op.result, lambda layout: layout.drop(op.axis)
    elif isinstance(op, tile.Slice):
        yield op.value, op.result, lambda layout: sub_layout(layout, op.starts, op.sizes)
    elif isinstance(op, tile.Permute):
        back = tuple(op.order.index(a) for a in range(len(op.order)))
        yield op.value, op.result, lambda layout: layout.permute(op.order)
        yield op.result, op.value, lambda layout: layout.permute(back)


def sub_layout(layout: Layout, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Layout | None:
    """The layout of a sub-tile that is some of the registers of every thread, or None."""
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        found = layout.window(axis, start, size)
        if found is None:
            return None
        layout = found[0]
    return layout


def _operand_layout(op: tile.Broadcast, layout: Layout) -> Layout:
    """Layout of the operand of a broadcast whose result has `layout`."""
    assert isinstance(op.value.type, Tile)
    for axis, (narrow, wide) in enumerate(zip(op.value.type.shape, op.shape, strict=True)):
        if narrow != wide:
            layout = layout.collapse(axis)
    return layout


def _insert_converts(block: Block) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for inner in op.regions():
            _insert_converts(inner)
        for value, want in _wanted_operands(op):
            if _layout(value) != want:
                convert = _convert(value, want, op)
                ops.append(convert)
                op.replace_operands(lambda v, old=value, new=convert.result: new if v is old else v)
        ops.append(op)
        made = _made_result(op)
        if made is not None and made != _layout(op.result):
            # The operation makes its result in one layout only; its users see a converted copy.
            final = op.result
            assert isinstance(final.type, Tile)
            natural_result = Value(replace(final.type, layout=made), final.name, final.loc)
            natural_result.owner = op
            op.results = (natural_result,)
            convert = tile.Convert(value=natural_result, loc=op.loc, results=(final,))
            final.owner = convert
            ops.append(convert)
    block.ops = ops


def _wanted_operands(op: Op) -> list[tuple[Value, Layout]]:
    """Operands with the layouts that they must have, where the hardware or the result of the
    operation dictates them."""
    if isinstance(op, remote.Send):
        return [(op.value, _whole_words(op))]
    if isinstance(op, layouts.Pin | layouts.Like):
        return [(op.value, _layout(op.result))]
    if isinstance(op, wgmma.Dot) and isinstance(op.a.type, Tile):
        return [(op.a, _left(op, WARPGROUP))]
    if isinstance(op, mma.Dot):
        warps = _layout(op.result).warps
        return [(op.a, _fragments(op.a, warps)), (op.b, _fragments(op.b, warps))]
    if isinstance(op, tile.Broadcast):
        return [(op.value, _operand_layout(op, _layout(op.result)))]
    if isinstance(op, tile.InsertAxis):
        return [(op.value, _layout(op.result).drop(op.axis))]
    return []


def _whole_words(op: remote.Send) -> Layout:
    """The layout of what is sent, another where a thread would have less than a word in a row."""
    held, layout = tile.tile_of(op.value), _layout(op.value)
    least = max(1, remote.SENT_BYTES[0] // held.dtype.bytes)
    last = len(held.shape) - 1
    if least == 1 or held.shape[last] % least or layout.run(last) % least == 0:
        return layout
    return natural(held.shape, _ACCESS_BYTES // held.dtype.bytes, layout.warps, least)


def _made_result(op: Op) -> Layout | None:
    """The layout that an operation gives its result, where its operand dictates one."""
    if isinstance(op, tile.DropAxis | tile.Reduce | tile.ArgReduce):
        return _layout(op.value).drop(op.axis)
    if isinstance(op, tile.Permute):
        return _layout(op.value).permute(op.order)
    return None


def _convert(value: Value, layout: Layout, op: Op) -> tile.Convert:
    assert isinstance(value.type, Tile)
    result = Value(replace(value.type, layout=layout), value.name, value.loc)
    convert = tile.Convert(value=value, loc=op.loc, results=(result,))
    result.owner = convert
    return convert


def _layout(value: Value) -> Layout:
    assert isinstance(value.type, Tile) and value.type.layout is not None
    return value.type.layout
