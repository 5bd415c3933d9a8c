"""How the engine says no: one line that builds a ModelError with its report."""

from collections.abc import Iterable

from warploom.base.errors import ModelError, report


def refuse(code: str, message: str, notes: Iterable[str] = (), hint: str = "") -> ModelError:
    """The error to raise: what is wrong, the facts, and what to do."""
    return ModelError(report(code, message, notes=notes, hint=hint))
