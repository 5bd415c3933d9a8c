"""Atomic operations on global memory: each element is changed in one step, and gives what was
there."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.ops import tile as tiles
from warploom.ir.ops.global_memory import ATOMIC_DTYPES, ORDERS
from warploom.ir.ops.sync import SCOPES
from warploom.language.context import Refused, builder, current, vocabulary
from warploom.language.tensor import need_window, stored
from warploom.language.values import Arithmetic, Scalar, Tile, Window


def _atomic(
    name: str,
    kind: str,
    window: Window,
    value: Arithmetic,
    order: str,
    scope: str,
    expected: Arithmetic | None = None,
) -> Any:
    """Emit one; gives what was there, a scalar for a window of integers only."""
    place = need_window(window, "window", name)
    dtype = place.tensor.dtype
    _check_dtype(name, kind, dtype)
    for what, word, words in (("order", order, ORDERS), ("scope", scope, SCOPES)):
        if word not in words:
            shown = ", ".join(f'"{w}"' for w in words)
            raise Refused("T015", f"`{what}` is {shown}, not {word!r}", argument=what)
    made = tiles.Atomic(
        tensor=place.tensor.value,
        value=stored(place, value, "value", "given"),
        starts=place.starts,
        expected=None if expected is None else stored(place, expected, "expected", "compared"),
        sizes=place.sizes,
        kind=kind,
        order=order,
        scope=scope,
    )
    old = builder().emit(made, "old")
    current().written.add(place.tensor.param)
    if place.shape:
        return Tile(old)
    return Scalar(builder().emit(tiles.ToScalar(value=old), "old"))


def _check_dtype(name: str, kind: str, dtype: DType) -> None:
    if dtype in ATOMIC_DTYPES and not (dtype.is_float and kind not in ("add", "exchange")):
        return
    words = ", ".join(f"wl.{t}" for t in ATOMIC_DTYPES if not t.is_float or kind == "add")
    raise Refused(
        "T004",
        f"`{name}` is not defined for {dtype}",
        argument="window",
        label=f"a tensor of {dtype}",
        notes=("the memory system changes words of 4 and 8 bytes; it adds and exchanges f32",),
        hint=f"use a tensor of {words}",
    )


@vocabulary
def atomic_add(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Add to each element of a window in one step; gives what was there. i32, i64 (wrapping), f32
    (denormals count as zero, and the order of several sums differs from run to run).

    `order` "release" publishes what the role did before to those that acquire the element, with
    "acquire" the role sees what those did that released it, "acq_rel" is both; `scope` is "block",
    "cluster", "gpu" or "system".

    Shapes: as `wl.store`; the result has the shape of the window, integers only give a scalar. What
    lies outside the tensor is left alone, and gives 0.
    Executes: the role, each element once; all its threads know the result.
    Since: sm_80.
    PTX: atom.add, red.add where nobody asks for the result; bar.sync before a release.
    """
    return _atomic("atomic_add", "add", window, value, order, scope)


@vocabulary
def atomic_max(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Replace each element by the larger one; gives what was there (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.max, red.max.
    """
    return _atomic("atomic_max", "max", window, value, order, scope)


@vocabulary
def atomic_min(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Replace each element by the smaller one; gives what was there (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.min, red.min.
    """
    return _atomic("atomic_min", "min", window, value, order, scope)


@vocabulary
def atomic_and(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Clear the bits that `value` lacks; gives what was there (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.and, red.and.
    """
    return _atomic("atomic_and", "and", window, value, order, scope)


@vocabulary
def atomic_or(window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu") -> Any:
    """Set the bits of `value`; gives what was there (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.or, red.or.
    """
    return _atomic("atomic_or", "or", window, value, order, scope)


@vocabulary
def atomic_xor(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Flip the bits of `value`; gives what was there (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.xor, red.xor.
    """
    return _atomic("atomic_xor", "xor", window, value, order, scope)


@vocabulary
def atomic_exchange(
    window: Window, value: Arithmetic, order: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Store and give what was there, in one step (see `atomic_add`). i32, i64, f32.

    Shapes: as `atomic_add`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.exch.
    """
    return _atomic("atomic_exchange", "exchange", window, value, order, scope)


@vocabulary
def atomic_cas(
    window: Window,
    expected: Arithmetic,
    value: Arithmetic,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Store `value` in each element that is `expected`; gives what was there: where that is
    `expected`, the element was changed (see `atomic_add`). i32, i64.

    Shapes: as `atomic_add`, `expected` as `value`.
    Executes: as `atomic_add`.
    Since: sm_80.
    PTX: atom.cas.
    """
    return _atomic("atomic_cas", "cas", window, value, order, scope, expected)
