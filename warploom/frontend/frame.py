"""The state of reading one function: names, place, reports; and the tables of rules for syntax.

A statement that is refused leaves a report and poisons the names that it would have bound, so that
one mistake gives one report and the rest of the kernel is still looked at.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.frontend.capture import NotConstant, admit
from warploom.frontend.scopes import Liveness, assigned_in, local_names
from warploom.frontend.source import SourceFunction
from warploom.frontend.stops import Stops
from warploom.ir.op import Complaint, Loc
from warploom.language import debug
from warploom.language.context import VOCABULARY, Building, Refused
from warploom.language.values import kind_of

R = TypeVar("R", bound=Callable[..., Any])

# More reports than this help nobody.
_MOST_REPORTS = 20


class Problem(Exception):
    """A refused piece of source, with its report."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.message)
        self.report = report


class Silenced(Exception):
    """Something depends on what was refused before: no further report."""


class Returned(Exception):
    """A `return` was reached at compile time."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Enough(Exception):
    """So many reports that reading on is of no use."""


class _Poison:
    def __repr__(self) -> str:
        return "POISON"


# The value of a name whose assignment was refused.
POISON: Final = _Poison()


@dataclass(frozen=True, slots=True)
class Unbound:
    """A name without a value: bound in one branch or inside a loop only, at `place`."""

    reason: str
    place: Loc | None = None


def _key(given: Report) -> tuple[Any, ...]:
    """What makes two reports the same: code, message and place."""
    places = [(s.file, s.line, s.column) for s in given.spans[:1]]
    return (given.code, given.message, *places)


@dataclass(slots=True)
class Reports:
    """The reports of one kernel, each once (copies of an unrolled body repeat themselves)."""

    found: list[Report] = field(default_factory=list)
    seen: set[tuple[Any, ...]] = field(default_factory=set)
    cause: Exception | None = None

    def add(self, given: Report) -> None:
        """Enter a report; raises `Enough` after the last one that is of use."""
        key = _key(given)
        if key not in self.seen:
            self.seen.add(key)
            self.found.append(given)
            if len(self.found) >= _MOST_REPORTS:
                raise Enough

    def mark(self) -> int:
        """How far the reports have come."""
        return len(self.found)

    def rewind(self, mark: int) -> None:
        """Forget the reports since a mark: what gave them is read again."""
        for given in self.found[mark:]:
            self.seen.discard(_key(given))
        del self.found[mark:]


@dataclass(slots=True)
class Frame:
    """One function while it is read. `depth` counts run-time loops and branches around."""

    source: SourceFunction
    building: Building
    reports: Reports
    names: dict[str, Any]
    chain: tuple[Loc, ...] = ()
    callers: tuple[SourceFunction, ...] = ()
    depth: int = 0
    regions: int = 0  # `with` around
    bound_at: dict[str, Loc] = field(default_factory=dict)
    stops: Stops = field(default_factory=Stops)

    @property
    def liveness(self) -> Liveness:
        """Which names are read later, for each loop and branch."""
        return Liveness.of(self.source)

    def place(self, node: ast.AST) -> Loc:
        """The place of a piece of source, with the call sites that led here."""
        return self.source.place(node, self.chain)

    def at(self, node: ast.AST) -> None:
        """Give this place to the operations that follow."""
        self.building.builder.loc = self.place(node)

    def problem(
        self,
        code: str,
        message: str,
        where: ast.AST | Loc,
        *further: Loc | Span | None,
        label: str = "",
        notes: Iterable[str] = (),
        hint: str = "",
    ) -> Problem:
        """A refusal at a piece of source."""
        place = where if isinstance(where, Loc) else self.place(where)
        made = report(code, message, place, *further, label=label, notes=notes, hint=hint)
        return Problem(made)

    def located(
        self, refused: Refused, node: ast.AST, arguments: Mapping[str, ast.AST] | None = None
    ) -> Problem:
        """A refusal of the language, placed at the argument that it blames, or at `node`."""
        place = refused.place or (arguments or {}).get(refused.argument, node)
        return self.problem(
            refused.code,
            refused.message,
            place,
            label=refused.label,
            notes=refused.notes,
            hint=refused.hint,
        )

    def complained(self, complaint: Complaint, node: ast.AST) -> Problem:
        """An operation that its own declaration refuses."""
        return self.problem("T004", str(complaint), node)

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """Give a name a value."""
        self.names[name] = value
        self.bound_at[name] = self.place(node)

    def poison(self, names: Iterable[str]) -> None:
        """Silence everything that depends on these names."""
        for name in names:
            self.names[name] = POISON

    def look_up(self, node: ast.Name) -> Any:
        """The value of a name; raises what a reader should see."""
        name = node.id
        if name in self.names:
            value = self.names[name]
            if value is POISON:
                raise Silenced
            if isinstance(value, Unbound):
                raise self.unbound(name, value, node)
            return value
        if name in local_names(self.source):
            raise self.problem(
                "F040",
                f"`{name}` is used before it is bound",
                node,
                hint=f"bind it first; every assignment of `{name}` comes later",
            )
        return self.captured(name, node)

    def captured(self, name: str, node: ast.AST) -> Any:
        """The value of a name around the function, as a constant."""
        try:
            value = self.source.resolve(name)
        except KeyError:
            raise self._unknown(name, node) from None
        return self.constant(value, node)

    def constant(self, value: Any, node: ast.AST) -> Any:
        """A captured value, refused where it cannot be a constant."""
        try:
            return admit(value)
        except NotConstant as problem:
            raise self.problem(
                "F029",
                f"`{ast.unparse(node)}` cannot be a constant of a kernel",
                node,
                notes=[f"it is {problem}"],
                hint="pass it as an argument of the kernel",
            ) from None

    def unbound(self, name: str, unbound: Unbound, node: ast.AST) -> Problem:
        """The report of a name that has no value here."""
        if unbound.reason == "branch":
            return self.problem(
                "F014",
                f"`{name}` is bound in one branch of an `if` only",
                node,
                unbound.place,
                hint=f"bind `{name}` before the `if`, or in both branches",
            )
        if unbound.reason == "role":
            return self.problem(
                "P014",
                f"`{name}` is a tile of registers from outside this role",
                node,
                unbound.place,
                notes=["registers belong to the warps that hold them"],
                hint="make it inside the role, or let a role send it: `wl.channel(shape, dtype)`",
            )
        if unbound.reason == "thread":
            return self.problem(
                "P015",
                f"`{name}` is bound inside a `with` that one thread runs",
                node,
                unbound.place,
                hint=f"bind `{name}` outside of it",
            )
        return self.problem(
            "F015",
            f"`{name}` is bound inside a loop only, and a loop may run zero times",
            node,
            unbound.place,
            hint=f"bind `{name}` before the loop",
        )

    def _unknown(self, name: str, node: ast.AST) -> Problem:
        known = [*self.names, *self.source.fn.__globals__]
        near = nearest(name, known)
        hint = "bind it before this line, or in the module outside of the kernel"
        if near:
            hint = f"did you mean `{near}`?"
        if not near and name in VOCABULARY:
            hint = f"did you mean `wl.{name}`?"
        return self.problem("F013", f"the name `{name}` is not known", node, hint=hint)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a misspelt one, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return found[0] if found else ""


# --- rules -----------------------------------------------------------------------------------

EXPRESSIONS: dict[type[ast.expr], Callable[[Frame, Any], Any]] = {}
STATEMENTS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {}


def expression(*kinds: type[ast.expr]) -> Callable[[R], R]:
    """Enter the rule of some kinds of expression."""

    def enter(rule: R) -> R:
        EXPRESSIONS.update(dict.fromkeys(kinds, rule))
        return rule

    return enter


def statement(*kinds: type[ast.stmt]) -> Callable[[R], R]:
    """Enter the rule of some kinds of statement."""

    def enter(rule: R) -> R:
        STATEMENTS.update(dict.fromkeys(kinds, rule))
        return rule

    return enter


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression: a constant of Python, or a symbolic value."""
    rule = EXPRESSIONS.get(type(node))
    if rule is None:
        raise frame.problem(
            "F011", f"{_spelt(node)} has no meaning in a kernel", node, hint=_hint(node)
        )
    return rule(frame, node)


def execute(frame: Frame, statements: Sequence[ast.stmt]) -> None:
    """Read statements in order; what is refused is reported and poisons what it binds."""
    for node in statements:
        rule = STATEMENTS.get(type(node))
        try:
            if rule is None:
                raise frame.problem(
                    "F010", f"{_spelt(node)} has no meaning in a kernel", node, hint=_hint(node)
                )
            stop(frame, node)
            rule(frame, node)
            continue
        except (Returned, Enough):
            raise
        except Problem as problem:
            frame.reports.add(problem.report)
        except Silenced:
            pass
        except Refused as refused:
            frame.reports.add(frame.located(refused, node).report)
        except Complaint as complaint:
            frame.reports.add(frame.complained(complaint, node).report)
        except Exception as fault:
            frame.reports.cause = frame.reports.cause or fault
            frame.reports.add(_own_fault(frame, fault, node).report)
        frame.poison(assigned_in(frame.source, node))


def stop(frame: Frame, node: ast.stmt) -> None:
    """Let the simulator stop before a statement where the user wants that. Between roles nothing
    runs: a role stops as it begins."""
    if not frame.building.between_roles and frame.stops.before(frame.source, node):
        frame.at(node)
        debug.device_breakpoint(frame.names)


def _own_fault(frame: Frame, fault: Exception, node: ast.AST) -> Problem:
    """What a user gets instead of a traceback through the compiler; the cause stays attached."""
    return frame.problem(
        "F099",
        f"the compiler failed at this statement: {type(fault).__name__}: {fault}",
        node,
        notes=["this is a fault of Warploom, not of the kernel"],
        hint="please report it with these lines; writing the statement in another way may help",
    )


_WORDS: dict[str, tuple[str, str]] = {
    "With": ("`with`", ""),
    "Try": ("`try`", "a kernel raises no exceptions; `assert` stops a launch"),
    "Raise": ("`raise`", '`assert condition, "text"` stops a launch'),
    "FunctionDef": (
        "a nested function",
        "put it outside, under `@wl.function`; kernels inline it",
    ),
    "AsyncFunctionDef": ("`async def`", ""),
    "ClassDef": ("a nested class", "put it outside"),
    "Delete": ("`del`", "names need no deletion"),
    "Global": ("`global`", "globals are constants of a kernel; pass arguments instead"),
    "Nonlocal": ("`nonlocal`", "outer variables are constants of a kernel; pass arguments instead"),
    "Match": ("`match`", "use `if` and `elif`"),
    "Lambda": ("a lambda", "put the function outside, under `@wl.function`"),
    "Dict": ("a dictionary", "use names or a tuple"),
    "Set": ("a set", "use a tuple"),
    "SetComp": ("a set", "use a tuple"),
    "DictComp": ("a dictionary", "use a tuple"),
    "Await": ("`await`", ""),
    "Yield": ("`yield`", ""),
    "YieldFrom": ("`yield`", ""),
    "NamedExpr": ("`:=`", "assign in a statement of its own"),
    "JoinedStr": ("an f-string", 'give texts and values as separate arguments: `print("i is", i)`'),
}


def _spelt(node: ast.AST) -> str:
    name = type(node).__name__
    return _WORDS[name][0] if name in _WORDS else f"this ({name})"


def _hint(node: ast.AST) -> str:
    return _WORDS.get(type(node).__name__, ("", ""))[1]


def need_constant(frame: Frame, value: Any, what: str, node: ast.AST, hint: str = "") -> NoReturn:
    """Refuse a run-time value where a constant is needed."""
    raise frame.problem(
        "F027",
        f"{what} must be known at compile time",
        node,
        label=kind_of(value),
        hint=hint or "use a literal, a `wl.const` parameter, or a global",
    )
