"""Turns the hidden positions of rings into carried values: each role counts, for each ring that it
uses, the slot and the phase of its next item (or the rounds made), through loops, branches and
zero-trip paths. Nothing is reset between the tiles of a persistent kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warploom.base.dtypes import i32
from warploom.base.target import Target
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import mbarrier, scalar, wgmma
from warploom.ir.ops.cluster import ArrivePeers
from warploom.ir.ops.control import For, If, Loop, Yield
from warploom.ir.ops.roles import HandBack, Position, Round, Skip, Split
from warploom.ir.types import Scalar, Uniformity

# Of each ring: slot and phase of the next item, and how many taken items are held; or the number of
# the next round.
_At = tuple[Value, ...]
State = dict[int, _At]
_ITEM, _ROUND = ("slot", "phase", "held"), ("round",)
_ROLE = Scalar(i32, Uniformity.ROLE)
_ON_RING = (Position, Round, HandBack, Skip)


def thread_positions(kernel: Kernel, target: Target) -> None:
    """Replace `roles.position`, `roles.round`, `roles.hand_back` and `roles.skip`.

    Needs: stage tile. Gives: positions as scalars that loops and branches carry; every role starts
    each ring at slot 0 of phase 0, or at round 0, and so does the block before its roles.
    """
    for op in kernel.body.ops:
        if isinstance(op, Split):
            for body in op.bodies:
                _Threader().role(body)
    if _rings(kernel.body):
        _Threader().role(kernel.body)


def _rings(block: Block) -> tuple[int, ...]:
    return tuple(sorted({op.ring for op in walk(block) if isinstance(op, _ON_RING)}))


def _names(block: Block) -> dict[int, tuple[str, ...]]:
    """What is counted of each ring of a role."""
    found: dict[int, tuple[str, ...]] = {}
    for op in walk(block):
        if isinstance(op, _ON_RING):
            found[op.ring] = _ROUND if isinstance(op, Round) else _ITEM
    return dict(sorted(found.items()))


def _held_by(block: Block) -> dict[int, HandBack]:
    """The rings of which a loop's or role's own body (no loop inside it) holds items, by ring."""
    found: dict[int, HandBack] = {}
    for op in block.ops:
        if isinstance(op, HandBack):
            found[op.ring] = op
        elif not isinstance(op, Loop):
            for inner in op.regions():
                found |= _held_by(inner)
    return found


class _Threader:
    def __init__(self) -> None:
        self.swap: dict[Value, Value] = {}
        self.holding: dict[int, HandBack] = {}  # by ring: what the loops around may hold

    def role(self, body: Block) -> None:
        build = Builder(Block(), body.ops[0].loc)
        zero = build.const(0)
        self.holding = held = _held_by(body)
        # What is held goes back behind the last statement that takes, not behind what may wait for
        # other roles.
        last = max((i for i, op in enumerate(body.ops) if _takes(op, held)), default=-1)
        first, rest = Block((), body.ops[: last + 1]), Block((), body.ops[last + 1 :])
        names = _names(body)
        state = self.block(first, {ring: (zero,) * len(names[ring]) for ring in names})
        end = Builder(Block(), body.ops[last].loc)
        state = self.drain(end, held, state)
        self.block(rest, state)
        body.ops = [*build.block.ops, *first.ops, *end.block.ops, *rest.ops]

    def block(self, block: Block, state: State) -> State:
        """Rewrite a block entered with these positions; gives those at its end."""
        build = Builder(Block())
        for op in block.ops:
            op.replace_operands(lambda v: self.swap.get(v, v))
            build.loc = op.loc
            if isinstance(op, Position):
                state = state | {op.ring: self.advance(build, op, state[op.ring])}
                continue
            if isinstance(op, Round):
                state = state | {op.ring: self.next_round(build, op, state[op.ring])}
                continue
            if isinstance(op, HandBack):
                state = state | {op.ring: self.hand_back(build, op, state[op.ring])}
                continue
            if isinstance(op, Skip):
                state = self.skip(build, op, state)
                continue
            if isinstance(op, Loop) and _rings(op.body):
                outer, held = self.holding, _held_by(op.body)
                self.holding = outer | held
                state = self.loop(op, state)
                self.holding = outer
                build.block.ops.append(op)
                state = self.drain(build, held, state)
                continue
            if isinstance(op, If) and (_rings(op.then) or _rings(op.orelse)):
                state = self.branch(op, state)
            else:
                for inner in op.regions():
                    self.block(inner, state)
            build.block.ops.append(op)
        block.ops = build.block.ops
        return state

    def next_round(self, build: Builder, op: Round, at: _At) -> _At:
        """The result is the number of the round; the next one is one more."""
        (number,) = at
        self.swap[op.result] = number
        if not op.advances:
            return at
        more = scalar.Binary(lhs=number, rhs=build.const(1), kind="add")
        return (build.emit(more, "round"),)

    def advance(self, build: Builder, op: Position, at: _At) -> _At:
        """Results take the position as it is; the next one is one slot on."""
        slot, phase, held = at
        self.swap[op.results[0]], self.swap[op.results[1]] = slot, phase
        return (*_next(build, slot, phase, op.stages), held) if op.advances else at

    def skip(self, build: Builder, op: Skip, state: State) -> State:
        """Move `count` items on, after handing back what is held."""
        held_by = {op.ring: self.holding[op.ring]} if op.ring in self.holding else {}
        state = self.drain(build, held_by, state)
        slot, phase, held = state[op.ring]
        if op.visits:
            return state | {op.ring: (*_visit(build, op, slot, phase), held)}
        total = build.emit(scalar.Binary(lhs=slot, rhs=op.count, kind="add"))
        stages, one = build.const(op.stages), build.const(1)
        laps = total
        if op.stages > 1:
            laps = build.emit(scalar.Binary(lhs=total, rhs=stages, kind="floordiv"))
            slot = build.emit(scalar.Binary(lhs=total, rhs=stages, kind="mod"), "slot")
        odd = build.emit(scalar.Binary(lhs=laps, rhs=one, kind="and"))
        phase = build.emit(scalar.Binary(lhs=phase, rhs=odd, kind="xor"), "phase")
        return state | {op.ring: (slot, phase, held)}

    def hand_back(self, build: Builder, op: HandBack, at: _At) -> _At:
        """Arrive for the item `behind` before this one, if that many are held."""
        slot, phase, held = at
        count = _count(held)
        if count is not None:
            # Known where the text says it, such as behind a loop whose items have gone back.
            if count == op.behind:
                _arrive(build, op, _earlier(build, op.slot, op.behind, op.stages))
            return slot, phase, build.const(min(count + 1, op.behind))
        most = build.const(op.behind)
        due = build.emit(scalar.Compare(lhs=held, rhs=most, kind="eq"))
        with _only_if(build, due):
            _arrive(build, op, _earlier(build, op.slot, op.behind, op.stages))
        more = build.emit(scalar.Binary(lhs=held, rhs=build.const(1), kind="add"))
        return slot, phase, build.emit(scalar.Select(condition=due, yes=held, no=more), "held")

    def drain(self, build: Builder, held_by: dict[int, HandBack], state: State) -> State:
        """At the end of a loop or role: retire what is in flight, hand back what is still held."""
        if held_by:
            build.add(wgmma.Drain())
        for ring, op in held_by.items():
            slot, phase, held = state[ring]
            count, build.loc = _count(held), op.loc
            for number in range(op.behind if count is None else count):
                if count is not None:
                    _arrive(build, op, _earlier(build, slot, 1 + number, op.stages))
                    continue
                some = build.emit(scalar.Compare(lhs=held, rhs=build.const(number), kind="gt"))
                with _only_if(build, some):
                    _arrive(build, op, _earlier(build, slot, 1 + number, op.stages))
            state = state | {ring: (slot, phase, build.const(0))}
        return state

    def loop(self, op: Loop, state: State) -> State:
        rings = _rings(op.body)
        # How much of a position is carried: not what is held, where that is nothing at both ends.
        carried = {ring: len(state[ring]) for ring in rings}
        for ring in rings:
            if len(state[ring]) == len(_ITEM) and _count(state[ring][-1]) == 0:
                carried[ring] -= _empties(op.body, ring)
        inner = state | {r: _fresh(op, state[r])[: carried[r]] for r in rings}
        args = [v for ring in rings for v in inner[ring]]
        for arg in args:
            arg.owner = op.body
        inner |= {r: inner[r] + state[r][carried[r] :] for r in rings}
        op.inits += tuple(v for ring in rings for v in state[ring][: carried[ring]])
        op.body.args += tuple(args)
        leaves = self.block(op.body, inner)
        _extend_yield(op.body, {r: leaves[r][: carried[r]] for r in rings}, rings)
        results = _results(op, rings, {r: state[r][: carried[r]] for r in rings})
        return state | {r: results[r] + state[r][carried[r] :] for r in rings}

    def branch(self, op: If, state: State) -> State:
        rings = tuple(sorted({*_rings(op.then), *_rings(op.orelse)}))
        for inner in op.regions():
            leaves = self.block(inner, dict(state))
            _extend_yield(inner, leaves, rings)
        return state | _results(op, rings, state)


def _takes(op: Op, rings: dict[int, HandBack]) -> bool:
    """Whether an operation, or one inside it, holds an item of these rings."""
    inner = (i for block in op.regions() for i in walk(block))
    return any(isinstance(i, HandBack) and i.ring in rings for i in (op, *inner))


def _next(build: Builder, slot: Value, phase: Value, stages: int) -> tuple[Value, Value]:
    """The position one item on."""
    one = build.const(1)
    flipped = build.emit(scalar.Binary(lhs=phase, rhs=one, kind="xor"))
    if stages == 1:
        return slot, flipped
    after = build.emit(scalar.Binary(lhs=slot, rhs=one, kind="add"))
    last = build.emit(scalar.Compare(lhs=after, rhs=build.const(stages), kind="eq"))
    first = build.const(0)
    next_slot = build.emit(scalar.Select(condition=last, yes=first, no=after), "slot")
    next_phase = build.emit(scalar.Select(condition=last, yes=flipped, no=phase), "phase")
    return next_slot, next_phase


def _visit(build: Builder, op: Skip, slot: Value, phase: Value) -> tuple[Value, Value]:
    """Wait for each of `count` items and hand it back; the position behind them."""
    number, at, parity = (Value(_ROLE, name, op.loc) for name in ("passed", "slot", "phase"))
    body = Block((number, at, parity))
    zero, one = build.const(0), build.const(1)
    with build.inside(body):
        full = build.emit(mbarrier.At(barriers=op.full, index=at))
        build.add(mbarrier.Wait(barrier=full, parity=parity))
        _arrive(build, op, at)
        build.add(Yield(values=_next(build, at, parity, op.stages)))
    loop = For(lo=zero, hi=op.count, step=one, inits=(slot, phase), body=body)
    after = build.add(loop).results
    return after[0], after[1]


def _count(held: Value) -> int | None:
    """How many items are held, where that is a constant."""
    return int(held.owner.number) if isinstance(held.owner, scalar.Const) else None


def _extend_yield(block: Block, state: State, rings: tuple[int, ...]) -> None:
    last = block.ops[-1]
    assert isinstance(last, Yield)
    last.values += tuple(v for ring in rings for v in state[ring])


def _results(op: Op, rings: tuple[int, ...], state: State) -> State:
    found: State = {}
    for ring in rings:
        found[ring] = _fresh(op, state[ring])
        for value in found[ring]:
            value.owner = op
        op.results += found[ring]
    return found


def _empties(block: Block, ring: int) -> bool:
    """Whether a body that is entered with no item of a ring held is left so: what a loop in it
    holds goes back behind that loop."""
    for op in reversed(block.ops):
        if isinstance(op, Loop):
            if ring in _held_by(op.body):
                return True
            if not _empties(op.body, ring):
                return False
        elif ring in _held_by(Block((), [op])):
            return False
    return True


def _fresh(op: Op, like: _At) -> _At:
    """New values for a position."""
    names = _ROUND if len(like) == len(_ROUND) else _ITEM
    return tuple(Value(_ROLE, name, op.loc) for name in names[: len(like)])


def _earlier(build: Builder, slot: Value, count: int, stages: int) -> Value:
    """The slot `count` items before this one; count ≤ stages."""
    back = build.emit(scalar.Binary(lhs=slot, rhs=build.const(count), kind="sub"))
    below = build.emit(scalar.Compare(lhs=back, rhs=build.const(0), kind="lt"))
    around = build.emit(scalar.Binary(lhs=back, rhs=build.const(stages), kind="add"))
    return build.emit(scalar.Select(condition=below, yes=around, no=back))


@contextmanager
def _only_if(build: Builder, condition: Value) -> Iterator[None]:
    then, orelse = Block(), Block()
    with build.inside(orelse):
        build.add(Yield(values=()))
    with build.inside(then):
        yield
        build.add(Yield(values=()))
    build.add(If(condition=condition, then=then, orelse=orelse))


def _arrive(build: Builder, op: HandBack | Skip, slot: Value) -> None:
    """One arrival a warp of the role."""
    with build.one_thread("warp"):
        barrier = build.emit(mbarrier.At(barriers=op.empty, index=slot))
        if op.steps == (0,):
            build.add(mbarrier.Arrive(barrier=barrier))
        else:
            build.add(ArrivePeers(barrier=barrier, steps=op.steps, ordered=op.ordered))
