"""What language functions act on: the kernel that is being built. Knows no syntax.

A function of the language that finds its arguments wrong raises `Refused`; the front end, which
knows the place of each argument, turns that into a report.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

from warploom.base.errors import error
from warploom.ir.affine import ScalarFacts
from warploom.ir.builder import Builder
from warploom.ir.op import Block, Loc

F = TypeVar("F", bound=Callable[..., Any])

# The vocabulary by name: what a kernel may call as `wl.NAME`.
VOCABULARY: dict[str, Callable[..., Any]] = {}


def vocabulary(fn: F) -> F:
    """Enter a function into the vocabulary of kernels."""

    @functools.wraps(fn)
    def said(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Refused:
            # On the host the arguments are arrays: it is the place of the call that is wrong.
            current()
            raise

    VOCABULARY[fn.__name__] = said
    return cast(F, said)


class Handle:
    """A thing of a kernel that is neither number nor tile: a shared tile, a barrier, a pipe.

    `attributes` are what a kernel may ask of it.
    """

    attributes: ClassVar[tuple[str, ...]] = ()
    hint: ClassVar[str] = ""  # what to do where a tile or number is needed
    absent: ClassVar[str] = ""  # why it has not the attribute that was asked for

    def __getitem__(self, index: Any) -> Any:
        """An element, where the thing has some."""
        raise Refused(
            "T015",
            f"{self!r} has no elements",
            hint="docs/language.md lists what can be asked of it",
        )


class Refused(Exception):
    """Arguments that do not fit. `argument` names the parameter to point at, if one is to blame;
    `place` is where to point if it is not at this call.

    Outside a kernel no argument fits: there its making raises CompileError F034.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        argument: str = "",
        label: str = "",
        notes: tuple[str, ...] = (),
        hint: str = "",
        place: Loc | None = None,
    ) -> None:
        current()
        super().__init__(message)
        self.code = code
        self.message = message
        self.argument = argument
        self.label = label
        self.notes = notes
        self.hint = hint
        self.place = place


@dataclass(slots=True)
class Building:
    """One kernel under construction. `written` holds the parameters that it stores to, `copies`
    counts the bodies of compile-time loops, `top` is the block of what the whole block does,
    `cluster` is the shape of the launch's clusters, `alone` says that one thread does what is being
    read."""

    builder: Builder
    facts: ScalarFacts = field(default_factory=ScalarFacts)
    written: set[int] = field(default_factory=set)
    copies: int = 0
    roles: Any = None  # the `wl.roles()` of the kernel
    role: Any = None  # the plan of the role whose body is being read
    put: Any = None  # the open `put` of that role
    send: Any = None  # the open `put` towards the copy engine
    alone: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)
    warps: int = 4  # of the block before roles divide it
    named: int = 0  # barriers that the kernel has named
    joints: list[Any] = field(default_factory=list)  # what joins roles, to close when all are known
    turns: list[Any] = field(default_factory=list)  # whose turn this is, outermost first
    rings: int = 0  # numbers given out to what roles count
    params: int = 0  # that a call gives
    kept: list[Any] = field(default_factory=list)  # tensors behind them, which launches keep
    gatherings: dict[Any, Any] = field(default_factory=dict)  # by role: what all blocks do together
    endings: list[Any] = field(default_factory=list)  # called before the roles, or at the end
    rooms: dict[Any, Any] = field(default_factory=dict)  # of collectives, by what they hold
    stop: Any = None  # the tensor whose first word ends waits for other blocks
    call: Any = None  # inlines a function of the user's with arguments
    top: Block = field(init=False)

    def __post_init__(self) -> None:
        self.top = self.builder.block

    @property
    def between_roles(self) -> bool:
        """Whether what is read now stands inside `wl.roles()` and in no role."""
        return self.roles is not None and self.role is None

    def ring(self) -> int:
        """A number for something of which each role counts its items."""
        self.rings += 1
        return self.rings - 1


_CURRENT: ContextVar[Building | None] = ContextVar("warploom_building", default=None)


@contextmanager
def building(kernel: Building) -> Iterator[Building]:
    """Make a kernel the one that language functions act on."""
    token = _CURRENT.set(kernel)
    try:
        yield kernel
    finally:
        _CURRENT.reset(token)


def current() -> Building:
    """The kernel under construction; raises CompileError F034 outside of one."""
    kernel = _CURRENT.get()
    if kernel is None:
        raise error(
            "F034",
            "a function of the kernel language was called outside a kernel",
            notes=[
                "these functions describe what a kernel does; on the host there is nothing to do"
            ],
            hint="put the code into a function under `@wl.kernel` and launch it: `kernel[grid](…)`",
        )
    return kernel


def finish_block() -> None:
    """What the block does by itself, without roles, ends here."""
    held = current()
    endings, held.endings = held.endings, []
    for ending in endings:
        ending()


def need_top(what: str) -> None:
    """Refuse what belongs to the whole block, in a role, a loop or a branch."""
    held = current()
    if held.builder.block is not held.top:
        where = "a role" if held.role is not None else "a run-time loop or branch"
        raise Refused(
            "P013",
            f"{what} is made inside {where}",
            hint="make it at the top level of the kernel, before `wl.roles()`",
        )


def need_count(name: str, number: Any, least: int, most: int | None = None) -> int:
    """Refuse an argument that is not a constant integer from `least` up, to `most` if given."""
    fits = isinstance(number, int) and not isinstance(number, bool)
    if not fits or number < least or (most is not None and number > most):
        bound = "up" if most is None else f"to {most}"
        raise Refused("F027", f"`{name}` is a constant from {least} {bound}", argument=name)
    return number


def need_one_thread(what: str) -> None:
    """Refuse what each thread would do again, outside a region of one thread and outside a `put`,
    which sees to it."""
    held = current()
    if not held.alone and held.put is None:
        raise Refused(
            "P020",
            f"every thread that comes here would {what}",
            hint="put it under `with wl.one_thread():`",
        )


def acting_warps() -> int:
    """How many warps act on what is being read: those of the role, or of the block."""
    held = current()
    return held.warps if held.role is None else held.role.warps


def need_all_threads(what: str) -> None:
    """Refuse what whole warps do, in a region of one thread."""
    if current().alone:
        raise Refused(
            "P027",
            f"one thread acts here, and {what}",
            hint="put it outside of the region of one thread",
        )


def builder() -> Builder:
    """The builder of the kernel under construction."""
    return current().builder
