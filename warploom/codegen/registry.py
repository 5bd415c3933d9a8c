"""Which rule prints which operation. Refuses a second rule, and tells which are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from warploom.ir.op import REGISTRY, Op, Stage

if TYPE_CHECKING:
    from warploom.codegen.state import Emitter

T = TypeVar("T", bound=Op)
Rule = Callable[["Emitter", T], None]


class Rules:
    """A rule an operation class."""

    def __init__(self) -> None:
        self._rules: dict[type[Op], Callable[..., None]] = {}

    def __call__(self, *classes: type[Op]) -> Callable[[Rule[T]], Rule[T]]:
        """Decorator: the function prints operations of these classes."""

        def enter(rule: Rule[T]) -> Rule[T]:
            for cls in classes:
                if cls in self._rules:
                    raise ValueError(f"{cls.OPCODE} has two rules")
                self._rules[cls] = rule
            return rule

        return enter

    def of(self, op: Op) -> Callable[..., None]:
        """The rule of an operation; KeyError where there is none."""
        return self._rules[type(op)]

    def rule_of(self, cls: type[Op]) -> Callable[..., None] | None:
        """The rule of an operation class, or None."""
        return self._rules.get(cls)

    def missing(self) -> list[str]:
        """Names of the operations of the machine stage that have no rule."""
        return sorted(
            cls.OPCODE
            for cls in REGISTRY.values()
            if Stage.MACHINE in cls.STAGES and cls not in self._rules
        )


emits = Rules()
