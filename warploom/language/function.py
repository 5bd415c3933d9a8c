"""`wl.function`: marks a Python function as inlinable. Knows nothing of how it is read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from warploom.base.errors import error


class Function:
    """A function of the kernel language. Kernels inline it where they call it."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.__wrapped__: Callable[..., Any] = fn

    def __repr__(self) -> str:
        return f"<wl.function {getattr(self.__wrapped__, '__qualname__', self.__wrapped__)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: there is nothing to call on the host."""
        name = getattr(self.__wrapped__, "__name__", "it")
        raise error(
            "F034",
            f"the function `{name}` of the kernel language was called outside a kernel",
            hint="call it in a function under `@wl.kernel`; it is inlined there",
        )


def function(fn: Callable[..., Any]) -> Function:
    """Make a Python function callable from kernels, which inline its body.

    It takes tensors, tiles, scalars and constants without annotations, may return values by a
    `return` as its last statement, and may not call itself.

    Shapes: any.
    Executes: the caller.
    Since: sm_80.
    """
    return Function(fn)
