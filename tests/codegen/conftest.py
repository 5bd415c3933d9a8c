"""Machine IR made by hand, so that the emitter is tested without front end and passes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from warploom.base.dtypes import DType, boolean, f32, i32
from warploom.base.target import SM_90A
from warploom.codegen.emitter import CudaSource, emit
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Loc, Stage, Value
from warploom.ir.ops import control, global_memory, index, registers
from warploom.ir.types import Tensor, TensorClass
from warploom.ir.verifier import verify_kernel


class Machine:
    """A kernel of the machine stage under construction; `build` appends operations."""

    def __init__(self) -> None:
        self.body = Block()
        self.build = Builder(self.body, Loc("/src/kernel.py", 10))
        self.params: list[Value] = []
        self.written: list[int] = []
        self.shared_bytes = 0
        self.warps = 4

    def tensor(self, name: str, dtype: DType = f32, strides: str = "1", **cls: object) -> Value:
        """A new tensor parameter."""
        kind = Tensor(dtype, len(strides), TensorClass(strides, **cls))  # type: ignore[arg-type]
        value = Value(kind, name)
        self.params.append(value)
        return value

    def parameter(self, name: str, kind: object) -> Value:
        """A new scalar parameter."""
        value = Value(kind, name)  # type: ignore[arg-type]
        self.params.append(value)
        return value

    def at_line(self, line: int) -> None:
        """Source line of what follows."""
        self.build.loc = Loc("/src/kernel.py", line)

    def constants(self, numbers: tuple[int, ...], rank: int = 1, axis: int = 0) -> Value:
        """A register tile of i32 constants along one axis."""
        return self.build.emit(index.Constants(rank=rank, axis=axis, numbers=numbers), "at")

    def splat(self, number: float, dtype: DType, extents: tuple[int, ...] = (1,)) -> Value:
        """A constant in registers."""
        one = registers.Splat(value=self.build.const(number, dtype), rank=len(extents))
        made = self.build.emit(one)
        if any(n > 1 for n in extents):
            made = self.build.emit(registers.Spread(value=made, extents=extents))
        return made

    def load(self, tensor: Value, count: int = 4, vec: int = 1, name: str = "x") -> Value:
        """Elements lane·count … of a tensor, `vec` an access, always in bounds."""
        offset = self.offsets(count, vec)
        base = self.build.const(0)
        return self.build.emit(
            global_memory.Load(tensor=tensor, base=base, offset=offset, vec=vec), name
        )

    def store(self, tensor: Value, value: Value, vec: int = 1) -> None:
        """Elements lane·count … of a tensor."""
        (count,) = value.type.extents  # type: ignore[union-attr]
        offset = self.offsets(count, vec)
        base = self.build.const(0)
        self.build.add(
            global_memory.Store(tensor=tensor, value=value, base=base, offset=offset, vec=vec)
        )
        number = self.params.index(tensor)
        if number not in self.written:
            self.written.append(number)

    def offsets(self, count: int, vec: int = 1) -> Value:
        """lane·count + 0, vec, 2·vec, …"""
        lane = self.build.emit(index.Lane(rank=1), "lane")
        scaled = registers.Binary(lhs=lane, rhs=self.splat(count, i32), kind="mul")
        start = self.build.emit(scaled)
        if count == vec:
            return start
        steps = self.constants(tuple(range(0, count, vec)))
        return self.build.emit(registers.Binary(lhs=start, rhs=steps, kind="add"))

    def binary(self, kind: str, lhs: Value, rhs: Value, name: str = "") -> Value:
        return self.build.emit(registers.Binary(lhs=lhs, rhs=rhs, kind=kind), name)

    def kernel(self, name: str = "kernel") -> Kernel:
        """The finished kernel, verified."""
        self.build.add(control.Yield())
        made = Kernel(
            name,
            tuple(self.params),
            self.body,
            stage=Stage.MACHINE,
            warps=self.warps,
            loc=Loc("/src/kernel.py", 8),
            shared_bytes=self.shared_bytes,
            written=tuple(self.written),
        )
        verify_kernel(made)
        return made


@pytest.fixture
def machine() -> Machine:
    """An empty kernel of the machine stage."""
    return Machine()


@pytest.fixture
def body_of() -> Callable[[Kernel], list[str]]:
    """The statements of the emitted kernel without source places, prelude, signature."""

    def lines(kernel: Kernel) -> list[str]:
        return statements(emit(kernel, SM_90A))

    return lines


def statements(source: CudaSource) -> list[str]:
    """The lines between the kernel's braces."""
    text = source.text[source.text.index('extern "C" __global__') :]
    lines = [line for line in text.splitlines() if not line.startswith("#line")]
    return [re.sub(r"^  ", "", line) for line in lines[1:-1]]


__all__ = ["Machine", "boolean", "statements"]
