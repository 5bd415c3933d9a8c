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
from typing import Any, TypeVar, cast

from warploom.base.errors import error
from warploom.ir.affine import ScalarFacts
from warploom.ir.builder import Builder

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


class Refused(Exception):
    """Arguments that do not fit. `argument` names the parameter to point at, if one is to blame.

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
    ) -> None:
        current()
        super().__init__(message)
        self.code = code
        self.message = message
        self.argument = argument
        self.label = label
        self.notes = notes
        self.hint = hint


@dataclass(slots=True)
class Building:
    """One kernel under construction. `written` holds the parameters that it stores to, `copies`
    counts the bodies of compile-time loops."""

    builder: Builder
    facts: ScalarFacts = field(default_factory=ScalarFacts)
    written: set[int] = field(default_factory=set)
    copies: int = 0


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


def builder() -> Builder:
    """The builder of the kernel under construction."""
    return current().builder
