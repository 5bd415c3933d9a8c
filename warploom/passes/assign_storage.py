"""Gives carried values one variable each and writes the copies that loops and branches need. A
yield that permutes its values (`a, b = b, a`) is a parallel copy: cycles are broken by a
duplicate. Accumulators of the matrix unit are changed in place, and never copied in flight."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Assign, Declare, Duplicate, If, Loop
from warploom.ir.ops.wgmma import Fence, Mma, MmaRegisters, WaitGroup
from warploom.passes.later_uses import LaterUses


def assign_storage(kernel: Kernel, target: Target) -> None:
    """Declare storages of carried values and assign them.

    Needs: stage machine, last change of control flow done. Gives: arguments and results of loops
    and results of branches name a storage; `control.assign` moves every carried value; a product
    has the storage of its accumulator. Raises CompileError L016 where an accumulator would have to
    be copied in flight.
    """
    _Storages(kernel).block(kernel.body, {})


_PRODUCTS = (Mma, MmaRegisters)
_IN_PLACE = (*_PRODUCTS, WaitGroup)

# The storage that a value should be in because it is carried there.
_Wishes = dict[Value, Value]


class _Storages:
    def __init__(self, kernel: Kernel) -> None:
        self.count: dict[str, int] = {}
        self.places: dict[str, Value] = {}  # of each storage
        self.holders: dict[str, list[Value]] = {}  # values that are or were in a storage
        self.later = LaterUses(kernel)
        self.chains = Chains(kernel)

    # ---- storages ----------------------------------------------------------------------------

    def declare(self, like: Value, op: Op) -> Declare:
        """A new storage for values like this one."""
        base = like.name or "carried"
        number = self.count.get(base, 0)
        self.count[base] = number + 1
        declare = Declare(type=like.type, loc=op.loc)
        declare.results = (Value(like.type, like.name, like.loc),)
        declare.result.owner = declare
        declare.result.storage = f"{base}_s{number}"
        self.places[declare.result.storage] = declare.result
        return declare

    def hold(self, value: Value, storage: str) -> None:
        """A value is in a storage from its definition on."""
        value.storage = storage
        self.holders.setdefault(storage, []).append(value)

    def is_free(self, storage: str, at: Op) -> bool:
        """Whether nothing that a storage holds is read after an operation, or written by the matrix
        unit."""
        held = self.holders.get(storage, [])
        if held and self.chains.in_flight(held[-1]):
            return False
        return self.is_dead(storage, at)

    def is_dead(self, storage: str, at: Op) -> bool:
        """Whether nothing that a storage holds is read after an operation."""
        held = self.holders.get(storage, [])
        return not any(self.later.after(v, at, inside=False) for v in held)

    def copied(self, source: Value, place: Value, op: Op) -> Assign:
        """A move of a value to a storage."""
        if self.chains.in_flight(source):
            raise _copied_in_flight(source, op)
        return Assign(source=source, target=place, loc=op.loc)

    # ---- blocks ------------------------------------------------------------------------------

    def block(self, block: Block, wishes: _Wishes) -> None:
        ops: list[Op] = []
        for op in block.ops:
            if isinstance(op, Loop) and op.results:
                ops += self.loop(op, wishes)
            elif isinstance(op, If) and op.results:
                ops += self.branch(op, wishes)
            else:
                for inner in op.regions():
                    self.block(inner, wishes)
                if isinstance(op, _IN_PLACE):
                    at = _start(ops) if isinstance(op, _PRODUCTS) else len(ops)
                    ops[at:at] = self.in_place(op, wishes)
            ops.append(op)
        block.ops = ops

    def in_place(self, op: Mma | MmaRegisters | WaitGroup, wishes: _Wishes) -> list[Op]:
        """Accumulator and result are one storage; an accumulator that is in none, or is read again,
        is copied to one: that in which its sum is carried, if it is free. Zeros that the unit does
        not read need no copy."""
        before: list[Op] = []
        if not op.acc.storage or self.later.after(op.acc, op):
            place = wishes.get(self.chains.end(op.result))
            if place is None or not self.is_free(place.storage, op):
                declare = self.declare(op.result, op)
                place = declare.result
                before.append(declare)
            if isinstance(op, WaitGroup) or not op.fresh:
                before.append(self.copied(op.acc, place, op))
            op.acc = place
        self.hold(op.result, op.acc.storage)
        return before

    def loop(self, op: Loop, wishes: _Wishes) -> list[Op]:
        """Storages of the carried values, and what stands before the loop. They are known before
        the body is looked at: an accumulator stays in the one it came in."""
        before: list[Op] = []
        targets: list[Value] = []
        for init, arg, result in zip(op.inits, op.carried, op.results, strict=True):
            place = self.places.get(init.storage) if result in self.chains else None
            if place is None or op.inits.count(init) > 1 or self.later.after(init, op):
                declare = self.declare(result, op)
                place = declare.result
                before += [declare, self.copied(init, place, op)]
            targets.append(place)
            self.hold(arg, place.storage)
        last = op.body.ops[-1]
        ends = dict(zip(last.operand_values(), targets, strict=False))
        self.block(op.body, wishes | ends)
        self.move(op.body, targets)
        for result, place in zip(op.results, targets, strict=True):
            self.hold(result, place.storage)
        return before

    def branch(self, op: If, wishes: _Wishes) -> list[Op]:
        """The same for the results of a branch; an accumulator that both ways leave in one storage
        stays there."""
        before: list[Op] = []
        targets: list[Value | None] = []
        for result in op.results:
            if result in self.chains:
                targets.append(None)
                continue
            declare = self.declare(result, op)
            before.append(declare)
            targets.append(declare.result)
        for inner in op.regions():
            self.block(inner, wishes)
        found: list[Value] = []
        for number, (result, target) in enumerate(zip(op.results, targets, strict=True)):
            place = target or self.shared_place(op, number)
            if place is None:
                declare = self.declare(result, op)
                before.append(declare)
                place = declare.result
            found.append(place)
            self.hold(result, place.storage)
        for inner in op.regions():
            self.move(inner, found)
        return before

    def shared_place(self, op: If, number: int) -> Value | None:
        """The storage in which both ways leave a result, if nothing else in it is read later."""
        ends = [tuple(inner.ops[-1].operand_values())[number] for inner in op.regions()]
        storages = {end.storage for end in ends}
        if len(storages) != 1 or not (storage := storages.pop()):
            return None
        return self.places[storage] if self.is_dead(storage, op) else None

    def move(self, block: Block, targets: list[Value]) -> None:
        """Move what a block yields to its storages."""
        last = block.ops[-1]
        moves = list(zip(last.operand_values(), targets, strict=True))
        for source, place in moves:
            if source.storage != place.storage and self.chains.in_flight(source):
                raise _copied_in_flight(source, last)
        block.ops[-1:] = [*parallel_copy(moves, last), last]


def _start(ops: list[Op]) -> int:
    """Where the registers of a product are made ready that follows `ops`: before the fence which
    orders that before the unit's own writes."""
    for at in reversed(range(len(ops))):
        if isinstance(ops[at], Fence):
            return at
        if isinstance(ops[at], _PRODUCTS) or ops[at].regions():
            break
    return len(ops)


class Chains:
    """Accumulators: values that products and waits change in place, through loops and branches."""

    def __init__(self, kernel: Kernel) -> None:
        self.next: dict[Value, Value] = {}  # of an accumulator, after a product or wait
        self.sources: dict[Value, list[Value]] = {}  # what a carried value may be
        self.made: dict[Value, Op] = {}
        for op in walk(kernel.body):
            if isinstance(op, _IN_PLACE):
                self.next[op.acc] = op.result
                self.made[op.result] = op
            elif isinstance(op, Loop):
                ends = op.body.ops[-1].operand_values()
                for init, arg, end, result in zip(
                    op.inits, op.carried, ends, op.results, strict=True
                ):
                    self.sources[arg] = [init, end]
                    self.sources[result] = [init, end]
            elif isinstance(op, If):
                for inner in op.regions():
                    for end, result in zip(inner.ops[-1].operand_values(), op.results, strict=True):
                        self.sources.setdefault(result, []).append(end)

    def __contains__(self, value: Value) -> bool:
        """Whether a carried value comes from a product or wait."""
        return any(v in self.made for v in self._origins(value))

    def in_flight(self, value: Value) -> bool:
        """Whether the matrix unit may still write a value."""
        for origin in self._origins(value):
            made = self.made.get(origin)
            if isinstance(made, _PRODUCTS) or (isinstance(made, WaitGroup) and made.pending):
                return True
        return False

    def end(self, value: Value) -> Value:
        """The last value of a chain of products and waits."""
        while value in self.next:
            value = self.next[value]
        return value

    def _origins(self, value: Value) -> set[Value]:
        seen: set[Value] = set()
        todo = [value]
        while todo:
            found = todo.pop()
            if found not in seen:
                seen.add(found)
                todo += self.sources.get(found, [])
        return seen


def _copied_in_flight(value: Value, op: Op) -> Error:
    name = f"`{value.name}`" if value.name else "an accumulator"
    return error(
        "L016",
        f"{name} would be copied while the matrix unit writes it",
        value.loc if value.loc.line else op.loc,
        label="begun here" if isinstance(value.owner, _PRODUCTS) else "",
        notes=[
            "an accumulator stays in its registers: from one trip of a loop to the next, and "
            "on both ways of a branch, under one name"
        ],
        hint="wait for it first, and carry the tile: `t = acc.wait()`",
    )


def parallel_copy(moves: list[tuple[Value, Value]], last: Op) -> Iterator[Op]:
    """Assignments that have the effect of all `moves` (source, storage) at once.

    A storage may be overwritten once no move still reads it.
    """
    waiting = [(s, t) for s, t in moves if s.storage != t.storage]
    while waiting:
        reads = {s.storage for s, _ in waiting}
        free = next((m for m in waiting if m[1].storage not in reads), None)
        if free is not None:
            waiting.remove(free)
            yield Assign(source=free[0], target=free[1], loc=last.loc)
            continue
        # Only cycles are left: save one value, and let the move that wanted it read the copy.
        source, target = waiting[0]
        saved = Duplicate(value=source, loc=last.loc)
        saved.results = (Value(source.type, source.name, source.loc),)
        saved.result.owner = saved
        yield saved
        waiting[0] = (saved.result, target)
