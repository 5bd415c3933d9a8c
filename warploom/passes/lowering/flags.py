"""Signals and waits of a role become those of one thread, which all warps meet."""

from __future__ import annotations

from warploom.ir.op import Op, Value
from warploom.ir.ops import flags
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.memory import base_of, indices_in_bounds, view_of


@lowers(flags.Signal)
def signal(lower: Lowering, op: flags.Signal) -> None:
    root, base, inside = _element(lower, op.tensor, op.indices)
    made = flags.Post(
        tensor=root,
        base=base,
        value=lower.get(op.value),
        predicate=inside,
        kind=op.kind,
        scope=op.scope,
        order=op.order,
    )
    _by_one_thread(lower, made, op.alone, meet=op.order == "release")


@lowers(flags.Wait)
def wait(lower: Lowering, op: flags.Wait) -> None:
    root, base, inside = _element(lower, op.tensor, op.indices)
    made = flags.Poll(
        tensor=root,
        base=base,
        target=lower.get(op.target),
        predicate=inside,
        stop=op.stop,
        scope=op.scope,
        order=op.order,
        for_all=not op.alone,
    )
    _by_one_thread(lower, made, op.alone, meet=False)


def _element(
    lower: Lowering, tensor: Value, indices: tuple[Value, ...]
) -> tuple[Value, Value, Value | None]:
    """The tensor of the argument, the offset of an element, whether it is in the tensor."""
    view = view_of(lower, tensor)
    inside = indices_in_bounds(lower, view, indices)
    return view.root, base_of(lower, view, [lower.get(v) for v in indices]), inside


def _by_one_thread(lower: Lowering, made: Op, alone: bool, meet: bool) -> None:
    if alone:
        lower.build.add(made)
        return
    with lower.build.one_thread(meet=meet):
        lower.build.add(made)
