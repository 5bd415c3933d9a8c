"""Python's operators as kinds of operations: `a + b` is "add", `-a` is "neg", `a < b` is "lt".

Knows no values: who inherits says what a kind does with two operands, or with one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Operators(ABC):
    """The operators of Python; a number on the left meets the reflected ones."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    @abstractmethod
    def _binary(kind: str, lhs: Any, rhs: Any) -> Any:
        """Arithmetic or bits of two operands, of which one at least is of this class."""

    @staticmethod
    @abstractmethod
    def _compare(kind: str, lhs: Any, rhs: Any) -> Any:
        """A comparison of two operands."""

    @abstractmethod
    def _unary(self, kind: str) -> Any:
        """An operation of this one."""

    def __add__(self, other: Any) -> Any:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("mod", other, self)

    def __and__(self, other: Any) -> Any:
        return self._binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._binary("shr", other, self)

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._unary("abs")

    def __invert__(self) -> Any:
        return self._unary("not")

    def __eq__(self, other: Any) -> Any:
        return self._compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("ne", self, other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare("ge", self, other)
