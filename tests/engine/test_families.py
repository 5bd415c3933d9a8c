"""Qwen3 and GPT-NeoX folders against what their tensors say, in both kinds of kernels."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.engine import families, tiny
from warploom.base.errors import ModelError
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.config import from_huggingface
from warploom.engine.reference import forward
from warploom.engine.weights import load_weights
from warploom.testing.golden import Golden

BF16 = ml_dtypes.bfloat16
# Of a position's norm, weights in bf16: the median and the largest error.
MEDIAN, MOST = 1.2e-2, 6e-2
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("qwen3", {}),
    "pythia": ("gpt_neox", {}),
    "one after the other": ("gpt_neox", {"use_parallel_residual": False}),
}


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=CASES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    family, changes = CASES[request.param]
    return families.write(tmp_path / "model", family, **changes)


def some_ids(count: int) -> list[int]:
    return np.random.default_rng(count).integers(0, len(tiny.tokens()), count).tolist()


def test_the_forward_pass_is_the_model(folder: Path) -> None:
    ids, checkpoint = some_ids(11), open_checkpoint(folder)
    weights = load_weights(checkpoint, "f32", lambda array: array)
    found = forward(checkpoint.config, weights, ids)
    np.testing.assert_allclose(found, families.logits(folder, ids), rtol=2e-4, atol=2e-4)


def test_one_launch_an_operation(folder: Path, place: str) -> None:
    """In float32, in pieces of a prompt, then token by token."""
    ids = some_ids(13)
    wanted = families.logits(folder, ids)
    model = load(folder, device=place, dtype="f32", kernels="unfused")
    np.testing.assert_allclose(model.logits(ids[:11]), wanted[:11], rtol=5e-4, atol=5e-4)
    for position in (11, 12):
        model.runner.advance(ids[position])
        found = model.runner.logits()
        np.testing.assert_allclose(found, wanted[position], rtol=5e-4, atol=5e-4)


def test_one_launch_a_token(folder: Path, place: str) -> None:
    """Within the bar of bf16 of the float64 model over the same rounded weights."""
    ids = some_ids(40 if place == "gpu" else 11)
    wanted = families.logits(folder, ids, BF16)
    model = load(folder, device=place, dtype="bf16", kernels="token")
    errors = _errors(model.logits(ids), wanted)
    assert np.median(errors) <= MEDIAN and errors.max() <= MOST


def test_greedy_tokens_are_those_of_float64(folder: Path, place: str) -> None:
    """Wherever the two largest logits lie further apart than bf16 errs."""
    model = load(folder, device=place, dtype="bf16", kernels="token")
    ids = some_ids(9)
    generation = model.generate(ids, max_new_tokens=24 if place == "gpu" else 4)
    answer = [piece.id for piece in generation]
    wanted = families.logits(folder, ids + answer, BF16)[len(ids) - 1 : -1]
    clear = 0
    for row, token in zip(wanted, answer, strict=True):
        second, first = np.sort(row)[-2:]
        if first - second > MOST * np.linalg.norm(row) / np.sqrt(len(row)) * 2:
            clear += 1
            assert token == int(row.argmax())
    assert clear >= len(answer) // 4


def test_parameters_count_every_weight(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    sizes = [int(np.prod(entry.shape)) for entry in checkpoint.file.tensors.values()]
    assert checkpoint.config.parameters == sum(sizes)


@pytest.mark.parametrize(
    ("case", "family", "changes"),
    [
        ("windows", "qwen3", {"use_sliding_window": True}),
        ("biases of qwen3", "qwen3", {"attention_bias": True}),
        ("another gelu", "gpt_neox", {"hidden_act": "gelu_new"}),
        ("no biases", "gpt_neox", {"attention_bias": False}),
        ("too many columns turn", "gpt_neox", {"rotary_pct": 1.5}),
    ],
)
def test_text_of(case: str, family: str, changes: dict[str, Any], golden: Golden) -> None:
    with pytest.raises(ModelError) as refused:
        from_huggingface(families.settings(family, **changes), Path("models") / family)
    golden(str(refused.value), case)


def test_a_missing_tensor_is_named(tmp_path: Path, golden: Golden) -> None:
    import safetensors.numpy

    folder = families.write(tmp_path / "model", "gpt_neox")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    del tensors["gpt_neox.layers.1.attention.query_key_value.bias"]
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError) as refused:
        load(folder, device="sim")
    golden(str(refused.value).replace(str(tmp_path), "DIR"))


@pytest.mark.torch
def test_transformers_says_the_same(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="transformers computes with torch")
    transformers = pytest.importorskip("transformers", reason="the other oracle")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32)
    ids = some_ids(11)
    with torch.inference_mode():
        found = model(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(found, families.logits(folder, ids), rtol=1e-3, atol=1e-3)


def _errors(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
