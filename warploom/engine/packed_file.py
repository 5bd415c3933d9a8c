"""A file of weights in the order of the token kernel: written once, mapped into memory after that.

Eight bytes of magic, eight of the length of a JSON header, the header, then arrays, each at a
multiple of 4096 bytes. The header says for which plan they were packed. Knows no model files.
"""

import json
import os
import struct
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from warploom.engine.place import Place
from warploom.engine.refusal import refuse
from warploom.engine.token_runner import Packed
from warploom.engine.weights import DTYPES
from warploom.kernels import token

MAGIC = b"WLPACKED"
SCHEMA = 1
_ALIGNED = 4096
_ARRAYS = ("packed", "embedding", "norms", "frequencies")
_OPTIONAL = ("q_norm", "k_norm", "qkv_bias", "out_bias", "up_bias", "down_bias", "norm_biases")
_NAMES = {np.dtype(kind).name: name for name, kind in DTYPES.items()}


def save(path: Path, packed: Packed, place: Place) -> None:
    """Writes the weights of a device; the file appears when it is complete.

    Raises ModelError E106 where it cannot be written.
    """
    found = {name: getattr(packed.weights, name) for name in (*_ARRAYS, *_OPTIONAL)}
    arrays = {name: place.read(array) for name, array in found.items() if array is not None}
    header = json.dumps(_header(packed.plan, arrays)).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(MAGIC + struct.pack("<Q", len(header)) + header)
                for array in arrays.values():
                    file.write(bytes(-file.tell() % _ALIGNED))
                    file.write(np.ascontiguousarray(array).view(np.uint8).data)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as why:
        raise refuse("E106", f"{path} cannot be written", notes=[str(why)]) from why


def open_packed(path: Path, plan: token.Plan, place: Place) -> Packed:
    """The weights of a file on a device; on the simulator they stay where the file is mapped.

    Raises ModelError E102 (no file), E201 (damaged), E306 (made for another plan).
    """
    header, start = _read_header(path)
    wanted, found = _description(plan), header["plan"]
    if found != wanted:
        differing = [name for name, value in wanted.items() if found.get(name) != value]
        raise refuse(
            "E306",
            f"{path} was packed for another launch",
            notes=[f"{name}: {found.get(name)} there, {wanted[name]} here" for name in differing],
            hint="pack the model again",
        )
    arrays, size = {}, path.stat().st_size
    for name, (dtype, shape) in header["arrays"].items():
        start += -start % _ALIGNED
        kind = np.dtype(DTYPES[dtype])
        end = start + int(np.prod(shape)) * kind.itemsize
        if end > size:
            raise refuse("E201", f"{path} ends in `{name}`: {size:,} of {end:,} bytes are there")
        arrays[name] = np.memmap(path, kind, "r", start, tuple(shape))
        start = end
    return Packed(plan, token.Weights(**{n: place.put(array) for n, array in arrays.items()}))


def _header(plan: token.Plan, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "plan": _description(plan),
        "arrays": {name: [_NAMES[a.dtype.name], list(a.shape)] for name, a in arrays.items()},
    }


def _description(plan: token.Plan) -> dict[str, Any]:
    """What the order of the weights depends on."""
    matrices = {
        name: [m.rows, m.columns, m.high, m.wide, m.base]
        for name, m in zip(
            ("qkv", "out", "gate_up", "down", "head"), (*plan.matrices, plan.head), strict=True
        )
    }
    return {**asdict(plan.shape), "warps": plan.warps, **matrices}


def _complete(names: set[str]) -> bool:
    return {*_ARRAYS} <= names <= {*_ARRAYS, *_OPTIONAL}


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header, and where it ends."""
    if not path.is_file():
        raise refuse("E102", f"{path} does not exist")
    with path.open("rb") as file:
        head = file.read(16)
        length = struct.unpack("<Q", head[8:])[0] if len(head) == 16 else 0
        text = file.read(min(length, 1 << 20))
    if head[:8] != MAGIC:
        raise refuse("E202", f"{path} holds no packed weights")
    try:
        header = json.loads(text)
        known = header["schema"] == SCHEMA and _complete({*header["arrays"]})
    except (ValueError, KeyError, TypeError) as why:
        raise refuse("E201", f"the header of {path} is damaged", notes=[str(why)]) from why
    if not known:
        raise refuse("E202", f"{path} was written by another version", hint="pack the model again")
    return header, 16 + length
