"""Torch tensors for tests: views with any stride, their way back to NumPy, custom operations.

The only module of `testing` that knows torch, and it imports it when called: the plug-in loads
where torch is absent.
"""

from typing import Any

import ml_dtypes
import numpy as np


def _torch() -> Any:
    """The module torch, imported at the first call."""
    import torch

    return torch


def torch_dtype(dtype: np.dtype) -> Any:
    """The torch type of a NumPy or ml_dtypes type."""
    return getattr(_torch(), dtype.name)


def strided(
    memory: np.ndarray,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    offset: int,
    place: str = "cuda",
) -> Any:
    """A tensor over a copy of `memory` (bytes); strides and offset in bytes, none negative."""
    if any(stride < 0 for stride in strides):
        raise ValueError("torch has no negative strides")
    size = dtype.itemsize
    if memory.size == 0:
        memory = np.zeros(size, np.uint8)  # torch sees no other type in a tensor without bytes
    flat = _torch().from_numpy(memory.copy()).to(place).view(torch_dtype(dtype))
    return flat.as_strided(shape, [stride // size for stride in strides], offset // size)


def to_numpy(tensor: Any) -> np.ndarray:
    """The values of a tensor in NumPy, types that it lacks as those of ml_dtypes."""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16":
        return tensor.view(_torch().int16).numpy().view(ml_dtypes.bfloat16)
    if name.startswith("float8"):
        return tensor.view(_torch().uint8).numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()


def check_torch_op(operation: Any, *args: Any, **kwargs: Any) -> None:
    """Check a custom operation on these arguments: schema and fake by torch's own checks; compiled
    whole, with fixed and with dynamic sizes, it gives the bits of a call; on a GPU so does its CUDA
    graph when the arguments hold other values than at the recording.

    `operation`: an overload, `torch.ops.warploom.matmul.default`. Arguments that the operation
    writes are compared like results; those given here are not touched. Raises AssertionError, or
    what torch's checks raise.
    """
    torch = _torch()
    torch.library.opcheck(operation, _fresh(args), _fresh(kwargs))
    expected = _outcome(operation, args, kwargs)
    on_gpu = any(t.is_cuda for t in _tensors((args, kwargs)))
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(
            lambda *a, **k: operation(*a, **k),
            fullgraph=True,
            dynamic=dynamic,
            backend="inductor" if on_gpu else "aot_eager",
        )
        _same(_outcome(compiled, args, kwargs), expected, f"compiled, dynamic={dynamic}")
    if on_gpu:
        _same(_replayed(operation, args, kwargs), expected, "in a CUDA graph")


def _tensors(values: Any) -> list[Any]:
    return [t for t in _torch().utils._pytree.tree_leaves(values) if hasattr(t, "data_ptr")]


def _fresh(values: Any) -> Any:
    """The same arguments with tensors of their own, strides kept."""
    torch = _torch()

    def copy(value: Any) -> Any:
        if not hasattr(value, "data_ptr"):
            return value
        made = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )
        return made.copy_(value)

    return torch.utils._pytree.tree_map(copy, values)


def _outcome(function: Any, args: Any, kwargs: Any) -> list[Any]:
    """What a call returns and what its arguments hold after it."""
    a, k = _fresh(args), _fresh(kwargs)
    returned = function(*a, **k)
    return [t.clone() for t in _tensors((returned, a, k))]


def _replayed(operation: Any, args: Any, kwargs: Any) -> list[Any]:
    """The outcome of a graph that was recorded while the floats among the arguments were other."""
    torch = _torch()
    a, k = _fresh(args), _fresh(kwargs)
    given = _tensors((a, k))
    for tensor in given:
        if tensor.is_floating_point():
            tensor.neg_()
    operation(*a, **k)  # compiled before it is recorded
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        returned = operation(*a, **k)
    for tensor, value in zip(given, _tensors((args, kwargs)), strict=True):
        tensor.copy_(value)
    graph.replay()
    torch.cuda.synchronize()
    return [t.clone() for t in _tensors((returned, a, k))]


def _same(made: list[Any], expected: list[Any], how: str) -> None:
    """Equal bits, NaN included, equal shapes, strides and dtypes."""
    torch = _torch()
    assert len(made) == len(expected), f"{how}: {len(made)} tensors, {len(expected)} by itself"
    for number, (one, other) in enumerate(zip(made, expected, strict=True)):
        assert (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype), (
            f"{how}: tensor {number} has another shape, dtype or other strides"
        )
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[one.itemsize]
        differ = int((one.view(width) != other.view(width)).sum())
        assert not differ, f"{how}: {differ} elements of tensor {number} differ"
