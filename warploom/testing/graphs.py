"""Whether a launch may be recorded: its graph, replayed, sees what its arrays hold by then.

Compares one call with another of the same kernel; knows nothing of what the kernel computes.
"""

from typing import Any

import numpy as np

from warploom.runtime import driver, memory
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM, View
from warploom.runtime.graph import graph
from warploom.runtime.launch import Call


def check_graph(call_a: Call, call_b: Call) -> None:
    """Record `call_a`, replay it with the values of `call_b`, and compare with `call_b` run by
    itself, bit by bit, every array.

    Both run: their arrays change. They are calls of one kernel with the same numbers and constants,
    and arrays of the same shapes and dtypes that do not overlap each other. Raises ValueError where
    they are not, AssertionError with the first array that differs.
    """
    a, b = call_a.arguments, call_b.arguments
    _comparable(call_a, call_b, a, b)
    tensors = [i for i, value in enumerate(b.values) if isinstance(value, View)]
    before = {i: _values(b.values[i]) for i in tensors}
    call_b.run()
    recorded = graph(lambda: call_a.launcher(*call_a.args, **call_a.kwargs))
    for i in tensors:
        _write(a.values[i], before[i])
    recorded.replay()
    for i in tensors:
        made, expected = _values(a.values[i]), _values(b.values[i])
        wrong = np.argwhere(_bits(made) != _bits(expected))
        if len(wrong):
            place = tuple(int(n) for n in wrong[0])
            raise AssertionError(
                f"`{b.names[i]}` of `{call_b.kernel.name}`: {len(wrong)} elements of the replay "
                f"differ; at {place}: {made[place]}, by itself {expected[place]}"
            )


def _comparable(call_a: Call, call_b: Call, a: Arguments, b: Arguments) -> None:
    if call_a.kernel is not call_b.kernel or a.names != b.names or a.constants != b.constants:
        raise ValueError("these are not calls of one kernel with the same constants")
    for name, one, other in zip(a.names, a.values, b.values, strict=True):
        if not isinstance(one, View):
            if one != other:
                raise ValueError(f"`{name}` is {one} and {other}: a graph keeps its numbers")
        elif (one.shape, one.dtype, one.place) != (other.shape, other.dtype, other.place):
            raise ValueError(f"`{name}` has another shape, dtype or place in one of the calls")


def _values(view: View) -> np.ndarray:
    return np.array(memory.to_numpy(view), order="C", copy=True)


def _bits(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.dtype.itemsize}")


def _write(view: View, values: np.ndarray) -> None:
    """Put values into the memory of a view, which keeps its address."""
    if view.place == SIM:
        assert view.host is not None
        view.host[...] = values
        return
    low, high = view.extent_bytes()
    held: Any = np.empty(high - low, np.uint8)
    if held.size:
        driver.copy_out(view.device, low, held)
        strides = tuple(s * view.dtype.bytes for s in view.strides)
        seen = np.ndarray(view.shape, view.dtype.numpy, held.data, view.address - low, strides)
        seen[...] = values
        driver.copy_in(view.device, low, held)
