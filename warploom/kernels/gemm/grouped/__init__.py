"""Products of different sizes in one launch, such as the experts of a mixture and their
gradients."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from warploom.interop.operators import Operator, Result, declare
from warploom.kernels import arguments
from warploom.kernels.gemm import config, operands
from warploom.kernels.gemm.grouped import kernel
from warploom.runtime import argument_class, arrays, memory
from warploom.runtime.arrays import View

_CALL = "grouped_matmul"
# With so few rows a group or less, tiles of 64 rows waste less than they cost.
_FEW = 96
# The axes of `a`, `b` and `out` by the form of the call.
_ROWS = {"a": "T K", "b": "G K N", "out": "T N"}
_COLUMNS = {"a": "G M K", "b": "K T", "out": "M T"}
_DEPTH = {"a": "M T", "b": "T N", "out": "G M N"}


def grouped_matmul(a: Any, b: Any, offsets: Any, out: Any = None, *, dtype: Any = None) -> Any:
    """One product a group, where `offsets` [G + 1] i32 says which part of an axis belongs to it.

    Three forms, by the axes of `a` and `b`:
    a [T, K], b [G, K, N]: rows from offsets[g] to offsets[g + 1] of `out` [T, N] are those of
    a · b[g]; rows of no group stay as they are.
    a [G, M, K], b [K, T]: the same for columns of `out` [M, T].
    a [M, T], b [T, N]: out[g] of [G, M, N] is the product over that part of the axis T; an empty
    group gives zeros.

    a, b: both f16 or both bf16, each contiguous along one of its last two axes, with addresses and
    other strides that are multiples of 16 bytes. `out`: f16, bf16 or f32, made where it is not
    given, of `dtype` (by default that of `a`). `offsets` ascend from 0 or more to T or less; only
    the simulator looks at them before the launch. Products and sums are f32, with one cast at the
    end; the result is the same from run to run. Returns `out`. Raises ShapeError T201 (sizes,
    strides, offsets), T202 (dtypes).
    """
    views = {name: arrays.read(x, name) for name, x in (("a", a), ("b", b), ("offsets", offsets))}
    form = _form(views)
    if out is None:
        shape, element = _result({**views, "dtype": dtype})
        out = memory.empty_like(a, shape, element)
    views["out"] = arrays.read(out, "out")
    if dtype is not None:
        operands.check_result(_CALL, views["out"], dtype)
    size = _sizes(views, form)
    _check(views, size)
    if form is _COLUMNS:
        # outᵀ = bᵀ · aᵀ, group by group: columns become rows.
        turned = {"a": views["b"].turned, "b": views["a"].turned, "out": views["out"].turned}
        views = {**views, **turned}
    if size["G"] and 0 not in views["out"].shape:
        (_depth if form is _DEPTH else _rows)(views, size["G"])
    return out


def _form(views: Mapping[str, Any]) -> Mapping[str, str]:
    """Which form the axes of `a` and `b` ask for."""
    axes = len(views["a"].shape), len(views["b"].shape)
    forms = {(2, 3): _ROWS, (3, 2): _COLUMNS, (2, 2): _DEPTH}
    arguments.require(
        axes in forms and len(views["offsets"].shape) == 1 and views["offsets"].shape[0] > 0,
        _CALL,
        f"`a`, `b` and `offsets` have {axes[0]}, {axes[1]} and {len(views['offsets'].shape)} axes",
        hint="`a` and `b` have 2 and 3 axes, 3 and 2, or 2 and 2; `offsets` has G + 1 elements",
    )
    return forms[axes]


def _sizes(views: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, int]:
    """The sizes by name; raises T201 where they do not fit."""
    groups = SimpleNamespace(shape=(views["offsets"].shape[0] - 1,))
    axes = {name: (views[name], form[name]) for name in ("a", "b", "out") if name in views}
    return arguments.sizes(_CALL, **axes, **{"offsets without the last": (groups, "G")})


def _result(given: Mapping[str, Any]) -> Result:
    """Shape and element type of a result without `out`."""
    form, dtype = _form(given), given.get("dtype")
    size = _sizes({name: given[name] for name in ("a", "b", "offsets")}, form)
    element = given["a"].dtype if dtype is None else operands.result_dtype(dtype)
    return tuple(size[word] for word in form["out"].split()), element


def _check(views: Mapping[str, View], size: Mapping[str, int]) -> None:
    """Dtypes, overlaps, what the copy engine asks for, and offsets where they can be read."""
    a, b, out, offsets = (views[name] for name in ("a", "b", "out", "offsets"))
    arguments.dtypes(_CALL, ("f16", "bf16"), a=a, b=b)
    arguments.dtypes(_CALL, arguments.FLOATS, out=out)
    arguments.dtypes(_CALL, ("i32",), offsets=offsets)
    arguments.require(
        a.dtype == b.dtype, _CALL, f"`a` is {a.dtype} and `b` is {b.dtype}", hint="cast one of them"
    )
    for name in ("a", "b", "offsets"):
        shared = argument_class.shares_memory(views[name], out)
        arguments.require(
            not shared, _CALL, f"`out` overlaps `{name}`, which other blocks still read"
        )
    for name in ("a", "b"):
        why = operands.obstacle(name, views[name])
        arguments.require(not why, _CALL, f"the copy engine cannot read `{name}`", why)
    if offsets.host is not None:
        held = np.asarray(offsets.host).astype(np.int64)
        ascending = (np.diff(held) >= 0).all() and held[0] >= 0 and held[-1] <= size["T"]
        arguments.require(
            bool(ascending),
            _CALL,
            f"`offsets` do not ascend from 0 to at most T = {size['T']}",
            f"they are {held[:8].tolist()}{' …' if len(held) > 8 else ''}",
        )


def _rows(views: Mapping[str, View], groups: int) -> None:
    """Groups of rows, each with a matrix of its own."""
    a, b, out = views["a"], views["b"], views["out"]
    (rows, columns), wide = out.shape, 64 * arguments.ceil_div(out.shape[1], 64)
    few = rows <= _FEW * groups
    chosen = config.fitted(64 if few else 128, min(256, wide), 1 if few else 2, out.dtype.bytes)
    most = (arguments.ceil_div(rows, chosen.BM) + groups) * arguments.ceil_div(columns, chosen.BN)
    kernel.grouped_rows.launch(min(arguments.multiprocessors(a), most))(
        *(a, b, out, views["offsets"]),
        **_constants(chosen, views, "MATH"),
    )


def _depth(views: Mapping[str, View], groups: int) -> None:
    """Groups of the K axis."""
    a, out = views["a"], views["out"]
    _, rows, columns = out.shape
    wide = min(128, 64 * arguments.ceil_div(columns, 64))
    chosen = config.fitted(64 if rows <= 64 else 128, wide, 1, out.dtype.bytes)
    most = groups * arguments.ceil_div(rows, chosen.BM) * arguments.ceil_div(columns, chosen.BN)
    kernel.grouped_depth.launch(min(arguments.multiprocessors(a), most))(
        *(a, views["b"], out, views["offsets"]),
        **_constants(chosen, views, "GROUP"),
    )


def _constants(chosen: config.Config, views: Mapping[str, View], *more: str) -> dict[str, Any]:
    names = ("BM", "BN", "BK", "EN", "STAGES", *more)
    out = views["out"]
    return {
        **{name: getattr(chosen, name) for name in names},
        "A_T": operands.along_rows(views["a"]),
        "B_T": operands.along_rows(views["b"]),
        "DIRECT": bool(operands.obstacle("out", out)) or operands.fast_axis(out) != -1,
    }


declare(
    Operator(
        "grouped_matmul",
        grouped_matmul,
        ("Tensor a", "Tensor b", "Tensor offsets", "ScalarType? dtype=None"),
        (kernel.grouped_rows, kernel.grouped_depth),
        _result,
        {"c": "out"},
    )
)
