"""Reads a Hugging Face model folder: settings, and tensors out of its safetensors files.

The 8-byte length and JSON header of a safetensors file are checked here against the file's size,
so that a truncated download is named; the package `safetensors` is not needed to read arrays.
"""

import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from warploom.base.errors import ModelError
from warploom.engine.refusal import refuse

_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "F64": np.float64}
_ROWS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Entry:
    map: mmap.mmap
    dtype: str
    shape: tuple[int, ...]
    offset: int


class HuggingFaceFolder:
    """An open model folder. Raises ModelError where a file is missing, damaged or truncated."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.settings = read_json(folder / "config.json")
        self.tensors: dict[str, _Entry] = {}
        for file in self._files():
            self._open(file)

    def optional_json(self, name: str) -> dict[str, Any]:
        """The contents of a JSON file of the folder, or nothing where there is none."""
        path = self.path / name
        return read_json(path) if path.is_file() else {}

    def _files(self) -> list[Path]:
        index = self.path / "model.safetensors.index.json"
        if index.is_file():
            names = sorted(set(read_json(index).get("weight_map", {}).values()))
        else:
            names = sorted(path.name for path in self.path.glob("*.safetensors"))
        missing = [name for name in names if not (self.path / name).is_file()]
        if missing or not names:
            raise refuse(
                "E201",
                f"the weights of {self.path.name} are not complete",
                notes=[
                    f"folder: {self.path}",
                    "missing: " + (", ".join(missing) if missing else "any *.safetensors file"),
                ],
                hint="fetch the model again; only safetensors files are read",
            )
        return [self.path / name for name in names]

    def _open(self, path: Path) -> None:
        size = path.stat().st_size
        if size < 8:
            raise damaged(path, f"it has {size} bytes")
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = struct.unpack_from("<Q", data)[0]
        if length > size - 8:
            raise damaged(path, f"its header claims {length:,} bytes, the file has {size:,}")
        try:
            header = json.loads(data[8 : 8 + length])
            for name, line in header.items():
                if name != "__metadata__":
                    self.tensors[name] = _entry(path, data, name, line, 8 + length)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, ModelError):
                raise
            raise damaged(path, f"its header cannot be read: {error}") from error

    def kind_name(self, name: str) -> str:
        """The storage type of a tensor, e.g. `BF16`."""
        return self.tensors[name].dtype

    def read(self, name: str, out: np.ndarray) -> None:
        """Converts a tensor into `out` (its shape; f32, bf16 or f16), piece by piece."""
        entry = self.tensors[name]
        if entry.dtype not in _DTYPES:
            raise refuse(
                "E204",
                f"tensor `{name}` is stored as {entry.dtype}, which is not read",
                notes=[f"folder: {self.path}", "known: " + ", ".join(_DTYPES)],
                hint="use a folder with bf16, f16 or f32 weights",
            )
        count = int(np.prod(entry.shape))
        raw = np.frombuffer(entry.map, _DTYPES[entry.dtype], count, entry.offset)
        flat, step = out.reshape(-1), _ROWS_BYTES // 4
        for start in range(0, count, step):
            piece = raw[start : start + step]
            if piece.dtype != flat.dtype and flat.dtype != np.float32:
                piece = piece.astype(np.float32)
            flat[start : start + step] = piece


def _entry(path: Path, data: mmap.mmap, name: str, line: dict[str, Any], base: int) -> _Entry:
    start, end = line["data_offsets"]
    shape = tuple(int(extent) for extent in line["shape"])
    if not 0 <= start <= end or base + end > len(data):
        raise damaged(
            path, f"tensor `{name}` ends at byte {base + end:,}, the file at {len(data):,}"
        )
    dtype = _DTYPES.get(line["dtype"])
    if dtype is not None and int(np.prod(shape)) * np.dtype(dtype).itemsize != end - start:
        raise damaged(
            path, f"tensor `{name}` of shape {shape} does not fill its {end - start:,} bytes"
        )
    return _Entry(data, line["dtype"], shape, base + start)


def damaged(path: Path, fact: str) -> Exception:
    """The error for a file of a model folder that cannot be what it should be."""
    return refuse(
        "E201",
        f"the model file {path.name} is damaged or truncated",
        notes=[f"file: {path}", fact],
        hint="fetch the file again",
    )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises ModelError E201 where it is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise damaged(path, f"it cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise damaged(path, f"it is not JSON from {place} on") from error
    except ValueError as error:
        raise damaged(path, f"it is not text: {error}") from error
    if not isinstance(found, dict):
        raise damaged(path, "it holds no JSON object")
    return found
