"""Checks that a kernel keeps its declarations and the rules of its stage. A failure is a fault of
the compiler, never of the user: front end errors are found before."""

from __future__ import annotations

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Complaint, Op, Stage, Value, check
from warploom.ir.ops.control import If, Loop, Yield, same_but_uniformity, uniformity
from warploom.ir.ops.registers import Binary, Cast, Compare, Fma, Map, Select, Spread, Unary
from warploom.ir.ops.roles import Split
from warploom.ir.ops.shared_memory import BufferOp
from warploom.ir.ops.sync import Agree, Barrier
from warploom.ir.types import (
    Barriers,
    Buffer,
    Regs,
    RemoteBarrier,
    RemoteTile,
    Scalar,
    SharedTile,
    Tensor,
    Tile,
    Type,
    Uniformity,
)

_IN_MAP = (Binary, Unary, Fma, Compare, Select, Cast, Spread, Yield)


class VerifyError(Exception):
    """The IR is broken: names the operation, its place and the rule."""


def verify_kernel(kernel: Kernel) -> None:
    """Raise `VerifyError` at the first operation that breaks its declaration or its stage."""
    try:
        for param in kernel.params:
            check(isinstance(param.type, Tensor | Scalar), f"parameter {param} is no argument")
        check(
            all(
                0 <= i < len(kernel.params) and isinstance(kernel.params[i].type, Tensor)
                for i in kernel.written
            ),
            f"written parameters {kernel.written} are not all tensors",
        )
        check(kernel.warps >= 1, f"{kernel.warps} warps")
    except Complaint as complaint:
        raise VerifyError(f"kernel {kernel.name}: {complaint}") from None
    _Verifier(kernel).block(kernel.body, set(kernel.params))


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.warps = kernel.warps  # that execute together: of the block, within a role of the role
        self.replicas = 1  # of the role

    def block(self, block: Block, visible: set[Value]) -> None:
        """Check a block that sees these values; its own are added to them."""
        if not block.ops:
            raise VerifyError(f"kernel {self.kernel.name}: a block without a yield")
        visible.update(block.args)
        for op in block.ops:
            try:
                if (op is block.ops[-1]) != op.TERMINATOR:
                    raise Complaint("a block ends with its only terminator")
                self.enter(op, visible)
                for number, inner in enumerate(op.regions()):
                    outer = self.warps, self.replicas
                    if isinstance(op, Split):
                        self.warps = op.warps[number]
                        known = number < len(op.replicas)
                        self.replicas = op.replicas[number] if known else 1
                    self.block(inner, set(visible))
                    self.warps, self.replicas = outer
                self.leave(op)
            except Complaint as complaint:
                raise VerifyError(f"{op.OPCODE} at {op.loc}: {complaint}") from None
            visible.update(op.results)

    def enter(self, op: Op, visible: set[Value]) -> None:
        """What must hold before the regions of an operation are looked at."""
        if not op.STAGES & self.kernel.stage:
            raise Complaint(f"not legal at stage {self.kernel.stage.name}")
        for value in op.operand_values():
            if value not in visible:
                raise Complaint(f"operand {value} is not defined before")
        for value in op.results:
            if value in visible:
                raise Complaint(f"result {value} is defined twice")
            if value.owner is not op:
                raise Complaint(f"result {value} belongs to another operation")
            _check_type(value, self.kernel.stage, self.warps)
        for inner in op.regions():
            for arg in inner.args:
                if arg.owner is not inner:
                    raise Complaint(f"argument {arg} belongs to another block")
                _check_type(arg, self.kernel.stage, self.warps)

    def leave(self, op: Op) -> None:
        """What must hold once its regions are known to be whole."""
        inferred = op.infer()
        if len(inferred) != len(op.results):
            raise Complaint(f"{len(op.results)} results where {len(inferred)} are inferred")
        for have, want in zip(op.results, inferred, strict=True):
            if not same_but_uniformity(have.type, want) or _claims_more(have, want):
                raise Complaint(f"result {have} where {want} is inferred")
        op.verify()
        if isinstance(op, Map):
            _check_map(op)
        if isinstance(op, BufferOp) and op.copies != self.replicas:
            raise Complaint(f"{op.copies} copies of a buffer that {self.replicas} replicas make")
        if isinstance(op, Loop | If):
            _check_barriers(op)


def _claims_more(have: Value, want: Type) -> bool:
    """Whether a result is said to be more uniform than what it is computed from."""
    return isinstance(want, Scalar) and uniformity(have) < want.uniform


def _check_type(value: Value, stage: Stage, warps: int) -> None:
    """A value is of a kind that the stage has, and a layout fits what it describes."""
    type = value.type
    machine = stage is Stage.MACHINE
    if isinstance(type, Tile) and machine:
        raise Complaint(f"{value} is a tile at the machine stage")
    if isinstance(type, Regs | Buffer) and not machine:
        raise Complaint(f"{value} before the machine stage")
    if isinstance(type, SharedTile | Barriers | RemoteBarrier | RemoteTile) and machine:
        raise Complaint(f"{value} has no address at the machine stage")
    if not isinstance(type, Regs | Tile) or type.layout is None:
        return
    layout = type.layout
    if layout.warps != warps:
        raise Complaint(f"{value} has layout {layout} of {layout.warps} warps")
    if isinstance(type, Tile):
        fits = layout.shape == type.shape
    else:
        fits = len(type.extents) == len(layout.reg_extents) and all(
            a in (1, b) for a, b in zip(type.extents, layout.reg_extents, strict=True)
        )
    if not fits:
        raise Complaint(f"{value} under layout {layout}")


def _check_map(op: Map) -> None:
    check(not op.body.args, "a map has no arguments")
    for inner in op.body.ops:
        check(isinstance(inner, _IN_MAP), f"{inner.OPCODE} inside a map")
        for value in inner.results:
            assert isinstance(value.type, Regs)
            fits = len(value.type.extents) == len(op.extents) and all(
                a in (1, b) for a, b in zip(value.type.extents, op.extents, strict=True)
            )
            check(fits, f"{value} inside a map of {op.extents}")


def _check_barriers(op: Loop | If) -> None:
    """All warps of the role come to a barrier, or none does."""
    deciding = (op.condition,) if isinstance(op, If) else op.deciding
    if max(map(uniformity, deciding)) < Uniformity.WARP:
        return
    for block in op.regions():
        for inner in walk(block):
            check(
                not isinstance(inner, Barrier | Agree), "a barrier that not all warps may come to"
            )
