"""Torch tensors for tests: views with any stride, and their way back to NumPy.

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
    """The values of a tensor in NumPy, bf16 as ml_dtypes.bfloat16."""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16":
        return tensor.view(_torch().int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
