"""Statements but `if` and `for`. Each rule binds names or appends operations."""

from __future__ import annotations

import ast
from typing import Any

from warploom.frontend.branches import truth
from warploom.frontend.expressions import binary
from warploom.frontend.frame import Frame, Returned, evaluate, statement
from warploom.frontend.scopes import changed_list
from warploom.frontend.targets import assign
from warploom.language import debug
from warploom.language.context import Refused
from warploom.language.values import Tensor, Tile, kind_of


@statement(ast.Assign)
def assignment(frame: Frame, node: ast.Assign) -> None:
    """`a = b = value`."""
    value = evaluate(frame, node.value)
    for target in node.targets:
        assign(frame, target, value, node.value)


@statement(ast.AnnAssign)
def annotated(frame: Frame, node: ast.AnnAssign) -> None:
    """`name: annotation = value`; the annotation is for readers."""
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value), node.value)


@statement(ast.AugAssign)
def augmented(frame: Frame, node: ast.AugAssign) -> None:
    """`name += value` is `name = name + value`."""
    target = node.target
    if isinstance(target, ast.Name):
        old = frame.look_up(ast.copy_location(ast.Name(target.id, ast.Load()), target))
    elif isinstance(target, ast.Subscript):
        if isinstance(evaluate(frame, target.value), Tensor):
            place = ast.unparse(target)
            symbol = ast.unparse(node).removeprefix(place).partition("=")[0].strip()
            raise frame.problem(
                "F035",
                "a tensor is not written by assignment",
                target,
                hint=f"`wl.store({place}, wl.load({place}) {symbol} …)`",
            )
        load = ast.Subscript(target.value, target.slice, ast.Load())
        old = evaluate(frame, ast.copy_location(load, target))
    else:
        assign(frame, target, None, node.value)  # which refuses it
        return
    value = evaluate(frame, node.value)
    assign(frame, target, binary(frame, node, node.op, (old, target), (value, node.value)), node)  # type: ignore[arg-type]


@statement(ast.Expr)
def expression_statement(frame: Frame, node: ast.Expr) -> None:
    """A call for its effect; texts (docstrings) mean nothing."""
    if isinstance(node.value, ast.Constant):
        return
    name = changed_list(node)
    owner = frame.names.get(name) if name else None
    if name and isinstance(owner, list | tuple):
        _append(frame, node, name, owner)
        return
    evaluate(frame, node.value)


def _append(frame: Frame, node: ast.Expr, name: str, owner: Any) -> None:
    """`parts.append(t)`: an assignment of a longer list, which loops and branches see."""
    call = node.value
    assert isinstance(call, ast.Call)
    if isinstance(owner, tuple):
        raise frame.problem(
            "F025", f"`{name}` is a tuple, which never changes", call, hint="use a list"
        )
    if len(call.args) != 1 or call.keywords:
        raise frame.problem(
            "F026", "`append` takes one value", call, hint="append one after the other"
        )
    frame.bind(name, [*owner, evaluate(frame, call.args[0])], call)


@statement(ast.Assert)
def assertion(frame: Frame, node: ast.Assert) -> None:
    """`assert condition, text`: decided now where the condition is a constant, else at run time."""
    condition = evaluate(frame, node.test)
    text = _text(frame, node)
    if not isinstance(condition, Tile):
        condition = truth(frame, condition, node.test)
    if isinstance(condition, bool):
        if not condition:
            raise frame.problem(
                "F038",
                f"this assertion does not hold: {text}",
                node.test,
                label="False at compile time",
                hint="it is decided at compile time: give other constants",
            )
        return
    frame.at(node)
    try:
        debug.device_assert(condition, text)
    except Refused as refused:
        raise frame.located(refused, node.test) from None


def _text(frame: Frame, node: ast.Assert) -> str:
    """The text of an assertion: a constant, or the condition as it is written."""
    if node.msg is None:
        return ast.unparse(node.test)
    if isinstance(node.msg, ast.JoinedStr):
        raise frame.problem(
            "F028",
            "the text of an assertion is a constant, not an f-string",
            node.msg,
            hint="write a plain text; `print` shows values",
        )
    text = evaluate(frame, node.msg)
    if not isinstance(text, str):
        raise frame.problem(
            "F028",
            "the text of an assertion is a constant",
            node.msg,
            label=kind_of(text),
            hint="write a plain text; `print` shows values",
        )
    return text


@statement(ast.Return)
def return_statement(frame: Frame, node: ast.Return) -> None:
    """The end of a function, with its value."""
    if frame.depth or frame.regions:
        where = "a run-time loop or branch" if frame.depth else "a `with`"
        hint = "put what follows under an `if` with the opposite condition"
        if frame.callers or not frame.depth:
            hint = "bind the result to a name there, and return it as the last statement"
        raise frame.problem(
            "F018",
            f"`return` stands inside {where}",
            node,
            hint=hint,
        )
    value = None if node.value is None else evaluate(frame, node.value)
    if not frame.callers and value is not None:
        assert node.value is not None
        raise frame.problem(
            "F018",
            "a kernel returns nothing",
            node.value,
            label=kind_of(value),
            hint="pass an output tensor and write it: `wl.store(y[…], t)`",
        )
    raise Returned(value)


@statement(ast.Pass)
def nothing(frame: Frame, node: ast.Pass) -> None:
    """`pass`."""


@statement(ast.Import, ast.ImportFrom)
def imports(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """Refused, with the place where imports belong."""
    names = ", ".join(alias.name for alias in node.names)
    raise frame.problem(
        "F012",
        f"`{names}` is imported inside a kernel",
        node,
        hint="import it at the top of the file; what runs in a kernel is the language of `wl` only",
    )


@statement(ast.Break, ast.Continue)
def leaving(frame: Frame, node: ast.Break | ast.Continue) -> None:
    """Refused: loops run to their end."""
    if isinstance(node, ast.Break):
        word, hint = "break", "bound the loop, or do the rest of the body under an `if`"
    else:
        word, hint = "continue", "put the rest of the body under an `if`"
    raise frame.problem("F019", f"`{word}` has no meaning in a kernel", node, hint=hint)
