"""From the arguments of a call to what a launch needs: views, scalars, constants, a variant's key.

Knows the signature of a kernel and the rules for arguments, not what the kernel does with them:
which ones it writes is checked by `check_written`, when a variant exists.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.base.dtypes import BY_NAME, DType
from warploom.base.errors import Error, error
from warploom.frontend.signature import MISSING, Parameter, Signature
from warploom.ir.types import Scalar, Tensor
from warploom.runtime.argument_class import geometry, overlapping, shares_memory, tensor_type
from warploom.runtime.arrays import SIM, View, read

_LIMITS = {"i32": (-(1 << 31), (1 << 31) - 1), "i64": (-(1 << 63), (1 << 63) - 1)}
# What a variant's key holds for a scalar parameter, beside the class keys of tensors.
_SCALAR = "scalar"
# Above this number of elements a doubtful output is refused rather than enumerated.
_ENUMERATED = 1 << 22


@dataclass(slots=True)
class Arguments:
    """The arguments of one launch. `values`: views and numbers in the order of the IR's parameters.

    `strides` belongs to `values` (None for a scalar); `key` is equal for equal variants.
    """

    names: tuple[str, ...]
    values: list[Any]
    strides: list[tuple[int, ...] | None]
    classes: tuple[Any, ...]
    constants: dict[str, Any]
    key: tuple[Any, ...]
    place: str
    source: str

    def types(self) -> tuple[tuple[str, Tensor | Scalar], ...]:
        """Name and IR type of each parameter."""
        out: list[tuple[str, Tensor | Scalar]] = []
        for name, cls in zip(self.names, self.classes, strict=True):
            if cls[0] == _SCALAR:
                out.append((name, Scalar(BY_NAME[cls[1]])))
            else:
                out.append((name, tensor_type(cls)))
        return tuple(out)


def bind(
    kernel: str, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """Match the arguments of a call with the parameters; raises LaunchError naming the mistake."""
    parameters = signature.parameters
    given = _match(kernel, parameters, args, kwargs)
    names: list[str] = []
    values: list[Any] = []
    views: list[View] = []
    constants: dict[str, Any] = {}
    constant_key: list[Any] = []
    scalars: dict[int, str] = {}
    for parameter, value in zip(parameters, given, strict=True):
        name = parameter.name
        if parameter.kind == "const":
            constants[name] = value
            constant_key.append(_constant_key(name, value))
            continue
        if value is None and parameter.default is None:
            constants[name] = None
            constant_key.append((None, name))  # by name: others may be there in its place
            continue
        if parameter.kind == "tensor":
            value = read(value, name)
            views.append(value)
        else:
            assert parameter.dtype is not None
            scalars[len(values)] = parameter.dtype.name
            value = scalar(value, name, parameter.dtype)
        names.append(name)
        values.append(value)
    place, source = _place(names, values)
    shared = overlapping(views)
    classes: list[Any] = []
    strides: list[tuple[int, ...] | None] = []
    count = 0
    for index, value in enumerate(values):
        if index in scalars:
            classes.append((_SCALAR, scalars[index]))
            strides.append(None)
        else:
            found = geometry(value)
            classes.append(found.aliased if count in shared else found.plain)
            strides.append(found.strides)
            count += 1
    held = tuple(classes)
    key = (held, tuple(constant_key))
    return Arguments(tuple(names), values, strides, held, constants, key, place, source)


def _match(
    kernel: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """One value a parameter, in order."""
    if len(args) > len(parameters):
        names = ", ".join(p.name for p in parameters)
        text = f"`{kernel}` takes {len(parameters)} arguments, and {len(args)} were given"
        raise error("H017", text, notes=(f"parameters: {names}",))
    given = list(args)
    used = 0
    for parameter in parameters[len(args) :]:
        value = kwargs.get(parameter.name, MISSING)
        if value is not MISSING:
            used += 1
        else:
            value = parameter.default
        given.append(value)
    if used != len(kwargs):
        raise _unknown(kernel, parameters, len(args), kwargs)
    if any(value is MISSING for value in given):
        raise _absent(kernel, parameters, given, kwargs)
    return given


def _unknown(
    kernel: str, parameters: tuple[Parameter, ...], positional: int, kwargs: Mapping[str, Any]
) -> Error:
    names = [p.name for p in parameters]
    for name in kwargs:
        if name in names[:positional]:
            return error(
                "H027",
                f"`{name}` of `{kernel}` is given by position and by name",
                hint="give it once",
            )
    name = next(n for n in kwargs if n not in names)
    # Two letters of which one is wrong are near enough, where that parameter was not given.
    absent = [n for n in names[positional:] if n not in kwargs]
    near = [n for n in names if n.lower() == name.lower()]
    near = near or difflib.get_close_matches(name, absent, n=1, cutoff=0.5)
    if name in ("warps", "stream", "cluster", "cooperative", "pdl", "grid"):
        hint = f"launch options go to `{kernel}.launch(grid, {name}=…)`"
        if name == "grid":
            hint = f"the grid goes into brackets: `{kernel}[grid](…)`"
    elif name == "num_warps":
        hint = f"launch options go to `{kernel}.launch(grid, warps=…)`"
    elif name in ("num_stages", "num_ctas"):
        hint = "there is no such option: leave it out"
    elif near:
        hint = f"did you mean `{near[0]}`?"
    else:
        hint = "leave it out, or give it under the name of a parameter"
    notes = (f"parameters: {', '.join(names)}",)
    return error("H012", f"`{kernel}` has no parameter `{name}`", notes=notes, hint=hint)


def _absent(
    kernel: str, parameters: tuple[Parameter, ...], given: list[Any], kwargs: Mapping[str, Any]
) -> Error:
    absent = [p for p, value in zip(parameters, given, strict=True) if value is MISSING]
    constants = [p.name for p in absent if p.kind == "const"]
    if constants:
        names = ", ".join(f"`{n}`" for n in constants)
        hint = "constants are given by name: " + ", ".join(f"{n}=…" for n in constants)
        return error("H011", f"constant {names} of `{kernel}` is missing", hint=hint)
    names = ", ".join(f"`{p.name}`" for p in absent)
    call = ", ".join(p.name if p.kind != "const" else f"{p.name}=…" for p in parameters)
    hint = f"{kernel}[grid]({call})"
    return error("H018", f"argument {names} of `{kernel}` is missing", hint=hint)


def _place(names: Iterable[str], values: Iterable[Any]) -> tuple[str, str]:
    """Where the tensors live, and whose stream orders the launch."""
    place, source = "", ""
    for value in values:
        if isinstance(value, View):
            if place and value.place != place:
                raise _several_places(names, values)
            place = value.place
            source = source or value.source
    return place or SIM, source


def _several_places(names: Iterable[str], values: Iterable[Any]) -> Error:
    pairs = zip(names, values, strict=True)
    notes = tuple(f"`{n}`: {where(v.place)}" for n, v in pairs if isinstance(v, View))
    hint = "wl.to_device(x) copies a host array to the GPU, wl.to_numpy(x) brings one back"
    text = "the arguments live on several devices"
    return error("H014", text, notes=notes, hint=hint)


def where(place: str) -> str:
    """A place in words."""
    return "host memory (runs on the simulator)" if place == SIM else f"GPU {place[4:]}"


def scalar(value: Any, name: str, dtype: DType) -> int | float | bool:
    """A scalar argument as a Python number; raises LaunchError where it does not fit its type."""
    if isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__dlpack__"):
        hint = f"pass {name}.item(), or declare the parameter `wl.Tensor` and load it in the kernel"
        raise error("H003", f"`{name}` is a scalar ({dtype}), and an array was given", hint=hint)
    if dtype.is_float:
        if isinstance(value, (int, float, np.integer, np.floating)):
            return _float(value, name, dtype)
    elif dtype.is_bool:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
    elif not isinstance(value, (bool, np.bool_)):
        try:
            return _integer(operator.index(value), name, dtype)
        except TypeError:
            pass
    kind = type(value).__name__
    what = "True or False" if dtype.is_bool else "a real number" if dtype.is_float else ""
    hint = f"give {what or 'a whole number'}"
    text = f"`{name}` is a scalar of type {dtype}, and {value!r} ({kind}) was given"
    raise error("H003", text[:300], hint=hint)


def _integer(value: int, name: str, dtype: DType) -> int:
    low, high = _LIMITS.get(dtype.name, (0, 0))
    if not low <= value <= high:
        wider = dtype.name == "i32" and value.bit_length() < 64
        hint = "declare the parameter `wl.i64`" if wider else "give a number in these bounds"
        raise error("H019", f"`{name}` = {value} does not fit {dtype} ({low} … {high})", hint=hint)
    return value


def _float(value: Any, name: str, dtype: DType) -> float:
    try:
        number = float(value)
    except OverflowError:
        shown = f"a number of {int(value).bit_length():,} bits"
        hint = "give one that a float can hold"
        raise error("H019", f"`{name}`: {shown} does not fit {dtype}", hint=hint) from None
    if dtype.bits == 32 and abs(number) > 3.4028235677973366e38 and abs(number) != float("inf"):
        raise error(
            "H019",
            f"`{name}` = {number} does not fit {dtype} (largest: 3.4028235e38)",
            hint="declare the parameter `wl.f64`",
        )
    return number


def _constant_key(name: str, value: Any) -> Any:
    try:
        key = constant_key(value)
        hash(key)
    except TypeError:
        kind = type(value).__name__
        hint = (
            "use a tuple" if isinstance(value, (list, set)) else "pass it as a tensor or a scalar"
        )
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
            hint = "an array is an argument: declare the parameter `wl.Tensor`"
        text = f"constant `{name}` cannot be hashed ({kind})"
        raise error("H013", text, hint=hint) from None
    return key


def constant_key(value: Any) -> Any:
    """A hashable that is equal only for constants that mean the same: 1, 1.0 and True differ."""
    cls = type(value)
    if cls is tuple:
        return cls, tuple(constant_key(v) for v in value)
    if cls is float:
        return cls, value.hex()
    return cls, value


def check_written(kernel: str, arguments: Arguments, written: Iterable[int]) -> None:
    """Refuse outputs that cannot be written, or whose elements share places in memory."""
    for index in written:
        view: View = arguments.values[index]
        name = arguments.names[index]
        if not view.writable:
            hint = "np.array(x) makes a copy that can be written"
            text = f"`{kernel}` stores to `{name}`, which is read-only"
            raise error("H005", text, hint=hint)
        if _overlaps_itself(view.shape, view.strides):
            facts = f"shape {view.shape}, strides {view.strides} in elements"
            hint = "allocate the output; an expanded (broadcast) view cannot hold results"
            text = f"`{kernel}` stores to `{name}`, but several of its elements share one place"
            raise error("H006", text, notes=(facts,), hint=hint)


def forbid_overlap(call: str, out: tuple[str, Any], **inputs: Any) -> None:
    """For library calls whose blocks read what other blocks write: refuse shared memory (H007).

    `out` is name and array of a result; None among the inputs stands for one that was left out.
    """
    name, array = out
    result = read(array, name)
    for other, value in inputs.items():
        if value is not None and shares_memory(result, read(value, other)):
            text = f"{call}: `{name}` shares memory with `{other}`"
            hint = f"give `{name}` memory of its own: blocks would read what others have written"
            raise error("H007", text, hint=hint)


def _overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return False
    reach = 0
    for step, extent in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if step <= reach:
            break
        reach += step * (extent - 1)
    else:
        return False
    # Interleaved axes may still miss each other: count the places.
    if any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)):
        return True
    total = int(np.prod(shape, dtype=np.int64))
    if total > _ENUMERATED:
        return True
    places = np.zeros((1,) * len(shape), np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        column = [1] * len(shape)
        column[axis] = extent
        places = places + (np.arange(extent, dtype=np.int64) * stride).reshape(column)
    return np.unique(places).size < total
