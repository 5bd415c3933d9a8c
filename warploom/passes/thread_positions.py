"""Turns the hidden positions of rings into carried values: each role counts, for each ring that it
uses, the slot and the phase of its next item, through loops, branches and zero-trip paths. Nothing is
reset between the tiles of a persistent kernel."""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.base.target import Target
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import scalar
from warploom.ir.ops.control import For, If, Yield
from warploom.ir.ops.roles import Position, Split
from warploom.ir.types import Scalar, Uniformity

State = dict[int, tuple[Value, Value]]
_ROLE = Scalar(i32, Uniformity.ROLE)


def thread_positions(kernel: Kernel, target: Target) -> None:
    """Replace `roles.position`.

    Needs: stage tile. Gives: positions as scalars that loops and branches carry; every role starts
    each ring at slot 0 of phase 0.
    """
    for op in kernel.body.ops:
        if isinstance(op, Split):
            for body in op.bodies:
                _Threader().role(body)


def _rings(block: Block) -> tuple[int, ...]:
    return tuple(sorted({op.ring for op in walk(block) if isinstance(op, Position)}))


class _Threader:
    def __init__(self) -> None:
        self.swap: dict[Value, Value] = {}

    def role(self, body: Block) -> None:
        build = Builder(Block(), body.ops[0].loc)
        zero = build.const(0)
        self.block(body, {ring: (zero, zero) for ring in _rings(body)})
        body.ops[:0] = build.block.ops

    def block(self, block: Block, state: State) -> State:
        """Rewrite a block entered with these positions; gives those at its end."""
        build = Builder(Block())
        for op in block.ops:
            op.replace_operands(lambda v: self.swap.get(v, v))
            build.loc = op.loc
            if isinstance(op, Position):
                state = state | {op.ring: self.advance(build, op, state[op.ring])}
                continue
            if isinstance(op, For) and _rings(op.body):
                state = self.loop(op, state)
            elif isinstance(op, If) and (_rings(op.then) or _rings(op.orelse)):
                state = self.branch(op, state)
            else:
                for inner in op.regions():
                    self.block(inner, state)
            build.block.ops.append(op)
        block.ops = build.block.ops
        return state

    def advance(self, build: Builder, op: Position, at: tuple[Value, Value]) -> tuple[Value, Value]:
        """Results take the position as it is; the next one is one slot on."""
        slot, phase = at
        self.swap[op.results[0]], self.swap[op.results[1]] = slot, phase
        one = build.const(1)
        flipped = build.emit(scalar.Binary(lhs=phase, rhs=one, kind="xor"))
        if op.stages == 1:
            return slot, flipped
        after = build.emit(scalar.Binary(lhs=slot, rhs=one, kind="add"))
        last = build.emit(scalar.Compare(lhs=after, rhs=build.const(op.stages), kind="eq"))
        first = build.const(0)
        next_slot = build.emit(scalar.Select(condition=last, yes=first, no=after), "slot")
        next_phase = build.emit(scalar.Select(condition=last, yes=flipped, no=phase), "phase")
        return next_slot, next_phase

    def loop(self, op: For, state: State) -> State:
        rings = _rings(op.body)
        inner = dict(state)
        args: list[Value] = []
        for ring in rings:
            inner[ring] = (Value(_ROLE, "slot", op.loc), Value(_ROLE, "phase", op.loc))
            args += inner[ring]
        for arg in args:
            arg.owner = op.body
        op.inits += tuple(v for ring in rings for v in state[ring])
        op.body.args += tuple(args)
        leaves = self.block(op.body, inner)
        _extend_yield(op.body, leaves, rings)
        return state | _results(op, rings)

    def branch(self, op: If, state: State) -> State:
        rings = tuple(sorted({*_rings(op.then), *_rings(op.orelse)}))
        for inner in op.regions():
            leaves = self.block(inner, dict(state))
            _extend_yield(inner, leaves, rings)
        return state | _results(op, rings)


def _extend_yield(block: Block, state: State, rings: tuple[int, ...]) -> None:
    last = block.ops[-1]
    assert isinstance(last, Yield)
    last.values += tuple(v for ring in rings for v in state[ring])


def _results(op: Op, rings: tuple[int, ...]) -> State:
    found: State = {}
    for ring in rings:
        pair = (Value(_ROLE, "slot", op.loc), Value(_ROLE, "phase", op.loc))
        for value in pair:
            value.owner = op
        op.results += pair
        found[ring] = pair
    return found
