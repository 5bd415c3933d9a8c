"""Expressions but calls and conditions. Python computes constants, the language the rest."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable
from typing import Any

from warploom.base.dtypes import DType
from warploom.frontend import structs
from warploom.frontend.branches import chain, negate
from warploom.frontend.capture import data_of, is_kernel
from warploom.frontend.frame import (
    Frame,
    Problem,
    evaluate,
    expression,
    nearest,
    need_constant,
)
from warploom.frontend.targets import as_sequence
from warploom.language import core, elsewhere
from warploom.language.context import VOCABULARY, Handle, Refused
from warploom.language.control import Range
from warploom.language.structs import Instance
from warploom.language.tensor import window
from warploom.language.values import (
    Extents,
    Scalar,
    Tensor,
    Tile,
    Window,
    kind_of,
    operand,
    sub_tile,
    wrap,
)

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Invert: ("not", operator.invert),
}
# What a kernel may ask of its values.
_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    Tile: ("dtype", "shape", "T", "cast"),
    Scalar: ("dtype", "cast"),
    Tensor: ("dtype", "rank", "shape", "stride", "rows"),
    DType: ("name", "bits", "bytes", "is_float", "is_int", "is_bool"),
}


def is_symbolic(value: Any) -> bool:
    """Whether a value exists at run time only."""
    return isinstance(value, Tile | Scalar | Tensor | Window | Extents | Handle)


@expression(ast.Constant)
def constant(frame: Frame, node: ast.Constant) -> Any:
    """A literal."""
    if isinstance(node.value, complex | bytes):
        raise frame.problem(
            "F011",
            f"{node.value!r} has no meaning in a kernel",
            node,
            hint="constants are numbers, texts, None, True and False",
        )
    return node.value


@expression(ast.Name)
def name(frame: Frame, node: ast.Name) -> Any:
    """A name of the function or from around it."""
    return frame.look_up(node)


@expression(ast.Tuple, ast.List)
def sequence(frame: Frame, node: ast.Tuple | ast.List) -> Any:
    """A tuple or list, which exists at compile time and may hold tiles."""
    items: list[Any] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            items += starred(frame, element)
        else:
            items.append(evaluate(frame, element))
    return items if isinstance(node, ast.List) else tuple(items)


def starred(frame: Frame, node: ast.Starred) -> list[Any]:
    """The items of `*value`."""
    value = evaluate(frame, node.value)
    items = as_sequence(value)
    if items is None:
        raise frame.problem(
            "F032",
            "`*` needs a tuple or a list",
            node,
            label=kind_of(value),
            hint="write the arguments one by one",
        )
    return list(items)


@expression(ast.ListComp, ast.GeneratorExp)
def comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    """`[f(i) for i in …]` over what is known at compile time."""
    if len(node.generators) != 1:
        raise frame.problem(
            "F011",
            "one `for` in a comprehension",
            node,
            hint="write a loop over `wl.unroll(n)`, and `append` in it",
        )
    (over,) = node.generators
    if not isinstance(over.target, ast.Name):
        raise frame.problem(
            "F011",
            "a comprehension binds one name",
            over.target,
            hint="bind one name, and take its parts: `t[0]`, `t[1]`",
        )
    value = evaluate(frame, over.iter)
    items = as_sequence(numbers(value))
    if items is None:
        raise frame.problem(
            "F036",
            "a comprehension goes over constants or a tuple",
            over.iter,
            label=kind_of(value),
            hint="`wl.unroll(n)` with a constant n",
        )
    bound = over.target.id
    outer = frame.names.get(bound, frame)
    made: list[Any] = []
    for item in items:
        frame.names[bound] = item
        kept = [evaluate(frame, test) for test in over.ifs]
        for test, holds in zip(over.ifs, kept, strict=True):
            if is_symbolic(holds):
                need_constant(frame, holds, "the condition of a comprehension", test)
        if all(kept):
            made.append(evaluate(frame, node.elt))
    if outer is frame:
        frame.names.pop(bound, None)
    else:
        frame.names[bound] = outer
    return made


def numbers(value: Any) -> Any:
    """A range of constants as Python's own, everything else as it is."""
    if isinstance(value, Range) and not any(map(is_symbolic, (value.lo, value.hi, value.step))):
        return range(value.lo, value.hi, value.step)  # type: ignore[arg-type]
    return value


@expression(ast.BinOp)
def binary_operation(frame: Frame, node: ast.BinOp) -> Any:
    """`left operator right`."""
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    return binary(frame, node, node.op, (left, node.left), (right, node.right))


def binary(
    frame: Frame,
    node: ast.AST,
    op: ast.operator,
    left: tuple[Any, ast.AST],
    right: tuple[Any, ast.AST],
) -> Any:
    """An operator on two values, each with its place."""
    kind, compute = _BINARY[type(op)]
    a, b = left[0], right[0]
    if isinstance(a, str) and kind == "mod":
        raise frame.problem(
            "F028",
            "texts are not formatted in a kernel",
            node,
            hint='give texts and values as separate arguments: `print("i is", i)`',
        )
    if not is_symbolic(a) and not is_symbolic(b):
        return computed(frame, node, compute, a, b)
    frame.at(node)
    try:
        if kind == "pow":
            return _power(frame, a, b, node)
        if kind == "matmul":
            hint = f"a product of matrices is {elsewhere.OF_PACKAGE['matmul']}"
            raise Refused("F011", "`@` is not an operator of this language", hint=hint)
        return wrap(core.binary(kind, operand(a, "lhs"), operand(b, "rhs")))
    except Refused as refused:
        raise frame.located(refused, node, {"lhs": left[1], "rhs": right[1]}) from None


def _power(frame: Frame, a: Any, b: Any, node: ast.AST) -> Any:
    if isinstance(b, int | float) and b == 2 and isinstance(a, Tile | Scalar):
        return wrap(core.binary("mul", a.value, a.value))
    raise frame.problem(
        "F011",
        "`**` is defined for the exponent 2 only",
        node,
        hint="multiply; `wl.sqrt(t)`, `wl.exp2(t)` and `wl.exp(t * wl.log(x))` do the rest",
    )


def computed(frame: Frame, node: ast.AST, compute: Callable[..., Any], *values: Any) -> Any:
    """A constant that Python computes."""
    try:
        return compute(*values)
    except Exception as problem:
        raise not_computed(frame, node, problem) from None


def not_computed(frame: Frame, node: ast.AST, problem: Exception) -> Problem:
    """What Python says of constants that it cannot compute with."""
    return frame.problem(
        "F037",
        f"{type(problem).__name__}: {problem}",
        node,
        notes=["this is computed at compile time"],
        hint="this is computed at compile time: give other constants, or pass the result",
    )


@expression(ast.UnaryOp)
def unary_operation(frame: Frame, node: ast.UnaryOp) -> Any:
    """`-a`, `~a`, `not a`."""
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return negate(frame, value, node.operand)
    kind, compute = _UNARY[type(node.op)]
    if not is_symbolic(value):
        return computed(frame, node, compute, value)
    frame.at(node)
    try:
        held = operand(value, "operand")
        if kind == "pos":
            return value
        assert not isinstance(held, int | float)
        return wrap(core.unary(kind, held, "operand"))
    except Refused as refused:
        raise frame.located(refused, node, {"operand": node.operand}) from None


@expression(ast.BoolOp)
def bool_operation(frame: Frame, node: ast.BoolOp) -> Any:
    """`a and b`, `a or b`."""
    kind = "and" if isinstance(node.op, ast.And) else "or"
    parts = [(part, lambda part=part: evaluate(frame, part)) for part in node.values]
    return chain(frame, node, parts, kind)


@expression(ast.Compare)
def comparison(frame: Frame, node: ast.Compare) -> Any:
    """`a < b`, `a < b < c`, `a is None`, `a in (…)`."""
    places = [node.left, *node.comparators]
    known: dict[int, Any] = {}

    def value(at: int) -> Any:
        if at not in known:
            known[at] = evaluate(frame, places[at])
        return known[at]

    def link(at: int) -> Any:
        pair = (value(at), places[at]), (value(at + 1), places[at + 1])
        return _compare(frame, node, node.ops[at], *pair)

    if len(node.ops) == 1:
        return link(0)
    links = [(places[at + 1], lambda at=at: link(at)) for at in range(len(node.ops))]
    return chain(frame, node, links, "and")


def _compare(
    frame: Frame,
    node: ast.AST,
    op: ast.cmpop,
    left: tuple[Any, ast.AST],
    right: tuple[Any, ast.AST],
) -> Any:
    kind, compute = _COMPARE[type(op)]
    a, b = left[0], right[0]
    if kind in ("is", "is not"):
        if a is not None and b is not None and (is_symbolic(a) or is_symbolic(b)):
            raise frame.problem(
                "F011", f"`{kind}` compares with None only", node, hint="`==` compares values"
            )
        return compute(a, b)
    if (a is None or b is None) and kind in ("eq", "ne"):
        return (kind == "eq") == (a is b)
    if not is_symbolic(a) and not is_symbolic(b):
        return computed(frame, node, compute, a, b)
    if kind in ("in", "not in"):
        need_constant(frame, a if is_symbolic(a) else b, f"both sides of `{kind}`", node)
    frame.at(node)
    try:
        return wrap(core.compare(kind, operand(a, "lhs"), operand(b, "rhs")))
    except Refused as refused:
        raise frame.located(refused, node, {"lhs": left[1], "rhs": right[1]}) from None


@expression(ast.Slice)
def slices(frame: Frame, node: ast.Slice) -> slice:
    """`a : b` inside of square brackets."""
    bounds = (
        None if b is None else evaluate(frame, b) for b in (node.lower, node.upper, node.step)
    )
    return slice(*bounds)


@expression(ast.Subscript)
def subscript(frame: Frame, node: ast.Subscript) -> Any:
    """`x[…]`: a window of a tensor, a part of a tile, an item of a tuple."""
    owner = evaluate(frame, node.value)
    if is_kernel(owner):
        raise frame.problem(
            "F022",
            "a kernel is launched inside a kernel",
            node,
            hint="put the shared code into a function under `@wl.function`, and call that",
        )
    if owner is None:
        raise _is_none(frame, node)
    index = evaluate(frame, node.slice)
    frame.at(node)
    try:
        if isinstance(owner, Tensor):
            return window(owner, index)
        if isinstance(owner, Tile):
            return sub_tile(owner, index)
        if isinstance(owner, Handle):
            return owner[index]
        if isinstance(owner, Window):
            raise Refused(
                "T015", "a window is not indexed again", hint="load it first: `wl.load(x[…])[…]`"
            )
        if isinstance(owner, Scalar):
            raise Refused("T015", f"{kind_of(owner)} has no elements")
        if isinstance(index, Scalar | Tile):
            what = "an axis of a shape" if isinstance(owner, Extents) else "an index of a tuple"
            need_constant(frame, index, what, node.slice, "`wl.unroll(n)` counts with constants")
        if isinstance(owner, Extents):
            return owner[index]
    except Refused as refused:
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        places: dict[str, ast.AST] = {f"[{at}]": entry for at, entry in enumerate(entries)}
        raise frame.located(refused, node, {"axis": node.slice, **places}) from None
    return computed(frame, node, operator.getitem, owner, index)


@expression(ast.Attribute)
def attribute(frame: Frame, node: ast.Attribute) -> Any:
    """`value.name`."""
    owner = evaluate(frame, node.value)
    if isinstance(owner, types.ModuleType):
        return _of_module(frame, owner, node)
    if owner is None:
        raise _is_none(frame, node)
    if isinstance(owner, Instance):
        return structs.attribute(frame, owner, node)
    allowed = owner.attributes if isinstance(owner, Handle) else _ATTRIBUTES.get(type(owner))
    if allowed is not None:
        if node.attr in allowed:
            frame.at(node)
            try:
                return getattr(owner, node.attr)
            except Refused as refused:
                raise frame.located(refused, node) from None
        raise _no_attribute(frame, owner, node, allowed)
    if isinstance(owner, str) and node.attr == "format":
        raise frame.problem(
            "F028",
            "texts are not formatted in a kernel",
            node,
            hint='give texts and values as separate arguments: `print("i is", i)`',
        )
    data = data_of(owner)
    if node.attr in data:
        return frame.constant(data[node.attr], node)
    raise _no_attribute(frame, owner, node, tuple(data))


def _is_none(frame: Frame, node: ast.Subscript | ast.Attribute) -> Problem:
    spelt = ast.unparse(node.value)
    return frame.problem(
        "T020",
        f"`{spelt}` is None here",
        node.value,
        label="None",
        hint=f"put it under `if {spelt} is not None:`, which is decided at compile time",
    )


def _of_module(frame: Frame, module: types.ModuleType, node: ast.Attribute) -> Any:
    try:
        value = getattr(module, node.attr)
    except AttributeError:
        value = None
        if module.__name__ == "warploom":
            raise frame.problem(
                "F024", f"`{ast.unparse(node)}` does not exist", node, hint=_instead(module, node)
            ) from None
        raise frame.problem(
            "F025", f"the module `{module.__name__}` has no `{node.attr}`", node
        ) from None
    return frame.constant(value, node)


def _instead(module: types.ModuleType, node: ast.Attribute) -> str:
    """What an absent name of the package is here, or may be a slip of."""
    if node.attr in elsewhere.OF_PACKAGE:
        return f"here this is {elsewhere.OF_PACKAGE[node.attr]}"
    near = nearest(node.attr, [*VOCABULARY, *dir(module)])
    return f"did you mean `{ast.unparse(node.value)}.{near}`?" if near else ""


def _no_attribute(frame: Frame, owner: Any, node: ast.Attribute, allowed: tuple[str, ...]) -> Any:
    near = nearest(node.attr, allowed)
    hint = f"did you mean `.{near}`?" if near else ""
    if isinstance(owner, Tile | Scalar | Tensor):
        if node.attr in elsewhere.OF_VALUE:
            hint = f"here this is {elsewhere.OF_VALUE[node.attr]}"
        elif node.attr in VOCABULARY:
            hint = f"it is a function: `wl.{node.attr}(…)`"
    elif isinstance(owner, Handle) and owner.absent:
        hint = owner.absent
    notes = [f"it has: {', '.join(allowed)}"] if allowed else []
    return frame.problem(
        "F025", f"{kind_of(owner)} has no `{node.attr}`", node, notes=notes, hint=hint
    )
