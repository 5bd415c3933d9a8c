"""Python's own functions in a kernel: what `len`, `abs`, `min`, `float`, `zip` mean there.

Each computes where its arguments are constants, and calls the language where they are not. Knows
nothing of the call that names them: `calls` asks for the one and places its refusals.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from warploom.base.dtypes import DType, boolean, f32, i32
from warploom.frontend.expressions import is_symbolic, numbers
from warploom.frontend.frame import Frame
from warploom.frontend.targets import as_sequence
from warploom.language import arithmetic, control, debug
from warploom.language.context import Refused
from warploom.language.values import Scalar, Tensor, Tile, Window, kind_of


def check_print(frame: Frame, node: ast.Call) -> None:
    """Refuse formatting before anything is evaluated."""
    for argument in node.args:
        if isinstance(argument, ast.JoinedStr):
            raise frame.problem(
                "F028",
                "`print` in a kernel takes no f-string",
                argument,
                hint=f"separate texts and values: `{_separated(argument)}`",
            )
    if node.keywords:
        raise frame.problem(
            "F028",
            f"`print` in a kernel has no `{node.keywords[0].arg}=`",
            node.keywords[0].value,
            hint="leave it out; each print is one line",
        )


def _separated(text: ast.JoinedStr) -> str:
    """An f-string as arguments of print."""
    words: list[str] = []
    for part in text.values:
        if isinstance(part, ast.FormattedValue):
            words.append(ast.unparse(part.value))
        elif isinstance(part, ast.Constant) and str(part.value).strip():
            words.append('"' + str(part.value).strip().replace('"', "'") + '"')
    return f"print({', '.join(words)})"


def _len(value: Any) -> int:
    if isinstance(value, Tile):
        if not value.shape:
            raise Refused(
                "T012",
                "a tile of shape () has no length",
                argument="value",
                hint="it is one value: `wl.scalar(t)`",
            )
        return value.shape[0]
    if isinstance(value, Tensor | Window | Scalar):
        raise Refused(
            "T015",
            f"`len` of {kind_of(value)}",
            argument="value",
            hint="`x.shape[0]` is the extent of the first axis, `x.rank` the number of axes",
        )
    items = as_sequence(numbers(value))
    if items is None and not isinstance(value, str):
        raise Refused("T015", f"`len` of {kind_of(value)}", argument="value")
    return len(value if items is None else items)


def _abs(value: Any) -> Any:
    return arithmetic.abs(value) if is_symbolic(value) else abs(value)


def _round(number: Any, ndigits: Any = None) -> Any:
    if not is_symbolic(number):
        return round(number, ndigits)
    if ndigits is not None:
        raise Refused(
            "F026",
            "`round` with digits works on constants only",
            argument="ndigits",
            hint="scale it: `wl.round(t * 100) / 100`",
        )
    return arithmetic.round(number)


def _extreme(name: str, given: tuple[Any, ...]) -> Any:
    """`min` and `max` of several values, or of a tuple."""
    values = list(given)
    if len(values) == 1:
        items = as_sequence(numbers(values[0]))
        if items is None:
            raise Refused(
                "T015",
                f"`{name}` of {kind_of(values[0])}",
                hint=f"`wl.{name}(t, axis)` reduces a tile" if isinstance(values[0], Tile) else "",
            )
        values = list(items)
    if not values:
        raise Refused("T015", f"`{name}` of nothing", hint="give one value or more")
    result = values[0]
    fold = arithmetic.maximum if name == "max" else arithmetic.minimum
    for value in values[1:]:
        result = fold(result, value)
    return result


def _min(*values: Any) -> Any:
    return _extreme("min", values)


def _max(*values: Any) -> Any:
    return _extreme("max", values)


def _sum(values: Any, start: Any = 0) -> Any:
    items = as_sequence(numbers(values))
    if items is None:
        hint = "`wl.sum(t, axis)` reduces a tile" if isinstance(values, Tile) else ""
        raise Refused("T015", f"`sum` of {kind_of(values)}", argument="values", hint=hint)
    result = start
    for at, item in enumerate(items):
        # The 0 that Python starts with must not turn -0.0 into +0.0.
        result = item if at == 0 and isinstance(start, int) and start == 0 else result + item
    return result


def _cast_to(dtype: DType, python: type) -> Callable[[Any], Any]:
    def convert(value: Any = 0) -> Any:
        if isinstance(value, Tile):
            raise Refused(
                "F026",
                f"`{python.__name__}` takes one number or scalar, not a tile",
                argument="value",
                hint=f"`t.cast(wl.{'boolean' if dtype.is_bool else dtype})`",
            )
        if isinstance(value, Scalar):
            alike = value.dtype.kind is dtype.kind
            return value if alike else value.cast(dtype)
        if not isinstance(value, int | float | str):
            raise Refused("T015", f"`{python.__name__}` of {kind_of(value)}", argument="value")
        return python(value)

    convert.__name__ = python.__name__
    return convert


def _listed(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    """A builtin that lists things known at compile time."""

    def listed(*values: Any) -> Any:
        items: list[Any] = []
        for value in values:
            found = as_sequence(numbers(value))
            if found is None:
                raise Refused(
                    "F036",
                    f"{kind_of(value)} cannot be listed at compile time",
                    hint="`for i in wl.range(n):` counts at run time",
                )
            items.append(found)
        return kind(*items)

    listed.__name__ = getattr(kind, "__name__", "list")
    return listed


BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.range: control.range,
    builtins.print: debug.device_print,
    builtins.len: _len,
    builtins.abs: _abs,
    builtins.round: _round,
    builtins.min: _min,
    builtins.max: _max,
    builtins.sum: _sum,
    builtins.float: _cast_to(f32, float),
    builtins.int: _cast_to(i32, int),
    builtins.bool: _cast_to(boolean, bool),
    builtins.tuple: _listed(tuple),
    builtins.list: _listed(list),
    builtins.enumerate: _listed(lambda items: tuple(enumerate(items))),
    builtins.zip: _listed(lambda *items: tuple(zip(*items, strict=True))),
    builtins.reversed: _listed(lambda items: tuple(reversed(items))),
}
