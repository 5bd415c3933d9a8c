"""Which names a piece of code binds and reads: what loops carry and branches merge. Pure syntax.

Liveness is the usual backward analysis over the tree, computed once a function; both branches of
every `if` count, whether their condition is a constant or not.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from warploom.frontend.source import SourceFunction

Names = frozenset[str]
_NONE: Names = frozenset()

# Methods that change a list: they count as assignments of the name in front of them.
LIST_METHODS = ("append",)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def assigned(statements: Sequence[ast.stmt | ast.expr]) -> Names:
    """Every name that the statements may bind. The names of a comprehension live in it only."""
    found: set[str] = set()
    todo: list[ast.AST] = list(statements)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            continue
        todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name):
                found.add(node.value.id)
        elif isinstance(node, ast.Expr) and (changed := changed_list(node)):
            found.add(changed)
        elif isinstance(node, _DEFINITIONS):
            found.add(node.name)  # refused, and no news where it is used
    return frozenset(found)


def assigned_in(source: SourceFunction, node: ast.stmt) -> Names:
    """`assigned` of one statement of a function, computed once."""
    cache: dict[ast.stmt, Names] = source.cache.setdefault("assigned", {})
    known = cache.get(node)
    if known is None:
        known = cache[node] = assigned([node])
    return known


def changed_list(statement: ast.Expr) -> str:
    """The name of the list that a statement such as `parts.append(t)` changes, or nothing."""
    call = statement.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if call.func.attr in LIST_METHODS and isinstance(owner, ast.Name):
            return owner.id
    return ""


def local_names(source: SourceFunction) -> Names:
    """Parameters and every name that the function binds: the others come from around it."""
    known = source.cache.get("locals")
    if known is None:
        a = source.tree.args
        parameters = {n.arg for n in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
        known = source.cache["locals"] = frozenset(parameters) | assigned(source.tree.body)
    return known


class Liveness:
    """For each `for` and `if`: names read after it, and for loops, names alive at their head."""

    def __init__(self, source: SourceFunction) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self.head: dict[ast.stmt, Names] = {}
        self.body(source.tree.body, _NONE)

    @classmethod
    def of(cls, source: SourceFunction) -> Liveness:
        """The liveness of a function, computed once."""
        known = source.cache.get("liveness")
        if known is None:
            known = source.cache["liveness"] = cls(source)
        return known

    def body(self, statements: Sequence[ast.stmt], out: Names) -> Names:
        """Names alive in front of some statements, given those alive behind them."""
        for statement in reversed(statements):
            out = self.statement(statement, out)
        return out

    def statement(self, node: ast.stmt, out: Names) -> Names:
        """Names alive in front of one statement."""
        if isinstance(node, ast.If):
            self.after[node] = out
            inner = self.body(node.body, out) | self.body(node.orelse, out)
            return inner | reads(node.test)
        if isinstance(node, ast.For | ast.While):
            return self.loop(node, out)
        if isinstance(node, ast.With):
            out = self.body(node.body, out)
            for item in reversed(node.items):
                if item.optional_vars is not None:
                    out -= _whole_targets(item.optional_vars)
                out |= reads(item.context_expr)
            return out
        if isinstance(node, ast.Assign):
            for target in node.targets:
                out -= _whole_targets(target)
            return out | reads(node.value).union(*(reads(t) for t in node.targets))
        if isinstance(node, ast.AnnAssign):
            value = _NONE if node.value is None else reads(node.value)
            return (out - _whole_targets(node.target)) | value
        return out | reads(node)

    def loop(self, node: ast.For | ast.While, out: Names) -> Names:
        """A loop may run no time, and its end reaches its head."""
        self.after[node] = out
        target = assigned_by(node.target) if isinstance(node, ast.For) else _NONE
        head = out
        while True:
            grown = out | (self.body(node.body, head) - target)
            if isinstance(node, ast.While):
                grown |= reads(node.test)
            if grown == head:
                break
            head = grown
        self.head[node] = head
        return head | reads(node.iter if isinstance(node, ast.For) else node.test)


def reads(node: ast.AST) -> Names:
    """Names that are read, or changed in place, anywhere inside."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            found.add(inner.id)
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            found.add(inner.target.id)
    return frozenset(found)


def assigned_by(target: ast.expr) -> Names:
    """Names bound by a target of `for` or `=`."""
    return frozenset(n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _whole_targets(target: ast.expr) -> Names:
    """Names whose old value an assignment to the target ends."""
    if isinstance(target, ast.Name):
        return frozenset((target.id,))
    if isinstance(target, ast.Tuple | ast.List):
        return frozenset().union(*(_whole_targets(t) for t in target.elts))
    return _NONE
