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
    order: str = "release",
) -> None:
    """Publish all that the role has done, and say so: set an i32 flag to `value`, or `add` to it.

    Who waits for the flag sees what was done before the signal. Sums wrap. `scope` is "block",
    "cluster", "gpu" or "system": who can be sure to see it. What the copy engine wrote counts only
    once it is complete: `wl.copy_wait()` first. With `order="relaxed"` the number is all that is
    told: nothing is published, and the warps of the role do not meet for it.

    Shapes: one element, `flags[i]`; outside the tensor nothing happens.
    Executes: all warps of the role meet, then one thread signals; in `wl.one_thread()` that thread.
    Since: sm_80.
    PTX: bar.sync, then st.release or red.release.add; st.relaxed, red.relaxed.add.
    """
    if (value is None) == (add is None):
        text = "`wl.signal` sets a value or adds one"
        raise Refused("T015", text, hint="`wl.signal(flags[i], 1)` or `wl.signal(flags[i], add=1)`")
    place = _flag(flag, "signal", scope, order, flags.SAYING)
    number = element(value if add is None else add, i32, "value" if add is None else "add")
    builder().add(
        flags.Signal(
            tensor=place.tensor.value,
            indices=place.starts,
            value=number,
            kind="set" if add is None else "add",
            scope=scope,
            order=order,
            alone=current().alone,
        )
    )
    current().written.add(place.tensor.param)


@vocabulary
def wait(flag: Window, at_least: Arithmetic, scope: str = "gpu", order: str = "acquire") -> None:
    """Wait until an i32 flag is at least `at_least`; the role then sees what was published with it.

    Numbers are compared as they wrap: a flag that has passed 2^31 is still ahead of one just below
    it. Blocks that wait and those that signal have to run at the same time, so the launch is
    `cooperative=True` (H040). What the copy engine reads after this needs
    `wl.fence_async(space="global")`. With `order="relaxed"` the role learns that the number is
    there, and may not rely on what was written before it.

    Shapes: one element, `flags[i]`; outside the tensor nothing is waited for.
    Executes: one thread polls, then all warps of the role meet; in `wl.one_thread()` that thread.
    Since: sm_80.
    PTX: ld.acquire or ld.relaxed in a loop, then bar.sync.
    """
    place = _flag(flag, "wait", scope, order, flags.HEARING)
    builder().add(
        flags.Wait(
            tensor=place.tensor.value,
            indices=place.starts,
            target=element(at_least, i32, "at_least"),
            stop=current().stop,
            scope=scope,
            order=order,
            alone=current().alone,
        )
    )


def _flag(window: Any, name: str, scope: str, order: str, orders: tuple[str, ...]) -> Window:
    place = need_window(window, "flag", name)
    if place.tensor.dtype != i32:
        raise Refused(
            "T004",
            f"a flag is an i32, not {place.tensor.dtype}",
            argument="flag",
            hint="give a tensor of i32",
        )
    if any(size is not None for size in place.sizes):
        hint = "give an integer for each axis: `flags[i]`"
        raise Refused("T017", "a flag is one element", argument="flag", hint=hint)
    for what, word, words in (("scope", scope, SCOPES), ("order", order, orders)):
        if word not in words:
            shown = ", ".join(f'"{w}"' for w in words)
            raise Refused("T015", f"`{what}` is {shown}, not {word!r}", argument=what)
    return place
