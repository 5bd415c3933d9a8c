"""Library calls as custom operations of torch, `torch.ops.warploom.NAME`.

`NAME` makes its result, `NAME_out` takes `out` before the arguments that have a default; a call
without a result of its own is one operation that changes its arguments. They have a schema and a
fake, so `torch.compile` and `torch.export` take them whole, and launch on torch's current stream,
so CUDA graphs record them. They have no gradient. Knows no kernel.

A launch or a library call that is no operation ends a graph of `torch.compile` and runs as it is.
"""

# Where torch is not installed the type checker takes this very file for it.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch._dynamo.trace_rules

from warploom.interop import operators
from warploom.interop.operators import Operator, Shaped
from warploom.runtime import arrays

NAMESPACE = "warploom"
_LETTERS = "abcdefgh"


def register(operator: Operator) -> None:
    """Enter the operations of one call."""
    written = operator.written()
    if operator.result is None:
        _define(operator, operator.name, operator.arguments, written, "()")
        return
    if written != {"out"}:
        changed = ", ".join(sorted(written - {"out"})) or "nothing"
        raise ValueError(f"{operator.name}: its kernels write {changed} beside or instead of `out`")
    _define(operator, operator.name, operator.arguments, frozenset(), "Tensor")
    needed = sum("=" not in argument for argument in operator.arguments)
    more = (*operator.arguments[:needed], "Tensor out", *operator.arguments[needed:])
    _define(operator, f"{operator.name}_out", more, written, "()")


def schema(arguments: tuple[str, ...], written: frozenset[str], returns: str) -> str:
    """A schema of torch; what is written is marked as such."""
    letters = iter(_LETTERS)
    shown = [
        argument.replace("Tensor", f"Tensor({next(letters)}!)", 1)
        if operators.name_of(argument) in written
        else argument
        for argument in arguments
    ]
    return f"({', '.join(shown)}) -> {returns}"


def _define(
    operator: Operator,
    name: str,
    arguments: tuple[str, ...],
    written: frozenset[str],
    returns: str,
) -> None:
    names = tuple(operators.name_of(argument) for argument in arguments)

    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        # Who asks for a gradient is told so by autograd, above this.
        with torch.no_grad():
            if returns != "()":
                given["out"] = _empty(operator, given)
            operator.call(**given)
        return given["out"] if returns != "()" else None

    def fake(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        made = None if operator.result is None else _empty(operator, given)
        return made if returns != "()" else None

    whole = f"{NAMESPACE}::{name}"
    made = torch.library.custom_op(
        whole, run, mutates_args=sorted(written), schema=schema(arguments, written, returns)
    )
    made.register_fake(fake)


def _empty(operator: Operator, given: Mapping[str, Any]) -> torch.Tensor:
    """The result of a call, not yet written, where its first tensor lives."""
    assert operator.result is not None
    described = {name: _shaped(value, name) for name, value in given.items() if value is not None}
    shape, dtype = operator.result(described)
    like = next(value for value in given.values() if isinstance(value, torch.Tensor))
    return like.new_empty(shape, dtype=arrays.torch_dtype(dtype))


def _shaped(value: Any, name: str) -> Any:
    if isinstance(value, torch.Tensor):
        return Shaped(tuple(value.shape), arrays.from_torch(value.dtype, name))
    return value


# The compiler would follow a launch into the runtime, the simulator's NumPy included.
_LOWER = "base", "codegen", "frontend", "ir", "language", "passes", "sim"
for _part in (*_LOWER, "interop", "kernels", "runtime"):
    torch._dynamo.trace_rules.add(f"warploom.{_part}")
_follow: Callable[[Callable[[Operator], None]], None] = operators.follow
_follow(register)
