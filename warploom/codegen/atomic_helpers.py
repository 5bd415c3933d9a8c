"""Helpers of the prelude that change one element of global memory in one step: one inline asm each.
Knows nothing of register tiles."""

from __future__ import annotations

from warploom.base.dtypes import DType
from warploom.codegen.c_types import c_type, memory_type
from warploom.codegen.prelude import INLINE, Helper, Prelude, predicated

SCOPES = {"block": "cta", "cluster": "cluster", "gpu": "gpu", "system": "sys"}
_WORDS = {"exchange": "exch", "cas": "cas"}
_CONSTRAINTS = {"f32": "f", "i32": "r", "i64": "l"}


def has_bare_form(kind: str, order: str) -> bool:
    """Whether PTX has an instruction that gives nothing back (red)."""
    return kind not in _WORDS and order in ("relaxed", "release")


def atomic(
    prelude: Prelude, dtype: DType, kind: str, order: str, scope: str, *, bare: bool, guarded: bool
) -> str:
    """Enter a helper and return its name. It takes the address, for `cas` what is expected, the
    value, and where `guarded` a predicate; it gives what was there (zero where the predicate is
    false), or nothing where `bare`."""
    head = "red" if bare else "atom"
    name = f"{head}_{kind}_{order}_{scope}_{dtype.name}"
    operation = f"{_WORDS.get(kind, kind)}.{_type(dtype, kind)}"
    instruction = f"{head}.{order}.{SCOPES[scope]}.global.{operation}"
    names = (["expected"] if kind == "cas" else []) + ["value"]
    prelude.make(
        f"{name}({'p' if guarded else ''})",
        lambda: _helper(name, instruction, dtype, names, bare, guarded),
    )
    return name


def _type(dtype: DType, kind: str) -> str:
    """How PTX spells the type of an operation."""
    if kind in ("max", "min"):
        return f"s{dtype.bits}"
    if kind == "add":
        return "f32" if dtype.is_float else f"u{dtype.bits}"
    return f"b{dtype.bits}"


def _helper(
    name: str, instruction: str, dtype: DType, names: list[str], bare: bool, guarded: bool
) -> Helper:
    c, constraint = c_type(dtype), _CONSTRAINTS[dtype.name]
    parameters = [f"{memory_type(dtype)}* at", *(f"{c} {n}" for n in names)]
    first = 0 if bare else 1
    given = ", ".join(f"%{first + 1 + n}" for n in range(len(names)))
    body = f"{instruction} {'' if bare else '%0, '}[%{first}], {given};"
    inputs = ['"l"(at)', *(f'"{constraint}"({n})' for n in names)]
    if guarded:
        parameters.append("bool p")
        inputs.append('"r"((int)p)')
        body = predicated(body, first + 1 + len(names))
    output = "" if bare else f'"+{constraint}"(old)'
    asm = f'asm volatile("{body}" : {output} : {", ".join(inputs)} : "memory");'
    head = f"{INLINE} {'void' if bare else c} {name}({', '.join(parameters)}) {{"
    if bare:
        return Helper(f"{head}\n  {asm}\n}}")
    return Helper(f"{head}\n  {c} old = 0;\n  {asm}\n  return old;\n}}")
