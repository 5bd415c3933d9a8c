"""Helpers of the prelude for flagged data: values and epoch in one access of 8 or 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.base.dtypes import DType
from warploom.codegen.atomic_helpers import SCOPES
from warploom.codegen.c_types import c_type
from warploom.codegen.prelude import INLINE, Helper, Prelude


def put(prelude: Prelude, kinds: Sequence[DType], scope: str, *, guarded: bool) -> str:
    """Enter a helper that writes a word and returns its name. It takes the address, the values, the
    epoch, and where `guarded` a predicate."""
    name = _name("put", kinds, scope)
    values = [f"v{n}" for n in range(len(kinds))]
    given = ", ".join(f"{c_type(k)} {v}" for k, v in zip(kinds, values, strict=True))
    bits = [_bits(k, v) for k, v in zip(kinds, values, strict=True)]
    order = f"st.relaxed.{SCOPES[scope]}.global"
    if len(kinds) == 1:
        words = [_word(bits[0], "epoch")]
        text = f"{order}.b64 [%0], %1;"
    else:
        words = [_word(bits[0], bits[1]), _word(bits[2] if len(bits) > 2 else "0", "epoch")]
        text = f"{{ .reg .b128 word; mov.b128 word, {{%1, %2}}; {order}.b128 [%0], word; }}"
    inputs = ", ".join(['"l"(at)', *(f'"l"({w})' for w in words)])
    asm = f'asm volatile("{text}" :: {inputs} : "memory");'
    last = ", bool p" if guarded else ""
    head = f"{INLINE} void {name}(long long* at, {given}, int epoch{last})"
    test = "if (p) " if guarded else ""
    prelude.make(
        _form(name, guarded), lambda: Helper(f"{head} {{\n  {test}{asm}\n}}", ("u32", "u64"))
    )
    return name


def look(prelude: Prelude, long: bool, scope: str, *, guarded: bool) -> str:
    """Enter a helper that loads a word and returns its name. It takes places for the one or two
    registers, the address, and where `guarded` a predicate."""
    name = f"flagged_look_{16 if long else 8}_{scope}"
    last = ", bool p" if guarded else ""
    head = f"{INLINE} void {name}({_registers(long)}, const long long* at{last})"
    zero = "*low = 0; *high = 0;" if long else "*low = 0;"
    test = f"  {zero}\n  if (p) " if guarded else "  "
    prelude.make(_form(name, guarded), lambda: Helper(f"{head} {{\n{test}{_load(long, scope)}\n}}"))
    return name


def look_again(prelude: Prelude, long: bool, scope: str, *, guarded: bool) -> str:
    """Enter a helper that loads a word anew if it does not have the epoch, and returns its name.
    It takes places of the registers, the address, the epoch, and where `guarded` a predicate, and
    tells whether the word was missing."""
    name = f"flagged_look_again_{16 if long else 8}_{scope}"
    last, test = (", bool p", "p && ") if guarded else ("", "")
    head = f"{INLINE} bool {name}({_registers(long)}, const long long* at, int epoch{last})"
    missing = f"{test}(int)({'*high' if long else '*low'} >> 32) != epoch"
    text = (
        f"{head} {{\n  bool missing = {missing};\n  {_load_if(long, scope)}\n  return missing;\n}}"
    )
    prelude.make(_form(name, guarded), lambda: Helper(text))
    return name


def values(prelude: Prelude, kinds: Sequence[DType]) -> str:
    """Enter a helper that takes the values out of a word, and returns its name. It takes places for
    them, and the one or two registers."""
    name, long = f"flagged_values_{'_'.join(k.name for k in kinds)}", len(kinds) > 1
    places = ", ".join(f"{c_type(k)}* v{n}" for n, k in enumerate(kinds))
    found = "long long low, long long high" if long else "long long low"
    halves = ["low", "(low >> 32)", "high"] if long else ["low"]
    lines = []
    for n, kind in enumerate(kinds):
        half = f"(int){halves[n]}"
        lines.append(f"  *v{n} = {half if kind.is_int else f'__int_as_float({half})'};")
    head = f"{INLINE} void {name}({places}, {found})"
    body = "\n".join(lines)
    prelude.make(name, lambda: Helper(f"{head} {{\n{body}\n}}"))
    return name


def _name(verb: str, kinds: Sequence[DType], scope: str) -> str:
    return f"flagged_{verb}_{'_'.join(k.name for k in kinds)}_{scope}"


def _form(name: str, guarded: bool) -> str:
    return f"{name}({'p' if guarded else ''})"


def _registers(long: bool) -> str:
    return "long long* low, long long* high" if long else "long long* low"


def _load(long: bool, scope: str) -> str:
    order = f"ld.relaxed.{SCOPES[scope]}.global"
    if not long:
        return f'asm volatile("{order}.b64 %0, [%1];" : "=l"(*low) : "l"(at) : "memory");'
    text = f"{{ .reg .b128 word; {order}.b128 word, [%2]; mov.b128 {{%0, %1}}, word; }}"
    return f'asm volatile("{text}" : "=l"(*low), "=l"(*high) : "l"(at) : "memory");'


def _load_if(long: bool, scope: str) -> str:
    """As `_load`, where the word is missing: without a branch, so that loads go out together."""
    order = f"ld.relaxed.{SCOPES[scope]}.global"
    given = '"l"(at), "r"((int)missing) : "memory"'
    if not long:
        text = f"{{ .reg .pred q; setp.ne.b32 q, %2, 0; @q {order}.b64 %0, [%1]; }}"
        return f'asm volatile("{text}" : "+l"(*low) : {given});'
    text = (
        f"{{ .reg .pred q; .reg .b128 word; setp.ne.b32 q, %3, 0; @q {order}.b128 word, [%2]; "
        "@q mov.b128 {%0, %1}, word; }"
    )
    return f'asm volatile("{text}" : "+l"(*low), "+l"(*high) : {given});'


def _bits(kind: DType, value: str) -> str:
    return value if kind.is_int else f"__float_as_int({value})"


def _word(low: str, high: str) -> str:
    """Two values of 32 bits as one of 64."""
    return f"(long long)(((u64)(u32)({high}) << 32) | (u32)({low}))"
