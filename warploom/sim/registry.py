"""Which function simulates which operation. A rule builds a step once; the step runs for every
batch of blocks. Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from warploom.ir.op import REGISTRY, Op, Stage

Rule = Callable[..., Any]
R = TypeVar("R", bound=Rule)


class Rules:
    """A table from operation class to rule that refuses a second rule for one operation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: dict[type[Op], Rule] = {}

    def __call__(self, *ops: type[Op]) -> Callable[[R], R]:
        """Register a function as the rule of operations."""

        def register(rule: R) -> R:
            for op in ops:
                if op in self._rules:
                    raise ValueError(f"{op.OPCODE} has two rules in {self.name}")
                self._rules[op] = rule
            return rule

        return register

    def find(self, op: type[Op]) -> Rule | None:
        """The rule of an operation, or None."""
        return self._rules.get(op)

    def missing(self) -> list[str]:
        """Opcodes of the machine stage that have no rule."""
        return sorted(
            opcode
            for opcode, op in REGISTRY.items()
            if Stage.MACHINE in op.STAGES and op not in self._rules
        )


simulates = Rules("simulates")
"""Rules `(translator, op) -> Step`: what an operation does to values."""

shadows = Rules("shadows")
"""Rules `(translator, op) -> Step`: what it does to written-ness, where the default does not
fit."""
