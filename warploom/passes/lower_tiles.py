"""Turns tile operations into machine operations: layouts become integers, windows become addresses
and predicates, exchanges become shared memory. Rules are in `lowering/`."""

from __future__ import annotations

from dataclasses import replace

from warploom.base.target import Target
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Stage, Value
from warploom.ir.ops import tma
from warploom.ir.ops.control import For, If, Loop, OneThread, Yield
from warploom.ir.ops.roles import SetRegisters, Split
from warploom.ir.types import Regs, Tile
from warploom.passes import lowering
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.place_roles import entry_registers

__all__ = ["lower_tiles", "lowering"]


def lower_tiles(kernel: Kernel, target: Target) -> None:
    """Replace every tile operation.

    Needs: every tile value has a layout. Gives: stage machine, without barriers; coordinates of the
    layouts stand at the top of the kernel.
    """
    lower = Lowering(kernel, target)
    body = Block()
    lower.build = Builder(body)
    _lower_block(lower, kernel.body, body)
    body.ops[:0] = [*_read_maps_ahead(kernel), *lower.prologue.block.ops]
    kernel.body = body
    kernel.stage = Stage.MACHINE


def _read_maps_ahead(kernel: Kernel) -> list[Op]:
    """Have one thread ask for all descriptors first: the first copy would wait for its own. No
    copy goes by a blank one."""
    reads: list[Op] = [
        tma.PrefetchMap(map=number, loc=kernel.loc)
        for number, made in enumerate(kernel.maps)
        if not made.blank
    ]
    if not reads:
        return []
    return [OneThread(body=Block((), [*reads, Yield(values=(), loc=kernel.loc)]), loc=kernel.loc)]


def _lower_block(lower: Lowering, source: Block, into: Block) -> None:
    with lower.build.inside(into):
        for op in source.ops:
            with lower.build.at(op.loc):
                _lower_op(lower, op)


def _lower_op(lower: Lowering, op: Op) -> None:
    rule = lowers.rules.get(type(op))
    if rule is not None:
        rule(lower, op)
    elif isinstance(op, Loop):
        _lower_loop(lower, op)
    elif isinstance(op, If):
        _lower_if(lower, op)
    elif isinstance(op, Split):
        _lower_split(lower, op)
    elif isinstance(op, OneThread):
        body = Block()
        _lower_block(lower, op.body, body)
        op.body = body
        lower.build.block.ops.append(op)
    elif isinstance(op, Yield):
        lower.build.add(Yield(values=tuple(_carried(lower, v) for v in op.values)))
    else:
        op.replace_operands(lower.get)
        lower.build.block.ops.append(op)


def _carried(lower: Lowering, value: Value) -> Value:
    return lower.whole(value) if isinstance(value.type, Tile) else lower.get(value)


def _machine_value(lower: Lowering, value: Value) -> Value:
    """The machine value of a carried one: all registers of the layout; scalars stay."""
    if not isinstance(value.type, Tile):
        return value
    layout = lower.layout(value)
    made = Value(Regs(value.type.dtype, layout.reg_extents, layout), value.name, value.loc)
    lower.values[value] = made
    return made


def _lower_loop(lower: Lowering, op: Loop) -> None:
    inits = tuple(_carried(lower, v) for v in op.inits)
    body = Block(tuple(_machine_value(lower, a) for a in op.body.args))
    _lower_block(lower, op.body, body)
    bounds = ("lo", "hi", "step") if isinstance(op, For) else ()
    given = {name: lower.get(getattr(op, name)) for name in bounds}
    made = replace(op, inits=inits, body=body, **given)
    _finish(lower, op, made)


def _lower_if(lower: Lowering, op: If) -> None:
    then, orelse = Block(), Block()
    _lower_block(lower, op.then, then)
    _lower_block(lower, op.orelse, orelse)
    made = replace(op, condition=lower.get(op.condition), then=then, orelse=orelse)
    _finish(lower, op, made)


def _lower_split(lower: Lowering, op: Split) -> None:
    outer = lower.prologue
    bodies = []
    for number, source in enumerate(op.bodies):
        lower.begin_role(op.replicas[number])
        body = Block()
        with lower.build.inside(body):
            _set_registers(lower, op, number)
        _lower_block(lower, source, body)
        body.ops[:0] = lower.prologue.block.ops
        bodies.append(body)
    # Nothing follows the roles, so the coordinates of the block before them are not asked for
    # again.
    lower.begin_role()
    lower.prologue = outer
    op.bodies = tuple(bodies)
    lower.build.block.ops.append(op)


def _set_registers(lower: Lowering, op: Split, number: int) -> None:
    count = op.registers[number]
    entry = entry_registers(lower.kernel.threads, lower.target)
    if count and count != entry:
        lower.build.add(SetRegisters(count=count, grow=count > entry))


def _finish(lower: Lowering, op: Op, made: Op) -> None:
    made.results = tuple(_machine_value(lower, v) for v in op.results)
    for value in made.results:
        value.owner = made
    lower.build.block.ops.append(made)
