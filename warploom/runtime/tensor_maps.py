"""Descriptors of the tensor copy engine: which arguments can have one, and their 128 bytes.

Both devices refuse the same arguments. Knows the rules of the engine, not what a kernel copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.base.errors import Error, error
from warploom.ir.kernel import TensorMap
from warploom.runtime import driver
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import View

BYTES = 128
_UNIT = 16  # bytes: of addresses, strides and rows of a box
_MOST_AXES = 5
_LONGEST_BOX = 256
# Where nothing is: a copy of a box of an empty tensor faults instead of reading a neighbour.
_NOWHERE = 16
_MOST_KEPT = 1024

_kept: dict[tuple[object, ...], bytes] = {}


def check(maps: Sequence[TensorMap], arguments: Arguments) -> None:
    """Raise LaunchError (H029) where an argument cannot be copied by the engine."""
    for made in maps:
        _check(made, *_argument(made, arguments))


def encoded(maps: Sequence[TensorMap], arguments: Arguments) -> list[bytes]:
    """The descriptors of a launch; raises LaunchError (H029) as `check` does."""
    out = []
    for made in maps:
        name, view, strides = _argument(made, arguments)
        key = (made, view.dtype.name, view.address, view.shape, strides)
        found = _kept.get(key)
        if found is None:
            _check(made, name, view, strides)
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            found = _kept[key] = _encode(made, view, strides)
        out.append(found)
    return out


def _argument(made: TensorMap, arguments: Arguments) -> tuple[str, View, tuple[int, ...]]:
    strides = arguments.strides[made.param]
    assert strides is not None
    return arguments.names[made.param], arguments.values[made.param], strides


def _encode(made: TensorMap, view: View, strides: tuple[int, ...]) -> bytes:
    if made.blank:
        return _encode_blank(made, view)
    empty = 0 in view.shape
    extents = [max(view.shape[axis], 1) for axis in made.axes]
    steps = []
    for axis in made.axes[1:]:
        # The stride of an axis without a second element moves nothing, but must be legal.
        counts = view.shape[axis] > 1 and not empty
        steps.append(strides[axis] * view.dtype.bytes if counts else _UNIT)
    address = _NOWHERE if empty else view.address
    return driver.encode_tensor_map(
        view.dtype.name, address, extents, steps, made.box, made.swizzle, made.nan
    )


def _encode_blank(made: TensorMap, view: View) -> bytes:
    """One box at no address, legal as it is: the kernel puts in address, extents and strides."""
    steps, step = [], made.box[0] * view.dtype.bytes
    for count in made.box[1:]:
        steps.append(step)
        step *= count
    return driver.encode_tensor_map(
        view.dtype.name, _NOWHERE, made.box, steps, made.box, made.swizzle, made.nan
    )


def _check(made: TensorMap, name: str, view: View, strides: tuple[int, ...]) -> None:
    size = view.dtype.bytes
    row = made.box[0] * size
    if len(made.axes) > _MOST_AXES:
        raise _refused(name, f"{len(made.axes)} axes, and the engine copies up to {_MOST_AXES}")
    if max(made.box) > _LONGEST_BOX:
        raise _refused(name, f"a box of {max(made.box)} elements along an axis: at most 256")
    if row % _UNIT:
        raise _refused(name, f"a box with rows of {row} bytes, no multiple of {_UNIT}")
    if made.swizzle and row > made.swizzle:
        raise _refused(name, f"a box with rows of {row} bytes under a swizzle of {made.swizzle}")
    if made.blank:
        return
    if 0 in view.shape:
        return
    if view.address % _UNIT:
        raise _refused(
            name,
            f"the address of its first element is {view.address % _UNIT} bytes past a multiple of "
            f"{_UNIT}",
            "let a view start at a multiple of 16 bytes, or copy it: np.array(x), x.clone()",
        )
    for axis in made.axes[1:]:
        step = strides[axis] * size
        if view.shape[axis] > 1 and (step % _UNIT or step < 0):
            what = "negative" if step < 0 else f"no multiple of {_UNIT}"
            longer = -(-abs(step) // _UNIT) * _UNIT // size
            hint = f"allocate axis {axis} with a stride of {longer} elements and pass a view of it"
            if step < 0:
                hint = "copy the array: np.array(x), x.clone()"
            raise _refused(name, f"stride {step} bytes is {what} (axis {axis})", hint)


def _refused(name: str, what: str, hint: str = "") -> Error:
    hint = hint or "load through registers with `wl.load`, which takes any layout"
    notes = ("the kernel moves it with the tensor copy engine (wl.copy_async)",)
    return error("H029", f"tensor {name}: {what}", notes=notes, hint=hint)
