"""Reads a GGUF file: metadata, tensor table, and tensors as f32, bf16 or f16 arrays.

The container is parsed here (the `gguf` package needs 3 s for the metadata of a small model, this
0.1 s, and every length is checked against the file first); the package de-quantises. Does not
know what the tensors of a model mean.
"""

import mmap
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from warploom.engine.extras import need
from warploom.engine.refusal import refuse

MAGIC = b"GGUF"
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_ROWS_BYTES = 1 << 20
"""De-quantise in pieces of about this many f32 bytes: small enough to stay in the cache."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One line of the tensor table. `shape` is row-major: the last extent is contiguous."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int
    bytes: int


class GgufFile:
    """An open GGUF file. Raises ModelError where it is damaged, truncated or of another format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        if self.size < 24:
            raise self._damaged(f"it has {self.size} bytes, less than the header of a GGUF file")
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, TensorEntry] = {}
        self._read_header()

    @cached_property
    def _package(self) -> Any:
        return need("gguf")

    def _damaged(self, fact: str) -> Exception:
        return refuse(
            "E201",
            f"the model file {self.path.name} is damaged or truncated",
            notes=[f"file: {self.path}", fact],
            hint="fetch the file again; `warploom models pull NAME` checks what it downloads",
        )

    # -- the container ---------------------------------------------------------------------------

    def _take(self, bytes_: int, what: str) -> int:
        """Moves on by `bytes_` and returns where they start."""
        start = self._at
        if bytes_ > self.size - start:
            raise self._damaged(
                f"{what} at byte {start:,} needs {bytes_:,} bytes, the file ends at {self.size:,}"
            )
        self._at = start + bytes_
        return start

    def _number(self, code: str, what: str) -> Any:
        start = self._take(struct.calcsize("<" + code), what)
        return struct.unpack_from("<" + code, self._map, start)[0]

    def _string(self, what: str) -> str:
        length = self._number("Q", what)
        start = self._take(length, what)
        try:
            return self._map[start : start + length].decode("utf-8")
        except UnicodeDecodeError:
            raise self._damaged(f"{what} at byte {start:,} is not UTF-8") from None

    def _strings(self, count: int, what: str) -> list[str]:
        """`count` strings; the tight loop of the whole parser (a vocabulary and its merges)."""
        if count > (self.size - self._at) // 8:
            raise self._damaged(f"{what} claims {count:,} strings, more than the file can hold")
        data, at, end = self._map, self._at, self.size
        unpack, found = struct.Struct("<Q").unpack_from, []
        for _ in range(count):
            if at + 8 > end:
                raise self._damaged(f"{what} ends after {len(found):,} of {count:,} strings")
            length = unpack(data, at)[0]
            at += 8 + length
            if at > end:
                raise self._damaged(f"{what} ends after {len(found):,} of {count:,} strings")
            found.append(data[at - length : at])
        self._at = at
        try:
            return [text.decode("utf-8") for text in found]
        except UnicodeDecodeError:
            raise self._damaged(f"{what} holds a string that is not UTF-8") from None

    def _value(self, kind: int, what: str) -> Any:
        if kind == _STRING:
            return self._string(what)
        if kind == _ARRAY:
            return self._array(what)
        if kind not in _SCALARS:
            raise self._damaged(f"{what} has the value type {kind}, which GGUF does not define")
        return self._number(_SCALARS[kind], what)

    def _array(self, what: str) -> list[Any]:
        kind, count = self._number("I", what), self._number("Q", what)
        if kind == _STRING:
            return self._strings(count, what)
        if kind not in _SCALARS:
            raise self._damaged(f"{what} is an array of value type {kind}")
        dtype = np.dtype("<" + _SCALARS[kind]) if kind != 7 else np.dtype(np.bool_)
        start = self._take(count * dtype.itemsize, what)
        return np.frombuffer(self._map, dtype, count, start).tolist()

    def _read_header(self) -> None:
        if self._map[:4] != MAGIC:
            raise refuse(
                "E202",
                f"{self.path.name} is not a GGUF file",
                notes=[f"file: {self.path}", f"it starts with {self._map[:4]!r}, not b'GGUF'"],
                hint="give a .gguf file, or a folder with config.json and *.safetensors",
            )
        self._at = 4
        version = self._number("I", "the version")
        if version not in (2, 3):
            raise refuse(
                "E202",
                f"{self.path.name} is a GGUF file of version {version}; versions 2 and 3 are read",
                notes=[f"file: {self.path}"],
                hint="convert it again with a current llama.cpp (little-endian)",
            )
        tensors, values = self._number("Q", "the header"), self._number("Q", "the header")
        for index in range(values):
            key = self._string(f"metadata key {index + 1} of {values:,}")
            self.metadata[key] = self._value(self._number("I", key), f"`{key}`")
        table = [self._tensor_line(index, tensors) for index in range(tensors)]
        alignment = int(self.metadata.get("general.alignment", 32))
        if alignment < 1:
            raise self._damaged(f"`general.alignment` is {alignment}")
        base = -(-self._at // alignment) * alignment
        for name, shape, kind, offset in table:
            entry = TensorEntry(name, shape, kind, base + offset, self._bytes_of(name, shape, kind))
            if entry.offset + entry.bytes > self.size:
                raise self._damaged(
                    f"tensor `{name}` ends at byte {entry.offset + entry.bytes:,}, "
                    f"the file at {self.size:,}"
                )
            self.tensors[name] = entry

    def _tensor_line(self, index: int, count: int) -> tuple[str, tuple[int, ...], int, int]:
        what = f"line {index + 1} of {count:,} of the tensor table"
        name, rank = self._string(what), self._number("I", what)
        if rank > 8:
            raise self._damaged(f"tensor `{name}` has rank {rank}")
        shape = tuple(self._number("Q", what) for _ in range(rank))[::-1]
        return name, shape, self._number("I", what), self._number("Q", what)

    def _bytes_of(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        sizes = self._package.GGML_QUANT_SIZES
        try:
            block, bytes_ = sizes[self._package.GGMLQuantizationType(kind)]
        except (KeyError, ValueError):
            raise refuse(
                "E204",
                f"tensor `{name}` has the storage type {kind}, which the gguf package cannot read",
                notes=[f"file: {self.path}"],
                hint="update the package (pip install -U gguf), or use another quantisation",
            ) from None
        if shape and shape[-1] % block:
            raise self._damaged(
                f"tensor `{name}` has rows of {shape[-1]}, not a multiple of {block}"
            )
        count = 1
        for extent in shape:
            count *= extent
        return count // block * bytes_

    # -- tensors ---------------------------------------------------------------------------------

    def kind_name(self, name: str) -> str:
        """The storage type of a tensor as llama.cpp spells it, e.g. `Q4_1`."""
        return self._package.GGMLQuantizationType(self.tensors[name].kind).name

    def read(self, name: str, out: np.ndarray) -> None:
        """De-quantises a tensor into `out` (its shape; f32, bf16 or f16), piece by piece."""
        entry, gguf = self.tensors[name], self._package
        kind = gguf.GGMLQuantizationType(entry.kind)
        raw = np.frombuffer(self._map, np.uint8, entry.bytes, entry.offset)
        rows = raw.reshape(-1 if len(entry.shape) > 1 else 1, entry.bytes // max(1, _rows(entry)))
        flat = out.reshape(len(rows), -1)
        step = max(1, _ROWS_BYTES // max(1, 4 * flat.shape[1]))
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            try:
                flat[start : start + step] = gguf.dequantize(piece, kind)
            except NotImplementedError:
                raise refuse(
                    "E204",
                    f"tensor `{name}` is stored as {kind.name}, which cannot be de-quantised",
                    notes=[f"file: {self.path}"],
                    hint="use a file with another quantisation, such as Q4_1, Q8_0 or Q4_K_M",
                ) from None


def _rows(entry: TensorEntry) -> int:
    rows = 1
    for extent in entry.shape[:-1]:
        rows *= extent
    return rows
