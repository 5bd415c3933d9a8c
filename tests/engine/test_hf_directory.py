"""Hugging Face folders: tensors of each type come back, and damage is named."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine.hf_directory import HuggingFaceFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.write_folder(tmp_path / "model", tiny.Tiny())


@pytest.mark.parametrize("stored", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_tensors_of_every_type_convert(folder: Path, stored: type, dtype: type) -> None:
    # More elements than one piece of the reader takes.
    values = np.random.default_rng(0).standard_normal((700, 400)).astype(stored)
    safetensors.numpy.save_file({"w": values}, folder / "model.safetensors")
    out = np.empty(values.shape, dtype)
    HuggingFaceFolder(folder).read("w", out)
    np.testing.assert_array_equal(out, values.astype(np.float32).astype(dtype))


def test_shards_are_found_by_their_index(folder: Path) -> None:
    whole = HuggingFaceFolder(folder)
    parts: list[dict[str, np.ndarray]] = [{}, {}]
    for number, (name, entry) in enumerate(sorted(whole.tensors.items())):
        out = np.empty(entry.shape, np.float32)
        whole.read(name, out)
        parts[number % 2][name] = out
    index = {}
    for number, part in enumerate(parts):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        safetensors.numpy.save_file(part, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    assert set(HuggingFaceFolder(folder).tensors) == set(whole.tensors)


def _refused(folder: Path, golden) -> None:
    with pytest.raises(ModelError) as caught:
        HuggingFaceFolder(folder)
    golden(str(caught.value).replace(str(folder.parent), "DIR"))


def test_text_of_a_truncated_file(folder: Path, golden) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    _refused(folder, golden)


def test_text_of_a_missing_shard(folder: Path, golden) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    _refused(folder, golden)


def test_text_of_a_broken_config(folder: Path, golden) -> None:
    (folder / "config.json").write_text('{"model_type": "llama",')
    _refused(folder, golden)


def test_text_of_a_folder_without_weights(folder: Path, golden) -> None:
    (folder / "model.safetensors").unlink()
    _refused(folder, golden)


@pytest.mark.parametrize("keep", [0, 4, 8, 50, 300])
def test_a_cut_header_is_refused(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError) as caught:
        HuggingFaceFolder(folder)
    assert caught.value.code == "E201"
