"""What a block of a compiled kernel takes of its SM: registers by role, shared memory by buffer.

Numbers only, from machine IR and, where the assembler was asked, from its instructions. Knows no
form in which they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.ops.shared_memory import BufferOp
from warploom.ir.roles import split_of
from warploom.passes.place_roles import entry_registers
from warploom.runtime.sass import Use


@dataclass(frozen=True, slots=True)
class RoleBudget:
    """A role: `registers` a thread after setmaxnreg, `given` in the source or solved; `used` is the
    highest that its instructions name and `local_bytes` what they move to and from local memory,
    both None where the assembler was not asked."""

    name: str
    warps: int
    replicas: int
    registers: int
    given: bool
    used: int | None
    local_bytes: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer of shared memory: its place in bytes, what it holds, where it was made."""

    name: str
    at: int
    bytes: int
    dtype: str
    elements: int
    line: int


def asked_registers(kernel: Kernel) -> dict[str, int]:
    """The registers that the source gives roles, by name, before they are solved; 0 where none."""
    split = split_of(kernel)
    return dict(zip(split.names, split.registers, strict=True)) if split else {}


def roles(
    kernel: Kernel, target: Target, asked: Mapping[str, int], uses: Mapping[str, Use] | None
) -> list[RoleBudget]:
    """The roles of a kernel of the machine stage, in the order of their warps."""
    split = split_of(kernel)
    if split is None:
        return []
    entry = entry_registers(kernel.threads, target)
    found: list[tuple[int, RoleBudget]] = []
    for number, name in enumerate(split.names):
        use = uses.get(name) if uses is not None else None
        row = RoleBudget(
            name,
            split.warps[number],
            split.replicas[number],
            split.registers[number] or entry,
            bool(asked.get(name)),
            use.registers if use else None,
            use.local_bytes if use else None,
        )
        found.append((split.first[number], row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def shared_memory(kernel: Kernel) -> list[Part]:
    """The buffers of a kernel of the machine stage, in the order of their places."""
    parts = [
        Part(
            op.result.name,
            op.at,
            op.size,
            op.dtype.name,
            op.elements * op.copies,
            op.loc.line,
        )
        for op in walk(kernel.body)
        if isinstance(op, BufferOp)
    ]
    return sorted(parts, key=lambda part: (part.at, part.name))
