"""Looking into a running kernel: what `print` and `assert` in a kernel become."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.op import Value
from warploom.ir.ops import tile as tiles
from warploom.language import core
from warploom.language.context import Refused, builder, vocabulary
from warploom.language.values import Arithmetic, Scalar, Tensor, Tile, Window, not_a


@vocabulary
def device_print(*values: Any) -> None:
    """Print texts, scalars and tiles, once a block. `print(…)` in a kernel means this.

    Texts and constants make up the line's text; run-time values follow in the order given.

    Shapes: any.
    Executes: the block.
    Since: sm_80.
    PTX: vprintf.
    """
    words: list[str] = []
    shown: list[Value] = []
    for value in values:
        if isinstance(value, Scalar | Tile):
            shown.append(value.value)
        elif isinstance(value, Tensor | Window):
            raise not_a("a text, a scalar or a tile", value)
        elif value is None or isinstance(value, str | bool | int | float | tuple | DType):
            words.append(str(value))
        else:
            raise not_a("a text, a scalar or a tile", value)
    builder().add(tiles.Print(values=tuple(shown), text=" ".join(words)))


@vocabulary
def device_assert(condition: Arithmetic, text: str = "") -> None:
    """Stop the launch with a text where a condition is False anywhere. `assert` means this.

    Shapes: a bool scalar, or a bool tile of any shape (every element must hold).
    Executes: the block.
    Since: sm_80.
    PTX: trap, after a message.
    """
    if not isinstance(condition, Scalar | Tile):
        raise not_a("a bool scalar or tile", condition, "condition")
    value = condition.value
    if not core.dtype_of(value).is_bool:
        raise Refused(
            "F030",
            f"the condition is {core.dtype_of(value)}, not bool",
            argument="condition",
            hint="compare it with something, such as `t > 0`",
        )
    builder().add(tiles.Assert(condition=value, text=text))
