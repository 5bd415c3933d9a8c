"""What public calls check about their arrays before a launch, in the caller's words.

Reads shapes and dtypes only, never memory. Scratch arrays are made here too, before any launch.
"""

from typing import Any

import numpy as np

from warploom.base.dtypes import BY_NAME
from warploom.base.errors import error
from warploom.runtime import arrays, driver, memory
from warploom.runtime.arguments import forbid_overlap
from warploom.runtime.arrays import View

FLOATS = ("f32", "f16", "bf16")
_SIMULATED_SMS = 132  # an H200 stands for the simulator
_SHORT = {dtype.numpy.name: dtype.name for dtype in BY_NAME.values()}


def dtype_name(array: Any) -> str:
    """The dtype of a NumPy, torch or device array in the language's spelling, e.g. `bf16`."""
    name = str(array.dtype).rpartition(".")[2]
    return _SHORT.get(name, name)


def sizes(call: str, **arrays: tuple[Any, str]) -> dict[str, int]:
    """Match arrays against named axes: `sizes("linear", x=(x, "T K"), w=(w, "N K"))["K"]`.

    The first array with an axis fixes its size. None stands for an argument that was left out.
    Raises ShapeError T201 where an array has another rank or another size.
    """
    known: dict[str, int] = {}
    source: dict[str, str] = {}
    for name, (array, axes) in arrays.items():
        if array is None:
            continue
        shape, words = tuple(array.shape), axes.split()
        wanted = f"[{', '.join(words)}]"
        if len(shape) != len(words):
            raise error(
                "T201",
                f"{call}: `{name}` has {len(shape)} axes where {wanted} is expected",
                notes=[f"shape of `{name}`: {list(shape)}"],
            )
        for axis, (word, size) in enumerate(zip(words, shape, strict=True)):
            if known.setdefault(word, size) != size:
                raise error(
                    "T201",
                    f"{call}: axis {axis} of `{name}` is {size}, and {word} is {known[word]}",
                    notes=[
                        f"shape of `{name}`: {list(shape)}, expected {wanted}",
                        f"{word} = {known[word]} comes from `{source[word]}`",
                    ],
                )
            source.setdefault(word, name)
    return known


def dtypes(call: str, allowed: tuple[str, ...], **arrays: Any) -> None:
    """Raises ShapeError T202 where an array that is given has none of the allowed dtypes."""
    for name, array in arrays.items():
        if array is not None and dtype_name(array) not in allowed:
            raise error(
                "T202",
                f"{call}: `{name}` is {dtype_name(array)}",
                notes=["possible here: " + ", ".join(allowed)],
            )


def require(holds: bool, call: str, message: str, *notes: str, hint: str = "") -> None:
    """Raises ShapeError T201, the numbers in `notes`, where a relation of sizes does not hold."""
    if not holds:
        raise error("T201", f"{call}: {message}", notes=notes, hint=hint)


def number(call: str, name: str, given: Any) -> float:
    """A factor as Python's float; raises LaunchError H021 for what is no number."""
    if isinstance(given, int | float | np.integer | np.floating):
        return float(given)
    hint = "give a number, such as 0.5; an array of one element has `.item()`"
    raise error("H021", f"{call}: `{name}` is {_shown(given)}, and no number", hint=hint)


def _shown(given: Any) -> str:
    """A value in a message; of an array its type only."""
    return repr(given) if isinstance(given, str | None) else f"a {type(given).__name__}"


def apart(call: str, out: Any, **inputs: Any) -> None:
    """Raises LaunchError H007 where `out` shares memory with an input that other blocks read."""
    forbid_overlap(call, ("out", out), **inputs)


def in_place_or_apart(call: str, out: Any, **inputs: Any) -> None:
    """Raises LaunchError H007 where `out` shares memory with an input without being that input.

    For kernels whose threads write exactly what they have read.
    """
    result = _place_of(out)
    apart(call, out, **{name: a for name, a in inputs.items() if _place_of(a) != result})


def _place_of(array: Any) -> tuple[Any, ...] | None:
    if array is None:
        return None
    view = arrays.read(array, "array")
    return view.address, view.place, view.dtype, view.shape, view.strides


def ceil_div(a: int, b: int) -> int:
    """The number of pieces of size `b` that cover `a`."""
    return -(-a // b)


def scratch(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    """A new array where `like` lives, with whatever its memory held: NumPy's, or on the GPU."""
    view = arrays.read(like, "like")
    element = BY_NAME[dtype]
    if view.place == arrays.SIM:
        return np.empty(shape, element.numpy)
    return memory.device_empty(shape, element, view.device)


def multiprocessors(view: View) -> int:
    """SMs of the device that an array lives on."""
    on_sim = view.place == arrays.SIM
    return _SIMULATED_SMS if on_sim else driver.facts(view.device).multiprocessors
