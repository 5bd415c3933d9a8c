"""Weights and the NumPy forward pass: both formats mean the same model, and damage is named."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine.checkpoint import Checkpoint, open_checkpoint
from warploom.engine.reference import forward
from warploom.engine.weights import load_weights

IDS = [5, 17, 200, 3, 3, 99, 41, 250, 8, 12, 64]


def host(array: np.ndarray) -> np.ndarray:
    return array


def logits(checkpoint: Checkpoint, dtype: str = "f32") -> np.ndarray:
    return forward(checkpoint.config, load_weights(checkpoint, dtype, host), IDS)


@pytest.mark.parametrize("tied", [True, False])
def test_both_formats_are_the_same_model(tmp_path: Path, tied: bool) -> None:
    sizes = tiny.Tiny(tied=tied, seed=3)
    gguf = logits(open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", sizes)))
    folder = logits(open_checkpoint(tiny.write_folder(tmp_path / "tiny", sizes)))
    np.testing.assert_allclose(gguf, folder, rtol=1e-4, atol=1e-4)
    assert gguf.std() > 0.1


def test_a_later_token_changes_no_earlier_logits(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tiny.write_folder(tmp_path / "tiny", tiny.Tiny()))
    weights = load_weights(checkpoint, "f32", host)
    whole = forward(checkpoint.config, weights, IDS)
    for length in (1, 4, len(IDS)):
        part = forward(checkpoint.config, weights, IDS[:length])
        np.testing.assert_allclose(part, whole[:length], rtol=1e-5, atol=1e-5)
    last = forward(checkpoint.config, weights, IDS, last=2)
    np.testing.assert_allclose(last, whole[-2:], rtol=1e-5, atol=1e-5)


def test_bf16_rounds_every_weight_once(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny()))
    exact, rounded = (load_weights(checkpoint, dtype, host) for dtype in ("f32", "bf16"))
    assert rounded.layers[1].qkv.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(
        rounded.layers[1].qkv, exact.layers[1].qkv.astype(ml_dtypes.bfloat16)
    )
    assert rounded.final_norm.dtype == np.float32
    np.testing.assert_array_equal(
        rounded.final_norm, exact.final_norm.astype(ml_dtypes.bfloat16).astype(np.float32)
    )
    assert rounded.head is rounded.embedding


def test_progress_reaches_its_total(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny()))
    load_weights(checkpoint, "f32", host, lambda done, total: heard.append((done, total)))
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1][0] == heard[-1][1]


def _refused(checkpoint: Checkpoint, golden, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load_weights(checkpoint, "f32", host)
    golden(str(caught.value).replace(str(tmp_path), "DIR"))


def test_text_of_a_missing_tensor(tmp_path: Path, golden) -> None:
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny()))
    del checkpoint.file.tensors["blk.1.ffn_up.weight"]
    _refused(checkpoint, golden, tmp_path)


def test_text_of_a_tensor_of_another_shape(tmp_path: Path, golden) -> None:
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny(), intermediate_size=40)
    _refused(open_checkpoint(folder), golden, tmp_path)


def test_text_of_values_that_are_not_finite(tmp_path: Path, golden) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())
    checkpoint = open_checkpoint(path)
    entry = checkpoint.file.tensors["blk.0.attn_q.weight"]
    data = bytearray(path.read_bytes())
    data[entry.offset + 40 : entry.offset + 44] = b"\x00\x00\xc0\x7f"
    path.write_bytes(data)
    _refused(open_checkpoint(path), golden, tmp_path)


def test_text_of_a_path_without_a_model(tmp_path: Path, golden) -> None:
    texts = []
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(ModelError) as caught:
            open_checkpoint(path)
        texts.append(str(caught.value).replace(str(tmp_path), "DIR"))
    golden("\n\n".join(texts))


def test_a_folder_with_one_gguf_file_is_that_model(tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())
    assert open_checkpoint(tmp_path).path == path
