"""Looking into a running kernel: what `print` and `assert` in a kernel become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.op import Value
from warploom.ir.ops import tile as tiles
from warploom.ir.ops.debug import CLOCKS, Breakpoint, Clock
from warploom.language import core
from warploom.language.context import Refused, builder, current, vocabulary
from warploom.language.structs import Instance
from warploom.language.values import Arithmetic, Scalar, Tile, not_a


@vocabulary
def device_print(*values: Any) -> None:
    """Print texts, scalars and tiles, once a block. `print(…)` in a kernel means this.

    Texts, constants and scalars make up one line, in the order given; a tile ends it and prints its
    elements, each with its coordinates, behind the texts in front of it.

    Shapes: any.
    Executes: the block.
    Since: sm_80.
    PTX: vprintf.
    """
    line: list[str | Value] = []
    for value in values:
        if isinstance(value, Tile):
            _tile_line(line, value.value)
            line = []
        elif isinstance(value, Scalar):
            line.append(value.value)
        elif value is None or isinstance(value, str | bool | int | float | tuple | DType):
            line.append(str(value))
        else:
            raise not_a("a text, a scalar or a tile", value)
    if line or not values:
        _line(line)


def _line(parts: list[str | Value]) -> None:
    """One line of texts and scalars; `{}` marks the place of a scalar where a text follows it."""
    shown = tuple(p for p in parts if isinstance(p, Value))
    texts = [p for p in parts if isinstance(p, str)]
    if any(isinstance(p, Value) for p in parts[: len(texts)]):
        texts = [p if isinstance(p, str) else "{}" for p in parts]
    builder().add(tiles.Print(values=shown, text=" ".join(texts)))


def _tile_line(parts: list[str | Value], tile: Value) -> None:
    """A tile with the texts in front of it; what comes before those is a line of its own."""
    last = max((at for at, p in enumerate(parts) if isinstance(p, Value)), default=-1)
    if last >= 0:
        _line(parts[: last + 1])
    head = " ".join(p for p in parts[last + 1 :] if isinstance(p, str))
    builder().add(tiles.Print(values=(tile,), text=head))


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


@vocabulary
def clock(unit: str = "cycles") -> Scalar:
    """The time now, as an i64: subtract two of them.

    `unit` is "cycles" of this SM, or "ns", nanoseconds that all SMs count alike (in steps that
    depend on the GPU). On the simulator both count the operations that the block has executed. Work
    that does not wait for each other may be moved across by the assembler, within a thread.

    Shapes: a scalar.
    Executes: each warp.
    Since: sm_80.
    PTX: mov of %clock64, %globaltimer.
    """
    if unit not in CLOCKS:
        known = " or ".join(f'"{name}"' for name in CLOCKS)
        raise Refused("T015", f"`unit` is {known}, not {unit!r}", argument="unit")
    return Scalar(builder().emit(Clock(unit=unit)))


def device_breakpoint(names: Mapping[str, Any]) -> None:
    """Stop the simulated block and open a prompt. `breakpoint()` in a kernel means this.

    `names` are those that the prompt shall know. On a GPU it does nothing.
    """
    shown = Scalar if current().alone else Scalar | Tile  # one thread has no tile
    leaves = [leaf for name, value in names.items() for leaf in _leaves(name, value)]
    held = {n: v.value for n, v in leaves if isinstance(v, shown)}
    plain = {n: v for n, v in leaves if isinstance(v, str | bool | int | float | DType)}
    builder().add(
        Breakpoint(
            values=tuple(held.values()),
            names=tuple(held),
            constants=tuple(f"{name} = {value!r}" for name, value in plain.items()),
        )
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a name stands for, items of tuples and fields of structs by names of their own."""
    if isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from _leaves(f"{name}[{number}]", item)
    elif isinstance(value, Instance):
        for field, item in value.values.items():
            yield from _leaves(f"{name}.{field}", item)
    else:
        yield name, value
