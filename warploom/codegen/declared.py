"""How many instructions of each kind a kernel's operations declare, and how many a PTX text holds.
Equal numbers show that neither emitter nor compiler added, dropped or duplicated one."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

from warploom.codegen.access_helpers import shuffles_of
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op, Value
from warploom.ir.ops import global_memory, lanes, shared_memory, sync
from warploom.ir.types import Regs

_PTX = {
    "ld.global": re.compile(r"\bld\.global(?!\.nc)\b"),
    "ld.global.nc": re.compile(r"\bld\.global\.nc\b"),
    "st.global": re.compile(r"\bst\.global\b"),
    "ld.shared": re.compile(r"\bld\.shared\b"),
    "st.shared": re.compile(r"\bst\.shared\b"),
    "shfl": re.compile(r"\bshfl\.sync\b"),
    "bar": re.compile(r"\bbar(?:rier)?\.(?:cta\.)?sync\b"),
    "bar.warp": re.compile(r"\bbar\.warp\.sync\b"),
    "fence": re.compile(r"\b(?:fence|membar)\b"),
    "redux": re.compile(r"\bredux\b"),
    "mbarrier": re.compile(r"\bmbarrier\b"),
    "cp.async": re.compile(r"\bcp\.async\b"),
    "wgmma": re.compile(r"\bwgmma\b"),
}

_ASM = re.compile(r"// begin inline asm\n(.*?)// end inline asm", re.DOTALL)


def declared(kernel: Kernel) -> Counter[str]:
    """Instructions by kind; those of a loop count once. (Loops with `unroll` 1 stay loops.)"""
    found: Counter[str] = Counter()
    for op in walk(kernel.body):
        kind, count = _of(op)
        if kind:
            found[kind] += count
    return +found


def counted(ptx: str) -> Counter[str]:
    """Instructions by kind in a PTX text from NVRTC.

    Only inline asm counts, which NVRTC marks: all accesses and barriers of an emitted kernel are
    inline asm, while functions such as sin read tables of their own.
    """
    code = "\n".join(_ASM.findall(ptx))
    return +Counter({kind: len(pattern.findall(code)) for kind, pattern in _PTX.items()})


def _of(op: Op) -> tuple[str, int]:
    match op:
        case global_memory.Load():
            return ("ld.global.nc" if op.read_only else "ld.global"), _registers(op.offset)
        case global_memory.LoadScalar():
            return ("ld.global.nc" if op.read_only else "ld.global"), 1
        case global_memory.Store():
            return "st.global", _registers(op.offset)
        case shared_memory.Load():
            return "ld.shared", _registers(op.offset)
        case shared_memory.Store():
            return "st.shared", _registers(op.offset)
        case lanes.ShuffleXor():
            held = op.value.type
            assert isinstance(held, Regs)
            return "shfl", _registers(op.value) * shuffles_of(held.dtype)
        case sync.Barrier():
            return "bar", 1
        case sync.WarpSync():
            return "bar.warp", 1
    return "", 0


def _registers(value: Value) -> int:
    assert isinstance(value.type, Regs)
    return prod(value.type.extents)
