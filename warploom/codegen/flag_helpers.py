"""Helpers of the prelude for flags in global memory: one inline asm each."""

from __future__ import annotations

from warploom.codegen.atomic_helpers import SCOPES
from warploom.codegen.prelude import INLINE, Helper, Prelude


def post(prelude: Prelude, kind: str, scope: str) -> str:
    """Enter a helper that publishes and returns its name: it takes the address and a number."""
    name = f"flag_{kind}_{scope}"
    instruction = "st.release" if kind == "set" else "red.release"
    operation = "s32" if kind == "set" else "add.s32"
    text = f"{instruction}.{SCOPES[scope]}.global.{operation} [%0], %1;"
    body = f'asm volatile("{text}" :: "l"(at), "r"(value) : "memory");'
    prelude.make(name, lambda: Helper(f"{INLINE} void {name}(int* at, int value) {{ {body} }}"))
    return name


def poll(prelude: Prelude, scope: str) -> str:
    """Enter a helper that waits and returns its name: it takes the address and the least number.

    The difference is taken without a sign, so that it wraps.
    """
    name = f"flag_wait_{scope}"
    text = f"ld.acquire.{SCOPES[scope]}.global.s32 %0, [%1];"
    body = (
        f'  int found;\n  do {{\n    asm volatile("{text}" : "=r"(found) : "l"(at) : "memory");\n'
        "  } while ((int)((unsigned)found - (unsigned)least) < 0);"
    )
    prelude.make(
        name, lambda: Helper(f"{INLINE} void {name}(const int* at, int least) {{\n{body}\n}}")
    )
    return name
