"""From a Python function to a kernel at the tile stage. Knows no device, no cache and no launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from warploom.base.errors import CompileError, error_of

# Importing the rules enters them into the tables of `frame`, importing the families of the
# language enters their functions into the vocabulary.
from warploom.frontend import (
    branches,
    calls,
    expressions,
    loops,
    regions,
    statements,
    while_loops,
)
from warploom.frontend.capture import NotConstant, admit
from warploom.frontend.frame import Enough, Frame, Reports, Returned, execute
from warploom.frontend.signature import parse_signature
from warploom.frontend.source import SourceFunction
from warploom.frontend.stops import Stop, Stops
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Loc, Value
from warploom.ir.ops.control import Yield
from warploom.ir.types import Scalar as ScalarType
from warploom.ir.types import Tensor as TensorType
from warploom.language import (
    arithmetic,
    atomic,
    barrier,
    channel,
    cluster,
    collective,
    control,
    copy,
    debug,
    descriptors,
    exchange,
    flag,
    flagged,
    grid,
    lanes,
    layouts,
    mma,
    pipe,
    product,
    ptx,
    roles,
    scalar,
    schedule,
    shared,
    tensor,
    thread_copy,
    tile,
    turns,
)
from warploom.language import regions as language_regions
from warploom.language.context import Building, building, finish_block
from warploom.language.values import Scalar, Tensor

__all__ = ["ParamSpec", "build"]

RULES = (branches, calls, expressions, loops, regions, statements, while_loops)
FAMILIES = (
    arithmetic,
    atomic,
    barrier,
    channel,
    cluster,
    collective,
    control,
    copy,
    debug,
    descriptors,
    exchange,
    flag,
    flagged,
    grid,
    lanes,
    layouts,
    mma,
    pipe,
    product,
    ptx,
    language_regions,
    roles,
    scalar,
    schedule,
    shared,
    tensor,
    thread_copy,
    tile,
    turns,
)


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """A run-time parameter: its name and its IR type (a tensor with its class, or a scalar)."""

    name: str
    type: TensorType | ScalarType


def build(
    fn: Callable[..., Any],
    params: Sequence[ParamSpec],
    constants: Mapping[str, Any],
    *,
    warps: int = 4,
    cluster: tuple[int, int, int] = (1, 1, 1),
    fast_math: bool = False,
    stops: Sequence[Stop] = (),
) -> Kernel:
    """The kernel of a function for some argument types and constants, at the tile stage.

    `params` are the run-time arguments in call order; `constants` has a value for every other
    parameter (None for a tensor that is not given). The simulator stops at `stops`. Raises
    CompileError with all reports, LaunchError H033 for stops at which nothing stands.
    """
    signature = parse_signature(fn)
    source = signature.source
    values = _parameters(source, params)
    builder = Builder(Block(), source.place(source.tree))
    held = Building(builder, warps=warps, cluster=cluster, params=len(values))
    names: dict[str, Any] = {name: _constant(name, value) for name, value in constants.items()}
    for number, value in enumerate(values):
        wrapped = Tensor(value, number) if isinstance(value.type, TensorType) else Scalar(value)
        names[value.name] = wrapped
    missing = [p.name for p in signature.parameters if p.name not in names]
    if missing:
        raise ValueError(f"no type and no value for {', '.join(missing)} of {source.name}")
    reports, wanted = Reports(), Stops(tuple(stops))
    with building(held):
        with suppress(Returned, Enough):
            execute(Frame(source, held, reports, names, stops=wanted), source.tree.body)
        if reports.found:
            raise CompileError(*reports.found) from reports.cause
        if unmet := wanted.unmet(source.name):
            raise error_of(unmet)
        finish_block()
        builder.add(Yield(values=()))
    return Kernel(
        name=source.name,
        params=(*values, *(kept.value for kept in held.kept)),
        body=builder.block,
        warps=warps,
        cluster=cluster,
        loc=source.place(source.tree),
        fast_math=fast_math,
        written=tuple(sorted(held.written)),
        source=tuple(source.lines),
        kept=tuple(kept.described() for kept in held.kept),
    )


def _parameters(source: SourceFunction, params: Sequence[ParamSpec]) -> tuple[Value, ...]:
    """The values of the run-time parameters, each at its place in the source."""
    arguments = source.tree.args
    places: dict[str, Loc] = {
        node.arg: source.place(node)
        for node in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    return tuple(Value(p.type, p.name, places[p.name]) for p in params)


def _constant(name: str, value: Any) -> Any:
    try:
        return admit(value)
    except NotConstant as problem:
        raise ValueError(f"the constant {name} is {problem}") from None
