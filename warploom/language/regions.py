"""What `with` opens in a kernel: pieces of program that some threads run, or that share an item of
a pipe. Knows no syntax: the front end calls `enter` and `leave`."""

from __future__ import annotations

from typing import Any

from warploom.ir.op import Block
from warploom.ir.ops import control
from warploom.ir.ops.control import Yield
from warploom.language.context import Refused, builder, vocabulary


class Region:
    """A region of a kernel. Names bound inside `ends_names` regions are not known after them."""

    ends_names = False
    keyword = ""

    def enter(self) -> Any:
        """Begin; gives what stands behind `as`."""
        raise TypeError(f"{type(self).__name__} cannot be entered")

    def leave(self) -> None:
        """End."""


class _Nested(Region):
    """A region whose operations stand in a block of their own."""

    def __init__(self) -> None:
        self.block = Block()
        self._outer: Block | None = None

    def begin_block(self) -> None:
        """Append to this region's block from now on."""
        if self._outer is not None:
            raise Refused("P004", f"this {self.keyword} was entered before", hint="make a new one")
        self._outer = builder().block
        builder().block = self.block

    def end_block(self) -> None:
        """Append to the block around again."""
        builder().add(Yield())
        assert self._outer is not None
        builder().block = self._outer


class OneThread(_Nested):
    """`with wl.one_thread():`."""

    ends_names = True
    keyword = "`wl.one_thread()`"

    def __init__(self, per: str) -> None:
        super().__init__()
        self.per = per

    def enter(self) -> None:
        """Begin."""
        self.begin_block()

    def leave(self) -> None:
        """End."""
        self.end_block()
        builder().add(control.OneThread(per=self.per, body=self.block))


@vocabulary
def one_thread(per: str = "role") -> OneThread:
    """What stands inside runs in one fixed thread of the role (`per="warp"`: of each of its warps).

    The lanes of the warp meet first, so the thread comes after what its warp did. Copies,
    announcements and arrivals stand here.

    Shapes: none.
    Executes: lane 0 of the role's first warp, or of each warp.
    Since: sm_80.
    """
    if per not in ("role", "warp"):
        raise Refused("T015", f'`per` is "role" or "warp", not {per!r}', argument="per")
    return OneThread(per)


Nested = _Nested
