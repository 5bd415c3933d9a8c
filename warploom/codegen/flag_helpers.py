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


def poll(prelude: Prelude, scope: str, order: str, *, stops: bool = False) -> str:
    """Enter a helper that waits and returns its name: it takes the address and the least number,
    and where it `stops` the address of the word that ends waits.

    The difference is taken without a sign, so that it wraps.
    """
    name = f"flag_wait_{scope}{_suffix(order)}{'_or_stop' if stops else ''}"
    text = f"ld.{order}.{SCOPES[scope]}.global.s32 %0, [%1];"
    body = (
        f'  int found;\n  do {{\n    asm volatile("{text}" : "=r"(found) : "l"(at) : "memory");\n'
        "  } while ((int)((unsigned)found - (unsigned)least) < 0);"
    )
    last = ", const int* stop" if stops else ""
    if stops:
        body = body.replace("  int found;", "  int found, polls = 0;")
        body = body.replace(" < 0);", f" < 0 && !{stop_asked(prelude)}(stop, ++polls));")
    head = f"{INLINE} void {name}(const int* at, int least{last})"
    prelude.make(name, lambda: Helper(f"{head} {{\n{body}\n}}"))
    return name


def stop_asked(prelude: Prelude) -> str:
    """Enter a helper that says whether waits shall end, and returns its name: it looks at every
    1024th poll, for the word lies in the host's memory."""
    name = "stop_asked"
    text = "ld.relaxed.sys.global.s32 %0, [%1];"
    body = (
        "  int word = 0;\n  if ((polls & 1023) == 0) "
        f'asm volatile("{text}" : "=r"(word) : "l"(stop) : "memory");\n  return word != 0;'
    )
    head = f"{INLINE} bool {name}(const int* stop, int polls)"
    prelude.make(name, lambda: Helper(f"{head} {{\n{body}\n}}"))
    return name


def _suffix(order: str) -> str:
    return "_relaxed" if order == "relaxed" else ""
