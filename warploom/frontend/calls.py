"""Calls: functions of the language, inlined functions of users, and what no kernel can call.

What Python's own functions mean in a kernel is in `python_functions`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

from warploom.base.dtypes import DType
from warploom.base.errors import CompileError
from warploom.frontend import structs
from warploom.frontend.capture import is_kernel
from warploom.frontend.expressions import computed, is_symbolic, not_computed, starred
from warploom.frontend.frame import (
    Frame,
    Problem,
    Returned,
    Silenced,
    evaluate,
    execute,
    expression,
)
from warploom.frontend.python_functions import BUILTINS, check_print
from warploom.frontend.source import SourceFunction, read
from warploom.ir.op import Complaint
from warploom.language import core, debug, elsewhere
from warploom.language.context import VOCABULARY, Handle, Refused
from warploom.language.function import Function
from warploom.language.structs import Bound, Struct
from warploom.language.values import Scalar, Tensor, Tile, kind_of

_WRAPPERS = (Tile, Scalar, Tensor, Handle)
# Functions of Python that are computed where all arguments are constants.
_FOR_CONSTANTS = (abs, bool, divmod, float, int, isinstance, max, min, pow, round, str, sum)


@expression(ast.Call)
def call(frame: Frame, node: ast.Call) -> Any:
    """`f(…)`, by what f is."""
    function = evaluate(frame, node.func)
    if function is builtins.print:
        check_print(frame, node)
    positional, named, places = _arguments(frame, node)
    frame.at(node)
    if function is builtins.breakpoint:
        return _language(frame, _breakpoint(frame), positional, named, node, places)
    if isinstance(function, Bound):
        return inline(frame, function.method, [function.owner, *positional], named, node)
    if isinstance(function, Struct):
        return structs.make(frame, function, positional, named, node, places)
    if isinstance(function, Function):
        return inline(frame, function, positional, named, node)
    if VOCABULARY.get(getattr(function, "__name__", "")) is function or _is_method(function):
        return _language(frame, function, positional, named, node, places)
    if isinstance(function, DType):
        return _dtype(frame, function, positional, named, node)
    own = BUILTINS.get(function) if isinstance(function, types.BuiltinFunctionType | type) else None
    if own is not None:
        return _python(frame, own, positional, named, node, places)
    return _foreign(frame, function, positional, named, node)


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[Any], dict[str, Any], list[ast.AST]]:
    """Values by position and by name, and the places of the positional ones."""
    positional: list[Any] = []
    places: list[ast.AST] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            items = starred(frame, argument)
            positional += items
            places += [argument] * len(items)
        else:
            positional.append(evaluate(frame, argument))
            places.append(argument)
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.problem(
                "F011",
                "`**` in a call is not supported",
                keyword.value,
                hint="write each argument by name: `f(axis=1)`",
            )
        named[keyword.arg] = evaluate(frame, keyword.value)
    return positional, named, places


def _breakpoint(frame: Frame) -> Callable[[], None]:
    """`breakpoint()` with the names that the reader can see here."""

    def breakpoint() -> None:
        debug.device_breakpoint(frame.names)

    return breakpoint


def _is_method(function: Any) -> bool:
    return isinstance(function, types.MethodType) and isinstance(function.__self__, _WRAPPERS)


def _language(
    frame: Frame,
    function: Callable[..., Any],
    positional: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    places: list[ast.AST],
) -> Any:
    """Call a function of the language; a refusal is placed at the argument that it blames."""
    outer = frame.building.call
    frame.building.call = lambda fn, given: inline(frame, fn, given, {}, node)
    try:
        return function(*positional, **named)
    except Refused as refused:
        raise frame.located(refused, node, _places(function, node, places)) from None
    except Complaint as complaint:
        raise frame.complained(complaint, node) from None
    except TypeError as problem:
        signature = inspect.signature(function)
        try:
            signature.bind(*positional, **named)
        except TypeError as unfit:
            raise _unfit(frame, node, function, signature, unfit) from None
        raise problem
    finally:
        frame.building.call = outer


def _python(
    frame: Frame,
    own: Callable[..., Any],
    positional: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    places: list[ast.AST],
) -> Any:
    """One of Python's functions; what it cannot do with constants is the kernel's mistake."""
    try:
        return _language(frame, own, positional, named, node, places)
    except (TypeError, ValueError, OverflowError) as problem:
        if any(map(is_symbolic, (*positional, *named.values()))):
            raise
        raise not_computed(frame, node, problem) from None


def _places(
    function: Callable[..., Any], node: ast.Call, places: list[ast.AST]
) -> dict[str, ast.AST]:
    """Where each parameter of a call got its argument."""
    found: dict[str, ast.AST] = {k.arg: k.value for k in node.keywords if k.arg}
    parameters = list(inspect.signature(function).parameters.values())
    for at, place in enumerate(places):
        if at < len(parameters) and parameters[at].kind is not inspect.Parameter.VAR_POSITIONAL:
            found[parameters[at].name] = place
    return found


def _unfit(
    frame: Frame, node: ast.Call, function: Any, signature: inspect.Signature, unfit: TypeError
) -> Problem:
    plain = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    message = str(unfit)
    name = message.partition("keyword argument '")[2].rstrip("'")
    hint = ""
    if VOCABULARY.get(function.__name__) is function:
        if name in elsewhere.OF_CALL:
            hint = f"here this is {elsewhere.OF_CALL[name]}"
        else:
            hint = _HABITS.get((function.__name__, name), "")
    return frame.problem(
        "F026",
        f"the call of `{ast.unparse(node.func)}` does not fit: {message}",
        node,
        hint=hint,
        notes=[f"it is `{function.__name__.lstrip('_')}{plain}`"],
    )


_NO_MASK = "what lies outside the tensor is not accessed anyway; elsewhere "
# Calls that other languages take, by function and unknown keyword ("": positions that do not fit).
_HABITS = {
    ("arange", ""): "it counts from 0: `start + wl.arange(SIZE)`",
    ("load", "mask"): _NO_MASK + "`wl.where(mask, wl.load(x[…]), other)`",
    ("store", "mask"): _NO_MASK + "`wl.store(x[…], wl.where(mask, t, wl.load(x[…])))`",
    ("load", "eviction_policy"): 'this is `cache="evict_first"`, or "evict_last"',
    ("load", "cache_modifier"): 'this is `cache="no_allocate"`, or the compiler\'s choice',
}


def inline(
    frame: Frame, function: Function, positional: list[Any], named: dict[str, Any], node: ast.Call
) -> Any:
    """Read the body of a user's function with these arguments; gives what it returns."""
    try:
        source = read(function)
    except CompileError as error:
        raise Problem(error.reports[0]) from None
    callers = (*frame.callers, frame.source)
    if source in callers:
        names = [s.name for s in callers[callers.index(source) :]]
        raise frame.problem(
            "F020",
            f"`{source.name}` calls itself",
            node,
            notes=[f"the calls: {' -> '.join([*names, source.name])}"],
            hint="functions are inlined, so they need a loop instead",
        )
    signature = inspect.signature(source.fn)
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as unfit:
        raise _unfit(frame, node, source.fn, signature, unfit) from None
    bound.apply_defaults()
    _check_parameters(frame, source, signature, node)
    inner = Frame(
        source,
        frame.building,
        frame.reports,
        dict(bound.arguments),
        chain=(frame.source.place(node), *frame.chain),
        callers=callers,
        stops=frame.stops,
    )
    before = len(frame.reports.found)
    result: Any = None
    try:
        execute(inner, source.tree.body)
    except Returned as returned:
        result = returned.value
    frame.at(node)
    if result is None and len(frame.reports.found) > before:
        # The body was refused in parts: nobody knows what it would have returned.
        raise Silenced
    return result


def _check_parameters(
    frame: Frame, source: SourceFunction, signature: inspect.Signature, node: ast.Call
) -> None:
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise frame.problem(
                "F006",
                f"`**{parameter.name}` of `{source.name}`: name each parameter",
                node,
                source.place(source.tree),
            )


def _dtype(
    frame: Frame, dtype: DType, positional: list[Any], named: dict[str, Any], node: ast.Call
) -> Any:
    """`wl.i64(n)`: a scalar of this type."""
    if len(positional) != 1 or named:
        raise frame.problem("F026", f"`wl.{dtype}` takes one number or scalar", node)
    (value,) = positional
    if isinstance(value, Tile):
        raise frame.problem(
            "F026",
            f"`wl.{dtype}` takes one number or scalar, not a tile",
            node.args[0],
            hint=f"`t.cast(wl.{dtype})`",
        )
    try:
        if isinstance(value, Scalar):
            return value.cast(dtype)
        if isinstance(value, int | float):
            number = float(value) if dtype.is_float else int(value)
            return Scalar(core.literal(number, dtype))
    except Refused as refused:
        raise frame.located(refused, node.args[0]) from None
    raise frame.problem(
        "T015", f"`wl.{dtype}` takes one number or scalar", node.args[0], label=kind_of(value)
    )


def _foreign(
    frame: Frame, function: Any, positional: list[Any], named: dict[str, Any], node: ast.Call
) -> Any:
    """Everything else: computed where all is constant and the function is known, else refused."""
    values = [*positional, *named.values()]
    symbolic = any(is_symbolic(v) or (isinstance(v, tuple | list) and _holds(v)) for v in values)
    module = getattr(function, "__module__", None) or ""
    known = isinstance(function, types.BuiltinFunctionType) and module == "math"
    if not symbolic and (known or any(function is own for own in _FOR_CONSTANTS)):
        return computed(frame, node, function, *positional, **named)
    raise _refused_call(frame, function, node)


def _holds(values: Any) -> bool:
    return any(is_symbolic(v) or (isinstance(v, tuple | list) and _holds(v)) for v in values)


def _refused_call(frame: Frame, function: Any, node: ast.Call) -> Problem:
    spelt = ast.unparse(node.func)
    if is_kernel(function):
        return frame.problem(
            "F022",
            f"the kernel `{spelt}` is called inside a kernel",
            node,
            hint="put the shared code into a function under `@wl.function`, and call that",
        )
    if not callable(function):
        return frame.problem(
            "F021",
            f"`{spelt}` cannot be called",
            node.func,
            label=kind_of(function),
            hint="kernels call functions of `wl`, and those under `@wl.function`",
        )
    name = getattr(function, "__name__", "")
    library = (getattr(function, "__module__", None) or type(function).__module__).split(".")[0]
    if library == "warploom":
        return frame.problem(
            "F021",
            f"`{spelt}` works on the host, not in a kernel",
            node,
            hint="call it outside, and pass the result as an argument",
        )
    if isinstance(function, types.FunctionType) and library not in (
        "numpy",
        "torch",
        "jax",
        "scipy",
    ):
        return frame.problem(
            "F021",
            f"`{spelt}` is a Python function without `@wl.function`",
            node,
            hint=f"write `@wl.function` above `def {name}`: kernels inline it",
        )
    if name in VOCABULARY:
        hint = f"write `wl.{name}`"
    elif name in elsewhere.OF_PACKAGE:
        hint = f"here this is {elsewhere.OF_PACKAGE[name]}"
    else:
        hint = "compute it outside, and pass the result"
    where = library if library not in ("builtins", "") else "Python"
    return frame.problem(
        "F023", f"`{spelt}` is a function of {where}, which works on the host", node, hint=hint
    )
