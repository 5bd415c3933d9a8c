"""The arrays of a product: what fits together, and what the copy engine can take of them.

Knows shapes, dtypes, addresses and strides, not tiles. A matrix is the last two axes of a view; an
axis before them counts the products of a batch.
"""

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from warploom.base.dtypes import DType, bf16
from warploom.base.errors import error
from warploom.base.target import product_of
from warploom.kernels import arguments
from warploom.runtime import argument_class, arrays, memory
from warploom.runtime.arrays import View

DTYPES = ("f16", "bf16", "f8e4m3", "f8e5m2")
_AXES = {"a": "M K", "b": "K N", "out": "M N", "bias": "N", "residual": "M N"}
UNIT = 16  # bytes: what the copy engine asks of addresses and strides
_told: list[str] = []


def checked(views: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the result. An axis of one element in front of an input goes. Without `out` the
    views may be `Shaped`, of which memory is not known.

    Raises ShapeError T201 for sizes, T202 for dtypes, LaunchError H007.
    """
    counts = [views[name].shape[0] for name in ("a", "b") if len(views[name].shape) == 3]
    batch = tuple([n for n in counts if n != 1] or counts)[:1]
    axes: dict[str, tuple[Any, str]] = {}
    if batch:
        axes["batch of a and b"] = (SimpleNamespace(shape=batch), "B")
    for name, words in _AXES.items():
        view = views.get(name)
        if view is None:
            continue
        more = bool(batch) and len(view.shape) == len(words.split()) + 1
        if more and name != "out" and view.shape[0] == 1:
            views[name] = view = view.first
            more = False
        axes[name] = (view, "B " + words if more or (batch and name == "out") else words)
    size = arguments.sizes("matmul", **axes)
    _check_dtypes(views)
    return (*batch, size["M"], size["N"])


def _check_dtypes(views: Mapping[str, View]) -> None:
    arguments.dtypes("matmul", DTYPES, a=views["a"], b=views["b"])
    others = {name: views.get(name) for name in ("out", "bias", "residual")}
    arguments.dtypes("matmul", arguments.FLOATS, **others)
    left, right = views["a"].dtype, views["b"].dtype
    together = product_of(left, right) is not None
    arguments.require(
        together, "matmul", f"`a` is {left} and `b` is {right}", hint="cast one of them"
    )


def result_dtype(dtype: Any) -> DType:
    """The element type of a result that is to be made; raises ShapeError T202, LaunchError H009."""
    made = memory.element_type(dtype)
    if made.name not in arguments.FLOATS:
        notes = ["possible here: " + ", ".join(arguments.FLOATS)]
        raise error(
            "T202",
            f"matmul: a result of {made}",
            notes=notes,
            hint="give an `out` of bf16, f16 or f32",
        )
    return made


def check_result(call: str, out: View, dtype: Any) -> None:
    """Raises ShapeError T202 where a result that is given has another type than is asked for."""
    wanted = result_dtype(dtype)
    if out.dtype != wanted:
        hint = "leave `dtype` out: the result has the type of `out`"
        raise error("T202", f"{call}: `out` is {out.dtype}, and `dtype` is {wanted}", hint=hint)


def scaled(name: str, scale: Any, extent: int) -> tuple[float, View | None]:
    """A factor of an operand: as a number, or as one for each of its `extent` rows or columns (of
    which there may be one, for all). The other is 1 or None.

    Raises ShapeError T201, T202.
    """
    if scale is None or isinstance(scale, int | float | np.number):
        return 1.0 if scale is None else float(scale), None
    if not getattr(scale, "shape", (1,)):
        scale = scale.reshape(1)
    view = arrays.read(scale, name)
    arguments.dtypes("matmul", ("f32",), **{name: view})
    along = [axis for axis, size in enumerate(view.shape) if size != 1]
    fits = not along or (len(along) == 1 and view.shape[along[0]] == extent)
    operand, axis = name[-1], "rows" if name == "scale_a" else "columns"
    arguments.require(
        fits,
        "matmul",
        f"`{name}` has the shape {list(view.shape)}, and `{operand}` has {extent} {axis}",
        hint=f"pass one f32 for each of the {axis}, or one for all",
    )
    return 1.0, view.repeated(along[0] if along else None, extent)


def result_of(a: DType) -> DType:
    """The element type of a result that nobody asked for: that of `a`, for 8-bit floats bf16."""
    return bf16 if a.is_f8 else a


def check_overlaps(views: Mapping[str, View]) -> None:
    """Blocks read operands and bias while others write; a residual is read by who writes there."""
    out = views["out"]
    for name in ("a", "b", "bias", "scale_a", "scale_b"):
        arguments.require(
            name not in views or not argument_class.shares_memory(views[name], out),
            "matmul",
            f"`out` overlaps `{name}`, which other blocks still read",
        )
    if "residual" in views:
        residual = views["residual"]
        alone = len(out.shape) > len(residual.shape) and out.shape[0] == 1
        arguments.in_place_or_apart("matmul", out.first if alone else out, residual=residual)


def fold(views: dict[str, View]) -> None:
    """Take an operand that is the same for a whole batch as one matrix, and the batch as rows of
    one product where `b` is the same and the rows follow each other evenly."""
    for name in ("a", "b"):
        if len(views[name].shape) == 3 and views[name].strides[0] == 0:
            views[name] = views[name].first
    if len(views["out"].shape) == 3 and views["out"].shape[0] == 1:
        views.update({name: v.first for name, v in views.items() if len(v.shape) == 3})
        if "bias" in views and len(views["bias"].shape) == 2:
            views["bias"] = views["bias"].first
    rows = [name for name in ("a", "out", "residual") if name in views]
    whole = all(len(views[name].shape) == 3 for name in rows)
    scale = views.get("scale_a")
    each = scale is not None and scale.strides[0] != 0  # row has a factor of its own
    if whole and not each and len(views["b"].shape) == 2 and not _in_batch(views.get("bias")):
        merged = {name: views[name].merged for name in rows}
        if all(merged.values()):
            views.update({name: view for name, view in merged.items() if view is not None})


def _in_batch(bias: View | None) -> bool:
    return bias is not None and len(bias.shape) == 2


def fast_axis(view: View) -> int:
    """The contiguous one of a matrix's axes: -2, -1, or 0 where there is none."""
    return _fast_axis(view.shape, view.strides)


@lru_cache(maxsize=4096)
def _fast_axis(shape: tuple[int, ...], given: tuple[int, ...]) -> int:
    found = argument_class.letters(argument_class.canonical_strides(shape, given)).find("1")
    axis = found - len(shape)
    return axis if found >= 0 and axis >= -2 else 0


def along_rows(view: View) -> bool:
    """Whether a matrix is contiguous along its first axis (a column of it is in one piece)."""
    return fast_axis(view) == -2


def obstacle(name: str, view: View) -> str:
    """Why the copy engine cannot move a matrix, and what to do; empty where it can."""
    return _obstacle(name, view.shape, view.strides, view.dtype.bytes, view.address % UNIT)


@lru_cache(maxsize=4096)
def _obstacle(
    name: str, shape: tuple[int, ...], given: tuple[int, ...], width: int, past: int
) -> str:
    if 0 in shape:
        return ""
    if past:
        return f"`{name}` starts {past} bytes past a multiple of {UNIT}: pass a copy of it"
    steps, fast = argument_class.canonical_strides(shape, given), _fast_axis(shape, given)
    if not fast:
        return f"no axis of `{name}` is contiguous (strides {steps}): pass a copy of it"
    for axis, (extent, step) in enumerate(zip(shape, steps, strict=True)):
        size = step * width
        if extent == 1 or axis - len(steps) == fast or not (size % UNIT or size < 0):
            continue
        what = f"`{name}` has a stride of {size} bytes along axis {axis}, "
        if size < 0:
            return what + "which is negative: pass a copy of it"
        longer = -(-size // UNIT) * UNIT // width
        return (
            what + f"no multiple of {UNIT}: "
            f"allocate that axis with a stride of {longer} elements and pass a view"
        )
    return ""


def order_obstacle(a: View, b: View) -> str:
    """Why the matrix unit cannot read operands as they lie; empty where it can."""
    can = product_of(a.dtype, b.dtype)
    assert can is not None
    if can.turned:
        return ""
    for name, view, along in (("a", a, along_rows(a)), ("b", b, not along_rows(b))):
        if along:
            other = "M" if name == "a" else "N"
            fix = "pass a copy of it" if name == "a" else "pass a copy as [N, K], transposed"
            kind = f"`{name}` of {view.dtype}"
            return f"{kind} is contiguous along {other}, and the unit reads it along K: {fix}"
    return ""


def row_obstacle(a: View) -> str:
    """Why rows of `a` could not always be copied by the engine, however many there are."""
    row = a.shape[-1] * a.dtype.bytes
    if along_rows(a) or row % UNIT == 0:
        return ""
    return f"rows of `a` have {row} bytes, no multiple of {UNIT}, and batch_invariant=True"


def needs_registers(views: Mapping[str, View]) -> bool:
    """Whether the result is written from registers: the engine cannot write it, or reads it."""
    out, residual = views["out"], views.get("residual")
    in_place = residual is not None and argument_class.shares_memory(out, residual)
    return in_place or bool(obstacle("out", out)) or fast_axis(out) != -1


def tell(why: str) -> None:
    """Say what makes a product slow: each kind of reason once, with the numbers of its first."""
    kind = re.sub(r"\d+", "#", why)
    if kind not in _told and not os.environ.get("WARPLOOM_QUIET"):
        _told.append(kind)
        print(f"warploom: matmul without the matrix unit: {why}", file=sys.stderr)
