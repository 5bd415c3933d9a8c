"""Flags and counters in global memory, by which blocks of one launch tell each other how far they
are."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import i32
from warploom.ir.ops import flags
from warploom.ir.ops.sync import SCOPES
from warploom.language.context import Refused, builder, current, vocabulary
from warploom.language.tensor import element, need_window
from warploom.language.values import Arithmetic, Window


@vocabulary
def signal(
    flag: Window,
    value: Arithmetic | None = None,
    add: Arithmetic | None = None,
    scope: str = "gpu",
) -> None:
    """Publish all that the role has done, and say so: set an i32 flag to `value`, or `add` to it.

    Who waits for the flag sees what was done before the signal. Sums wrap. `scope` is "block",
    "cluster", "gpu" or "system": who can be sure to see it. What the copy engine wrote counts only
    once it is complete: `wl.copy_wait()` first.

    Shapes: one element, `flags[i]`; outside the tensor nothing happens.
    Executes: all warps of the role meet, then one thread signals; in `wl.one_thread()` that thread.
    Since: sm_80.
    PTX: bar.sync, then st.release or red.release.add.
    """
    if (value is None) == (add is None):
        text = "`wl.signal` sets a value or adds one"
        raise Refused("T015", text, hint="`wl.signal(flags[i], 1)` or `wl.signal(flags[i], add=1)`")
    place = _flag(flag, "signal", scope)
    number = element(value if add is None else add, i32, "value" if add is None else "add")
    builder().add(
        flags.Signal(
            tensor=place.tensor.value,
            indices=place.starts,
            value=number,
            kind="set" if add is None else "add",
            scope=scope,
            alone=current().alone,
        )
    )
    current().written.add(place.tensor.param)


@vocabulary
def wait(flag: Window, at_least: Arithmetic, scope: str = "gpu") -> None:
    """Wait until an i32 flag is at least `at_least`; the role then sees what was published with it.

    Numbers are compared as they wrap: a flag that has passed 2^31 is still ahead of one just below
    it. Blocks that wait and those that signal have to run at the same time, so the launch is
    `cooperative=True` (H040). What the copy engine reads after this needs
    `wl.fence_async(space="global")`.

    Shapes: one element, `flags[i]`; outside the tensor nothing is waited for.
    Executes: one thread polls, then all warps of the role meet; in `wl.one_thread()` that thread.
    Since: sm_80.
    PTX: ld.acquire in a loop, then bar.sync.
    """
    place = _flag(flag, "wait", scope)
    builder().add(
        flags.Wait(
            tensor=place.tensor.value,
            indices=place.starts,
            target=element(at_least, i32, "at_least"),
            scope=scope,
            alone=current().alone,
        )
    )


def _flag(window: Any, name: str, scope: str) -> Window:
    place = need_window(window, "flag", name)
    if place.tensor.dtype != i32:
        raise Refused("T004", f"a flag is an i32, not {place.tensor.dtype}", argument="flag")
    if any(size is not None for size in place.sizes):
        hint = "give an integer for each axis: `flags[i]`"
        raise Refused("T017", "a flag is one element", argument="flag", hint=hint)
    if scope not in SCOPES:
        words = ", ".join(f'"{s}"' for s in SCOPES)
        raise Refused("T015", f"`scope` is {words}, not {scope!r}", argument="scope")
    return place
