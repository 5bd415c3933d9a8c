"""The GGUF container: every value comes back, and every kind of damage is named."""

import struct
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine.gguf_file import GgufFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())


def test_metadata_and_tensors_equal_those_of_the_gguf_package(file: Path) -> None:
    ours, theirs = GgufFile(file), gguf.GGUFReader(file)
    for name, field in theirs.fields.items():
        if not name.startswith("GGUF."):
            assert ours.metadata[name] == field.contents(), name
    assert set(ours.tensors) == {tensor.name for tensor in theirs.tensors}
    for tensor in theirs.tensors:
        entry = ours.tensors[tensor.name]
        assert entry.offset == tensor.data_offset
        assert entry.shape == tuple(int(n) for n in tensor.shape[::-1])
        out = np.empty(entry.shape, np.float32)
        ours.read(tensor.name, out)
        np.testing.assert_array_equal(out.reshape(tensor.data.shape), tensor.data)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16", "F32"])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_storage_types_are_dequantised_like_the_package_does(
    tmp_path: Path, kind: str, dtype: type
) -> None:
    rng = np.random.default_rng(0)
    # More rows than one piece of the reader takes, and not a multiple of it.
    values = rng.standard_normal((1100, 256)).astype(np.float32)
    number = gguf.GGMLQuantizationType[kind]
    stored = gguf.quants.quantize(values, number)
    writer = gguf.GGUFWriter(tmp_path / "one.gguf", "llama")
    raw = None if kind in ("F16", "F32") else number
    writer.add_tensor("w", stored, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GgufFile(tmp_path / "one.gguf")
    out = np.empty((1100, 256), dtype)
    file.read("w", out)
    assert file.kind_name("w") == kind
    np.testing.assert_array_equal(out, gguf.quants.dequantize(stored, number).astype(dtype))


@pytest.mark.parametrize("keep", [0, 3, 10, 23, 24, 40, 200, 1000, 5000])
def test_a_truncated_file_is_named_wherever_it_ends(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match="damaged or truncated") as caught:
        GgufFile(file)
    assert caught.value.code == "E201"


def test_the_last_byte_counts(file: Path) -> None:
    data = file.read_bytes().rstrip(b"\0")
    whole = GgufFile(file)
    end = max(entry.offset + entry.bytes for entry in whole.tensors.values())
    file.write_bytes((data + bytes(64))[:end])
    GgufFile(file)
    file.write_bytes((data + bytes(64))[: end - 1])
    with pytest.raises(ModelError, match=r"ends at byte .*, the file at"):
        GgufFile(file)


def test_every_prefix_and_every_flipped_length_is_refused_in_words(file: Path) -> None:
    """No damage of the header ends in anything but a ModelError or a readable file."""
    data = bytearray(file.read_bytes())
    header = min(entry.offset for entry in GgufFile(file).tensors.values())
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        broken = bytearray(data)
        for at in rng.integers(4, header, 4):
            broken[at] = rng.integers(256)
        file.write_bytes(broken)
        try:
            GgufFile(file)
        except ModelError:
            refused += 1
    assert refused > 50


def _report(path: Path, golden, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        GgufFile(path)
    golden(str(caught.value).replace(str(tmp_path), "DIR"))


def test_text_of_a_truncated_file(file: Path, tmp_path: Path, golden) -> None:
    file.write_bytes(file.read_bytes()[:20000])
    _report(file, golden, tmp_path)


def test_text_of_another_format(tmp_path: Path, golden) -> None:
    path = tmp_path / "notes.gguf"
    path.write_bytes(b"PK\x03\x04" + bytes(40))
    _report(path, golden, tmp_path)


def test_text_of_an_old_version(tmp_path: Path, golden) -> None:
    path = tmp_path / "old.gguf"
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 1, 0, 0))
    _report(path, golden, tmp_path)


def test_text_of_an_unknown_storage_type(tmp_path: Path, golden) -> None:
    name = b"w"
    table = struct.pack("<Q1sIQIQ", len(name), name, 1, 32, 199, 0)
    path = tmp_path / "new.gguf"
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + table + bytes(64))
    _report(path, golden, tmp_path)
