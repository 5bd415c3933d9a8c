"""Helpers of the prelude for flags in global memory: one inline asm each."""

from __future__ import annotations

from warploom.codegen.atomic_helpers import SCOPES
from warploom.codegen.prelude import INLINE, Helper, Prelude


def post(prelude: Prelude, kind: str, scope: str, order: str) -> str:
    """Enter a helper that publishes and returns its name: it takes the address and a number."""
    name = f"flag_{kind}_{scope}{_suffix(order)}"
    instruction = "st" if kind == "set" else "red"
    operation = "s32" if kind == "set" else "add.s32"
    text = f"{instruction}.{order}.{SCOPES[scope]}.global.{operation} [%0], %1;"
    body = f'asm volatile("{text}" :: "l"(at), "r"(value) : "memory");'
    prelude.make(name, lambda: Helper(f"{INLINE} void {name}(int* at, int value) {{ {body} }}"))
    return name


def poll(prelude: Prelude, scope: str, order: str) -> str:
    """Enter a helper that waits and returns its name: it takes the address and the least number.

    The difference is taken without a sign, so that it wraps.
    """
    name = f"flag_wait_{scope}{_suffix(order)}"
    text = f"ld.{order}.{SCOPES[scope]}.global.s32 %0, [%1];"
    body = (
        f'  int found;\n  do {{\n    asm volatile("{text}" : "=r"(found) : "l"(at) : "memory");\n'
        "  } while ((int)((unsigned)found - (unsigned)least) < 0);"
    )
    prelude.make(
        name, lambda: Helper(f"{INLINE} void {name}(const int* at, int least) {{\n{body}\n}}")
    )
    return name


def _suffix(order: str) -> str:
    return "_relaxed" if order == "relaxed" else ""
