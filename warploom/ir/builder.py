"""Appends operations to a block. Types of results come from the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from warploom.base.dtypes import DType, i32
from warploom.ir.op import UNKNOWN, Block, Loc, Op, Value
from warploom.ir.ops.control import OneThread, Yield
from warploom.ir.ops.scalar import Const

T = TypeVar("T", bound=Op)


class Builder:
    """An insertion point (end of `block`) and the source place given to what is appended."""

    def __init__(self, block: Block, loc: Loc = UNKNOWN) -> None:
        self.block = block
        self.loc = loc

    def add(self, op: T, name: str = "") -> T:
        """Append an operation and make its results; raises `Complaint` where operands do not
        fit."""
        if op.loc is UNKNOWN:
            op.loc = self.loc
        if not op.results:
            op.results = tuple(Value(t, name, op.loc) for t in op.infer())
        for value in op.results:
            value.owner = op
        self.block.ops.append(op)
        return op

    def emit(self, op: Op, name: str = "") -> Value:
        """Append an operation with one result and return that result."""
        return self.add(op, name).result

    def const(self, number: int | float | bool, dtype: DType = i32) -> Value:
        """A literal scalar."""
        return self.emit(Const(number=number, dtype=dtype))

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to a nested block for a while."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    @contextmanager
    def one_thread(self, per: str = "role", *, meet: bool = False) -> Iterator[OneThread]:
        """Append to what one thread of the role does, or of each of its warps (`OneThread`)."""
        made = self.add(OneThread(per=per, meet=meet, body=Block()))
        with self.inside(made.body):
            yield made
            self.add(Yield(values=()))

    @contextmanager
    def at(self, loc: Loc) -> Iterator[None]:
        """Give this source place to what is appended for a while."""
        outer, self.loc = self.loc, loc
        try:
            yield
        finally:
            self.loc = outer
