"""Holds what the blocks of a cluster do together against what each of them does: they share items
of pipes and meet at barriers equally often, whatever their ranks. Knows no launch."""

from __future__ import annotations

from typing import TypeAlias

from warploom.base.diagnostics import Span
from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir import cluster as shape
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Effect, Op, Value
from warploom.ir.ops import cluster, scalar
from warploom.ir.ops.control import For, If, Loop, OneThread, While
from warploom.ir.ops.roles import HandBack, Position, Replica, Skip, Split
from warploom.ir.types import Scalar, Tensor

# How often a role comes to cluster barriers, as far as its text says.
_Meetings: TypeAlias = tuple[object, ...]


def check_cluster(kernel: Kernel, target: Target) -> None:
    """Refuse pipes and barriers of a cluster that not all of it may come to equally often.

    Needs: the tile stage. Gives: nothing new. Raises CompileError P037 (blocks), P038 (roles).
    """
    _check_roles(kernel)
    if kernel.cluster != shape.ALONE:
        varying = _Varying(kernel)
        _check_even(kernel.body, varying, None)


# ---- blocks ------------------------------------------------------------------------------------


def _together(op: Op) -> bool:
    """Whether all blocks of a cluster do it equally often."""
    return isinstance(op, cluster.Sync) or (isinstance(op, Position | Skip) and op.cluster)


def _check_even(block: Block, varying: _Varying, uneven: Op | None) -> None:
    for op in block.ops:
        if uneven is not None and _together(op):
            raise _uneven(op, uneven)
        if isinstance(op, Skip) and op.cluster and op.count in varying:
            raise _uneven(op, op)
        within = op if _divides(op, varying) else uneven
        for inner in op.regions():
            _check_even(inner, varying, within)


def _divides(op: Op, varying: _Varying) -> bool:
    """Whether blocks of a cluster may come to what stands inside unequally often."""
    if isinstance(op, OneThread | Split):
        return False
    deciding = op.deciding if isinstance(op, Loop) else op.operand_values()
    return bool(op.regions()) and any(v in varying for v in deciding)


def _uneven(op: Op, outer: Op) -> Error:
    what = "`wl.cluster_sync()`" if isinstance(op, cluster.Sync) else "an item of a cluster's pipe"
    where = "loop" if isinstance(outer, Loop) else "count" if op is outer else "branch"
    why = Span.at(outer.loc, label=f"this {where} is not the same for all of them")
    spans = (why,) if op is outer else (Span.at(op.loc), why)
    return error(
        "P037",
        f"blocks of one cluster may come to {what} unequally often",
        *spans,
        hint="let it depend on the number of the cluster, `wl.program_id(0) // wl.cluster_size(0)`,"
        " not on that of the block",
    )


class _Varying:
    """The values that may differ among the blocks of a cluster."""

    def __init__(self, kernel: Kernel) -> None:
        self.cluster = kernel.cluster
        self.written = {kernel.params[i] for i in kernel.written}
        self.values: set[Value] = set()
        before = -1
        while before != len(self.values):  # what a loop carries comes round again
            before = len(self.values)
            self._block(kernel.body)

    def __contains__(self, value: Value) -> bool:
        return value in self.values

    def _mark(self, *values: Value) -> None:
        self.values.update(values)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            for inner in op.regions():
                self._block(inner)
            if isinstance(op, Loop):
                self._loop(op)
            elif isinstance(op, If):
                self._branch(op)
            elif self._makes(op):
                self._mark(*op.results)
                for inner in op.regions():
                    self._mark(*inner.args)

    def _loop(self, op: Loop) -> None:
        if isinstance(op, For) and (op.lo in self or op.step in self):
            self._mark(op.body.args[0])
        given = op.body.ops[-1].operand_values()
        for arg, init, after in zip(op.carried, op.inits, given, strict=True):
            if init in self or after in self:
                self._mark(arg)
        uneven = any(v in self for v in op.deciding)
        for arg, result in zip(op.carried, op.results, strict=True):
            if uneven or arg in self:
                self._mark(result)

    def _branch(self, op: If) -> None:
        yields = (tuple(b.ops[-1].operand_values()) for b in (op.then, op.orelse))
        for result, yes, no in zip(op.results, *yields, strict=True):
            if op.condition in self or yes in self or no in self:
                self._mark(result)

    def _makes(self, op: Op) -> bool:
        """Whether the results of an operation may differ."""
        if isinstance(op, cluster.Rank | cluster.Mask):
            return True
        if isinstance(op, scalar.BlockId):
            return self.cluster[op.axis] > 1
        if isinstance(op, scalar.Binary) and op.kind == "floordiv" and self._whole(op):
            return False
        if isinstance(op, Position | HandBack | Skip):
            return False  # all count alike, or are refused
        if op.EFFECTS & {Effect.READ_SHARED, Effect.SYNC, Effect.WRITE_GLOBAL}:
            return True
        used = tuple(op.operand_values())
        if Effect.READ_GLOBAL in op.EFFECTS and self.written & set(used):
            return True
        return any(v in self for v in used if not isinstance(v.type, Tensor))

    def _whole(self, op: scalar.Binary) -> bool:
        """The index of a block divided by whole clusters, which is that of a cluster."""
        block, by = op.lhs.owner, op.rhs.owner
        if not (isinstance(block, scalar.BlockId) and isinstance(by, scalar.Const)):
            return False
        return by.number > 0 and by.number % self.cluster[block.axis] == 0


# ---- roles -------------------------------------------------------------------------------------


def _check_roles(kernel: Kernel) -> None:
    """A barrier of the cluster waits for every warp: for those of all roles."""
    for op in kernel.body.ops:
        if not isinstance(op, Split):
            continue
        meetings = [_meetings(body) for body in op.bodies]
        counts = [len(_syncs(body)) for body in op.bodies]
        rows = ", ".join(f"`{name}` {n}" for name, n in zip(op.names, counts, strict=True))
        note = f"calls in each role: {rows}"
        if len(set(meetings)) > 1 and len(set(counts)) == 1:
            note += ", and loops or branches around them differ"
        apart = next((n for n, m in zip(op.names, meetings, strict=True) if _by_replica(m)), "")
        if apart:
            note = f"a loop or branch around it depends on the number of a replica of `{apart}`"
        if len(set(meetings)) > 1 or apart:
            raise error(
                "P038",
                "not all roles come to `wl.cluster_sync()` equally often, and it waits for all "
                "warps",
                next(sync for body in op.bodies for sync in _syncs(body)).loc,
                notes=(note,),
                hint="call it in every role, in loops over the same bounds, or before `wl.roles()`",
            )


def _by_replica(meetings: object) -> bool:
    """Whether replicas of a role may come unequally often."""
    if isinstance(meetings, tuple):
        return any(map(_by_replica, meetings))
    return isinstance(meetings, Value) and isinstance(meetings.owner, Replica)


def _syncs(block: Block) -> list[cluster.Sync]:
    return [op for op in walk(block) if isinstance(op, cluster.Sync)]


def _meetings(block: Block) -> _Meetings:
    """The barriers of a role in order, with the loops and branches around them."""
    found: list[object] = []
    for op in block.ops:
        if isinstance(op, cluster.Sync):
            found.append("sync")
        elif isinstance(op, For) and _syncs(op.body):
            found.append(("for", *map(_same, op.deciding), _meetings(op.body)))
        elif isinstance(op, While) and _syncs(op.body):
            found.append(("while", _trips(op), _meetings(op.body)))
        elif isinstance(op, If) and (_syncs(op.then) or _syncs(op.orelse)):
            found.append(("if", _same(op.condition), _meetings(op.then), _meetings(op.orelse)))
        else:
            for inner in op.regions():
                found += _meetings(inner)
    return tuple(found)


def _trips(op: While) -> object:
    """Equal for loops that go round equally often: what the condition follows from enters and goes
    on alike. Carried values are numbered as they are met: roles carry others besides."""
    met = [op.carried[0]]
    found: list[object] = []
    after = dict(zip(op.carried, op.body.ops[-1].operand_values(), strict=True))
    first = dict(zip(op.carried, op.inits, strict=True))
    while len(found) < len(met):
        arg = met[len(found)]
        found.append((_same(first[arg]), _same(after[arg], op.carried, met)))
    return tuple(found)


def _same(value: Value, carried: tuple[Value, ...] = (), met: list[Value] | None = None) -> object:
    """Equal for scalars that are computed alike in every role from what is there before them all,
    or from `carried` values of a loop; those are entered in `met`."""
    if met is not None and value in carried:
        if value not in met:
            met.append(value)
        return ("carried", met.index(value))
    owner = value.owner
    alike = isinstance(owner, Op) and owner.is_pure and not isinstance(owner, Replica)
    if not alike or not isinstance(owner, Op) or not isinstance(value.type, Scalar):
        return value
    operands = tuple(_same(v, carried, met) for v in owner.operand_values())
    return (owner.OPCODE, tuple(map(repr, owner.attributes().values())), operands)
