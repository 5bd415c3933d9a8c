"""What `with` opens in a kernel: pieces of program that some threads run, or that share an item of
a pipe. Knows no syntax: the front end calls `enter` and `leave`."""

from __future__ import annotations

from enum import Enum
from typing import Any

from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import control
from warploom.ir.ops.control import Yield
from warploom.ir.types import Tile
from warploom.language.context import Refused, builder, current, vocabulary


class Names(Enum):
    """What becomes of the names that a region binds."""

    KEPT = "kept"
    OWN = "own"  # forgotten: names from before have their old values again
    LOST = "lost"  # nobody knows them: the rest of the threads did not run the region


class Region:
    """A region of a kernel."""

    names = Names.KEPT
    keyword = ""

    def enter(self) -> Any:
        """Begin; gives what stands behind `as`."""
        raise TypeError(f"{type(self).__name__} cannot be entered")

    def leave(self) -> None:
        """End."""


class Nested(Region):
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
        builder().add(Yield(values=()))
        assert self._outer is not None
        builder().block = self._outer


class Alone(Nested):
    """A region that one thread runs."""

    names = Names.LOST

    def __init__(self, per: str) -> None:
        super().__init__()
        self.per = per

    def begin_thread(self) -> None:
        """One thread acts from now on."""
        if current().alone:
            raise Refused(
                "P019",
                f"{self.keyword} stands where one thread acts already",
                hint="remove the inner one",
            )
        put = current().put
        if put is not None and self.per == "role" and builder().block is put.block:
            put.threads.add(self.block)
        self.begin_block()
        current().alone = True

    def end_thread(self) -> None:
        """All act again; refuses what one thread cannot do."""
        self.end_block()
        current().alone = False
        for op in walk(self.block):
            if needs_all(op):
                raise Refused(
                    "P021",
                    "a tile of registers is held by all threads, and only one runs this",
                    hint=f"put it outside of {self.keyword}",
                    place=op.loc,
                )
        builder().add(control.OneThread(per=self.per, body=self.block))


def needs_all(op: Op) -> bool:
    """Whether an operation is one of all threads: its tiles of registers are spread over them."""
    values = (*op.operand_values(), *op.results)
    return any(isinstance(v.type, Tile) for v in values)


class OneThread(Alone):
    """`with wl.one_thread():`."""

    keyword = "`wl.one_thread()`"

    def enter(self) -> None:
        """Begin."""
        self.begin_thread()

    def leave(self) -> None:
        """End."""
        self.end_thread()


@vocabulary
def one_thread(per: str = "role") -> OneThread:
    """What stands inside runs in one fixed thread of the role (`per="warp"`: of each of its warps).

    The lanes of the warp meet first, so the thread comes after what its warp did. Copies,
    announcements and arrivals stand here; tiles of registers do not.

    Shapes: none.
    Executes: one lane of the role's first warp, or of each warp.
    Since: sm_80.
    """
    if per not in ("role", "warp"):
        raise Refused("T015", f'`per` is "role" or "warp", not {per!r}', argument="per")
    return OneThread(per)
