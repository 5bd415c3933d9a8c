"""Checks that a kernel keeps its declarations and the rules of its stage. A failure is a fault of
the compiler, never of the user: front end errors are found before."""

from __future__ import annotations

import numpy as np

from warploom.ir.kernel import Kernel
from warploom.ir.layout.layout import LANES, Layout
from warploom.ir.op import Block, Complaint, Op, Stage, Value
from warploom.ir.ops.control import If, Yield, same_but_uniformity
from warploom.ir.ops.registers import Binary, Cast, Compare, Fma, Map, Select, Spread, Unary
from warploom.ir.types import Regs, Scalar, Tile

_IN_MAP = (Binary, Unary, Fma, Compare, Select, Cast, Spread, Yield)


class VerifyError(Exception):
    """The IR is broken: names the operation, its place and the rule."""


def verify_kernel(kernel: Kernel) -> None:
    """Raise `VerifyError` at the first operation that breaks its declaration or its stage."""
    seen: set[Value] = set(kernel.params)
    _verify_block(kernel.body, kernel.stage, seen)
    if not kernel.body.ops or not isinstance(kernel.body.ops[-1], Yield):
        raise VerifyError(f"kernel {kernel.name} does not end with a yield")


def _verify_block(block: Block, stage: Stage, visible: set[Value]) -> None:
    visible.update(block.args)
    for position, op in enumerate(block.ops):
        try:
            _verify_op(op, stage, visible)
            if (position == len(block.ops) - 1) != op.TERMINATOR and (
                op.TERMINATOR or block.ops[-1] is op
            ):
                raise Complaint("a block ends with its only terminator")
            for inner in op.regions():
                _verify_block(inner, stage, set(visible))
            if op.regions():
                _verify_results(op)
            op.verify()
            if isinstance(op, Map):
                _verify_map(op)
        except Complaint as complaint:
            raise VerifyError(f"{op.OPCODE} at {op.loc}: {complaint}") from None
        visible.update(op.results)


def _verify_op(op: Op, stage: Stage, visible: set[Value]) -> None:
    if not op.STAGES & stage:
        raise Complaint(f"not legal at stage {stage.name}")
    for value in op.operand_values():
        if value not in visible:
            raise Complaint(f"operand {value} is not defined before")
    if not op.regions():
        _verify_results(op)


def _verify_results(op: Op) -> None:
    inferred = op.infer()
    if len(inferred) != len(op.results):
        raise Complaint(f"{len(op.results)} results where {len(inferred)} are inferred")
    for have, want in zip(op.results, inferred, strict=True):
        if not same_but_uniformity(have.type, want) or _claims_more(op, have, want):
            raise Complaint(f"result {have} where {want} is inferred")
        if have.owner is not op:
            raise Complaint(f"result {have} belongs to another operation")
        if isinstance(have.type, Regs) and have.type.layout is not None:
            _verify_layout(have.type, have.type.layout)


def _claims_more(op: Op, have: Value, want: object) -> bool:
    if not isinstance(have.type, Scalar) or not isinstance(want, Scalar) or isinstance(op, If):
        return False
    return have.type.uniform < want.uniform


def _verify_layout(type: Regs | Tile, layout: Layout) -> None:
    if isinstance(type, Regs):
        fits = len(type.extents) == len(layout.reg_extents) and all(
            a in (1, b) for a, b in zip(type.extents, layout.reg_extents, strict=True)
        )
        if not fits:
            raise Complaint(f"registers {type.extents} under layout {layout}")


def _verify_map(op: Map) -> None:
    for inner in op.body.ops:
        if not isinstance(inner, _IN_MAP):
            raise Complaint(f"{inner.OPCODE} inside a map")
        for value in inner.results:
            assert isinstance(value.type, Regs)
            if any(a not in (1, b) for a, b in zip(value.type.extents, op.extents, strict=True)):
                raise Complaint(f"{value} inside a map of {op.extents}")


def check_coordinates(layout: Layout, axis: int, computed: np.ndarray) -> bool:
    """Whether integers computed at the machine stage are the layout's coordinates of an axis;
    `computed` is [registers of the axis, warps, lanes]."""
    want = layout.coordinates(axis)
    return computed.shape == (want.shape[0], layout.warps, LANES) and bool((computed == want).all())
