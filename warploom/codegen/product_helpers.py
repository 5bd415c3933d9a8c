"""Helpers of the prelude for products of the matrix unit: one inline asm an instruction. Source of
the forms: PTX ISA, "Asynchronous warpgroup-level matrix instructions". Knows no operation."""

from __future__ import annotations

from warploom.base.dtypes import DType
from warploom.base.target import Product, product_of, warp_product_of
from warploom.codegen.c_types import NARROW, c_type
from warploom.codegen.prelude import INLINE, Helper, Prelude

# What PTX calls the element types of operands, and what C++ calls those of sums.
_OPERAND = {"f32": "tf32", "f8e4m3": "e4m3", "f8e5m2": "e5m2", "i8": "s8"}
_SUM = {"f32": ("float", "f", "f32"), "i32": ("int", "r", "s32")}


def multiply(
    prelude: Prelude,
    dtypes: tuple[DType, DType],
    n: int,
    turned: tuple[bool | None, bool],
    fresh: bool = False,
) -> str:
    """Enter a product on 64 rows and `n` columns of an accumulator and return its name.

    The helper takes the first register of each of the two rows of registers that the instruction
    updates, then A and B: matrix descriptors, or four words for an A in registers. `turned` says
    which operand is not contiguous along K; None for an A in registers. `fresh`: the registers are
    written and not read.
    """
    can = product_of(*dtypes)
    assert can is not None
    kinds = [_OPERAND.get(t.name, t.name) for t in dtypes]
    words = [f"wgmma_m64n{n}k{can.depth}", *dict.fromkeys(kinds)]
    words += {None: ["ra"], True: ["at"], False: []}[turned[0]] + (["bt"] if turned[1] else [])
    words += ["fresh"] if fresh else []
    name = "_".join(words)
    prelude.make(name, lambda: _multiply(name, kinds, n, can, turned, fresh))
    return name


def multiply_in_warp(prelude: Prelude, a: DType, b: DType) -> str:
    """Enter a product of one warp and return its name: it takes where four sums go, four words of
    A, two of B, and the four sums that the product is added to."""
    can = warp_product_of(a, b)
    assert can is not None
    name = f"mma_m{can.rows}n{can.columns[0]}k{can.depth}_{a.name}"
    prelude.make(name, lambda: _multiply_in_warp(name, can, a, b))
    return name


def wait_group(prelude: Prelude, dtype: DType, registers: int) -> str:
    """Enter the wait for products that binds so many accumulator registers; returns its name."""
    name = f"wgmma_wait_{dtype.name}x{registers}"
    prelude.make(name, lambda: _wait_group(name, dtype, registers))
    return name


def word(prelude: Prelude, dtype: DType) -> str:
    """Enter the joining of registers of a dtype to one of 32 bits, first lowest; returns its
    name."""
    name = f"wgmma_word_{dtype.name}"
    prelude.make(name, lambda: _word(name, dtype))
    return name


def _word(name: str, dtype: DType) -> Helper:
    count, c = 4 // dtype.bytes, c_type(dtype)
    names = "abcd"[:count]
    bits = {1: "(unsigned char)", 2: "(unsigned short)"}.get(dtype.bytes, "")
    member = ".bits" if dtype.name in NARROW else ""
    parts = [
        f"(u32){'' if member else bits}{x}{member}" + (f" << {8 * dtype.bytes * n}" if n else "")
        for n, x in enumerate(names)
    ]
    value = "__float_as_uint(a)" if dtype.name == "f32" else " | ".join(parts)
    needs = ("u32", *([dtype.name] if member else []))
    parameters = ", ".join(f"{c} {x}" for x in names)
    return Helper(f"{INLINE} u32 {name}({parameters}) {{\n  return {value};\n}}", needs)


def _multiply(
    name: str,
    kinds: list[str],
    n: int,
    can: Product,
    turned: tuple[bool | None, bool],
    fresh: bool = False,
) -> Helper:
    # The instruction names its registers eight columns at a time: two of the upper row, two of the
    # lower one.
    bound = [
        f"{row}[{2 * j + e}]" for j in range(n // 8) for row in ("upper", "lower") for e in (0, 1)
    ]
    c, letter, sums = _SUM[can.sums.name]
    count, access = len(bound), "=" if fresh else "+"
    registers = _wrapped([f"%{i}" for i in range(count)])
    form = f"wgmma.mma_async.sync.aligned.m64n{n}k{can.depth}.{sums}.{kinds[0]}.{kinds[1]}"
    in_registers = turned[0] is None
    left = [f"a{i}" for i in range(4)] if in_registers else ["a"]
    names = [f"%{count + i}" for i in range(len(left) + 1)]
    shown = "{" + ", ".join(names[:-1]) + "}" if in_registers else names[0]
    # Whether it is added to what is there; neither operand negated; which ones lie across K.
    flags = [str(int(not fresh)), *([] if sums == "s32" else ["1", "1"])]
    if can.turned:
        flags += [str(int(t)) for t in turned if t is not None]
    tail = f"{shown}, {names[-1]}, {', '.join(flags)};"
    outputs = ",\n      ".join(
        ", ".join(f'"{access}{letter}"({r})' for r in bound[i : i + 4]) for i in range(0, count, 4)
    )
    kind, constraint = ("u32", "r") if in_registers else ("u64", "l")
    parameters = ", ".join(f"{kind} {x}" for x in left)
    inputs = ", ".join([*(f'"{constraint}"({x})' for x in left), '"l"(b)'])
    text = (
        f"{INLINE} void {name}({c}* upper, {c}* lower, {parameters}, u64 b) {{\n"
        f'  asm volatile("{form} {{"\n    {registers}\n    "}}, {tail}"\n'
        f"    : {outputs}\n    : {inputs});\n}}"
    )
    return Helper(text, ("u32", "u64") if in_registers else ("u64",))


def _multiply_in_warp(name: str, can: Product, a: DType, b: DType) -> Helper:
    shape = f"m{can.rows}n{can.columns[0]}k{can.depth}"
    return Helper(
        f"{INLINE} void {name}(float* d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1,\n"
        "    float c0, float c1, float c2, float c3) {\n"
        f'  asm("mma.sync.aligned.{shape}.row.col.f32.{a.name}.{b.name}.f32 "\n'
        '    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"\n'
        '    : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])\n'
        '    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1),\n'
        '      "f"(c0), "f"(c1), "f"(c2), "f"(c3));\n}',
        ("u32",),
    )


def _wrapped(words: list[str]) -> str:
    """C string pieces with sixteen words a line."""
    lines = [", ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return "\n    ".join(
        f'"{line}{"," if n + 1 < len(lines) else ""}"' for n, line in enumerate(lines)
    )


def _wait_group(name: str, dtype: DType, registers: int) -> Helper:
    c, letter, _ = _SUM[dtype.name]
    outputs = ",\n      ".join(
        ", ".join(f'"+{letter}"(acc[{r}])' for r in range(i, min(i + 8, registers)))
        for i in range(0, registers, 8)
    )
    return Helper(
        f"template <int PENDING>\n{INLINE} void {name}({c}* acc) {{\n"
        f'  asm volatile("wgmma.wait_group.sync.aligned %{registers};"\n'
        f'    : {outputs}\n    : "n"(PENDING) : "memory");\n}}'
    )
