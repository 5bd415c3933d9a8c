"""Helpers of the prelude for PTX that a kernel gives as text: the text stands in one inline asm.
Knows no operation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from warploom.base.dtypes import DType
from warploom.codegen.c_types import NARROW, c_type
from warploom.codegen.prelude import INLINE, Helper, Prelude

_CONSTRAINT = {"f32": "f", "f64": "d", "f16": "h", "bf16": "h"}


def _constraint(dtype: DType) -> str:
    return _CONSTRAINT.get(dtype.name) or ("l" if dtype.bits == 64 else "r")


def _operand(name: str, dtype: DType, sign: str) -> str:
    member = ".bits" if dtype.name in NARROW else ""
    return f'"{sign}{_constraint(dtype)}"({name}{member})'


def enter(
    prelude: Prelude, text: str, outputs: Sequence[DType], inputs: Sequence[DType], *, acts: bool
) -> str:
    """Enter the helper of a text and return its name. `acts`: it has effects."""
    kinds = ",".join(str(d) for d in (*outputs, "-", *inputs))
    key = sha256(f"{kinds}{acts}{text}".encode()).hexdigest()[:8]
    name = f"ptx_{key}"
    parameters = [f"{c_type(d)}& o{n}" for n, d in enumerate(outputs)]
    parameters += [f"{c_type(d)} i{n}" for n, d in enumerate(inputs)]
    results = ", ".join(_operand(f"o{n}", d, "=") for n, d in enumerate(outputs))
    given = ", ".join(_operand(f"i{n}", d, "") for n, d in enumerate(inputs))
    head = "asm volatile" if acts else "asm"
    clobber = ' : "memory"' if acts else ""
    body = f"  {head}({json.dumps(text)} : {results} : {given}{clobber});"
    names = {d.name for d in (*outputs, *inputs)}
    needs = tuple(n for n in ("u32", "u64", *NARROW) if n in names)
    helper = f"{INLINE} void {name}({', '.join(parameters)}) {{\n{body}\n}}"
    prelude.make(name, lambda: Helper(helper, needs))
    return name
