"""Elementwise functions of tiles and scalars. Operators are methods of the values themselves."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import boolean, f32
from warploom.ir.ops import tile as tiles
from warploom.language import core
from warploom.language.context import Refused, builder, vocabulary
from warploom.language.values import Arithmetic, Scalar, Tile, not_a, operand, wrap


def _apply(kind: str, t: Any) -> Any:
    """One elementwise function of a tile or scalar; a plain number becomes an f32 scalar."""
    value = core.materialise(operand(t, "t", "a tile or a scalar"), f32, "t")
    return wrap(core.unary(kind, value, "t"))


@vocabulary
def exp(t: Arithmetic) -> Any:
    """e to the power of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: ex2.approx and multiplications.
    """
    return _apply("exp", t)


@vocabulary
def exp2(t: Arithmetic) -> Any:
    """2 to the power of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: ex2.approx.
    """
    return _apply("exp2", t)


@vocabulary
def log(t: Arithmetic) -> Any:
    """The natural logarithm of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 1 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: lg2.approx and a multiplication.
    """
    return _apply("log", t)


@vocabulary
def log2(t: Arithmetic) -> Any:
    """The logarithm to base 2 of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 1 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: lg2.approx.
    """
    return _apply("log2", t)


@vocabulary
def sqrt(t: Arithmetic) -> Any:
    """The square root of each element, correctly rounded. Floats.

    Shapes: any, unchanged.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: sqrt.rn.
    """
    return _apply("sqrt", t)


@vocabulary
def rsqrt(t: Arithmetic) -> Any:
    """1 / sqrt of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: rsqrt.approx.
    """
    return _apply("rsqrt", t)


@vocabulary
def rcp(t: Arithmetic) -> Any:
    """1 / t of each element; `1 / t` is the correctly rounded one. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 1 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: rcp.rn; rcp.approx with fast_math.
    """
    return _apply("rcp", t)


@vocabulary
def sin(t: Arithmetic) -> Any:
    """The sine of each element in radians. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    return _apply("sin", t)


@vocabulary
def cos(t: Arithmetic) -> Any:
    """The cosine of each element in radians. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    return _apply("cos", t)


@vocabulary
def tanh(t: Arithmetic) -> Any:
    """The hyperbolic tangent of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    return _apply("tanh", t)


@vocabulary
def erf(t: Arithmetic) -> Any:
    """The error function of each element. f32 (scalars also f64).

    Shapes: any, unchanged.
    Bound: 2 ulp in f32.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    return _apply("erf", t)


@vocabulary
def floor(t: Arithmetic) -> Any:
    """The largest whole number not above each element, in the same float type.

    Shapes: any, unchanged.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: cvt.rmi.
    """
    return _apply("floor", t)


@vocabulary
def ceil(t: Arithmetic) -> Any:
    """The smallest whole number not below each element, in the same float type.

    Shapes: any, unchanged.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: cvt.rpi.
    """
    return _apply("ceil", t)


@vocabulary
def round(t: Arithmetic) -> Any:
    """The whole number nearest to each element, the even one of two, in the same float type.

    As Python's `round` and NumPy's `rint`: 0.5 gives 0, 1.5 gives 2, −0.3 gives −0.

    Shapes: any, unchanged.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: cvt.rni.
    """
    return _apply("round", t)


@vocabulary
def abs(t: Arithmetic) -> Any:
    """The absolute value of each element. Numbers.

    Shapes: any, unchanged.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: abs.
    """
    return _apply("abs", t)


@vocabulary
def maximum(lhs: Arithmetic, rhs: Arithmetic) -> Any:
    """The larger of two values, element by element; NaN where one is NaN, +0 above −0.

    Shapes: any two that fit; the common shape.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: max, max.NaN.
    """
    return _binary("max", lhs, rhs)


@vocabulary
def minimum(lhs: Arithmetic, rhs: Arithmetic) -> Any:
    """The smaller of two values, element by element; NaN where one is NaN, −0 below +0.

    Shapes: any two that fit; the common shape.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: min, min.NaN.
    """
    return _binary("min", lhs, rhs)


@vocabulary
def where(condition: Arithmetic, yes: Arithmetic, no: Arithmetic) -> Any:
    """`yes` where the condition holds, else `no`. Both are computed.

    Shapes: any three that fit; the common shape. The condition is bool.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: selp.
    """
    a, b = operand(yes, "yes"), operand(no, "no")
    if isinstance(condition, bool | int):
        chosen = a if condition else b
        return wrap(chosen) if not isinstance(chosen, int | float) else chosen
    test = operand(condition, "condition", "a bool tile or scalar")
    return wrap(core.select(core.materialise(test, boolean, "condition"), a, b))


@vocabulary
def fma(a: Arithmetic, b: Arithmetic, c: Arithmetic) -> Tile:
    """a × b + c with one rounding. f32 tiles; numbers and f32 scalars are repeated.

    Shapes: any three that fit; the common shape. At least one is a tile.
    Executes: every thread on its own elements.
    Since: sm_80.
    PTX: fma.rn.f32.
    """
    given = [operand(v, name) for v, name in ((a, "a"), (b, "b"), (c, "c"))]
    shape = core.common_shape("`fma`", *given)
    if shape is None:
        raise (
            not_a("a tile", a, "a")
            if not isinstance(a, Scalar)
            else Refused(
                "T015", "`fma` needs at least one tile", argument="a", hint="write `a * b + c`"
            )
        )
    dtype, _, values = core.unify("`fma`", *given)
    if dtype != f32:
        raise Refused("T004", f"`fma` is not defined for {dtype}", hint="cast it: `.cast(wl.f32)`")
    x, y, z = values
    return Tile(builder().emit(tiles.Fma(a=x, b=y, c=z)))


def _binary(kind: str, lhs: Any, rhs: Any) -> Any:
    a, b = operand(lhs, "lhs"), operand(rhs, "rhs")
    if isinstance(a, int | float) and isinstance(b, int | float):
        return max(a, b) if kind == "max" else min(a, b)
    return wrap(core.binary(kind, a, b))
