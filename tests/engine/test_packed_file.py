"""Packed weights in a file: the same bits back, mapped; and what is refused."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from tests.engine import families, tiny
from tests.engine.test_token_runner import SIZES
from warploom.base.errors import ModelError
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.packed_file import open_packed, save
from warploom.engine.place import Place
from warploom.engine.token_runner import Packed, TokenRunner, pack
from warploom.engine.weights import load_weights
from warploom.kernels import token

SIM = Place("sim")


@pytest.fixture(params=["bf16", "f16"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Packed:
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", SIZES))
    held = load_weights(checkpoint, request.param, lambda a: a)
    return pack(checkpoint.config, held, SIM, request.param)


@pytest.fixture
def path(packed: Packed, tmp_path: Path) -> Path:
    save(tmp_path / "deep" / "weights.packed", packed, SIM)
    return tmp_path / "deep" / "weights.packed"


def test_the_same_bits_come_back(packed: Packed, path: Path) -> None:
    found = open_packed(path, packed.plan, SIM)
    for name in ("packed", "embedding", "norms", "frequencies"):
        before, after = getattr(packed.weights, name), getattr(found.weights, name)
        assert before.dtype == after.dtype and before.tobytes() == after.tobytes()
    assert isinstance(found.weights.packed, np.memmap)
    assert [p.name for p in path.parent.iterdir()] == ["weights.packed"]


@pytest.mark.parametrize("family", ["qwen3", "gpt_neox"])
def test_norms_and_biases_come_back(tmp_path: Path, family: str) -> None:
    """Of a model that has them; what it lacks is missing in the file too."""
    checkpoint = open_checkpoint(families.write(tmp_path / "model", family))
    held = load_weights(checkpoint, "bf16", lambda a: a)
    packed = pack(checkpoint.config, held, SIM, "bf16")
    save(tmp_path / "weights.packed", packed, SIM)
    found = open_packed(tmp_path / "weights.packed", packed.plan, SIM)
    given = {field.name: getattr(packed.weights, field.name) for field in fields(packed.weights)}
    assert (given["q_norm"] is None) == (family == "gpt_neox")
    assert (given["norm_biases"] is None) == (family == "qwen3")
    for name, array in given.items():
        back = getattr(found.weights, name)
        assert (back is None) == (array is None), name
        assert array is None or np.array_equal(back, array), name


def test_a_model_runs_from_the_mapped_file(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", SIZES))
    config, held = checkpoint.config, load_weights(checkpoint, "bf16", lambda a: a)
    packed = pack(config, held, SIM, "bf16")
    save(tmp_path / "weights.packed", packed, SIM)
    runs = []
    for weights in (packed, open_packed(tmp_path / "weights.packed", packed.plan, SIM)):
        runner = TokenRunner(config, weights, SIM, "bf16", 64)
        runner.feed([1, 2, 3])
        runs.append(runner.logits().tobytes())
    assert runs[0] == runs[1]


def test_another_plan_is_refused(packed: Packed, path: Path) -> None:
    other = token.make(packed.plan.shape, 4, 8)
    with pytest.raises(ModelError, match=r"E306[\s\S]*warps: 4 there, 8 here"):
        open_packed(path, other, SIM)
    shape = replace(packed.plan.shape, layers=3)
    with pytest.raises(ModelError, match="layers: 2 there, 3 here"):
        open_packed(path, token.make(shape, 4, 4), SIM)


def test_damaged_files_are_refused(packed: Packed, path: Path) -> None:
    whole = path.read_bytes()
    for content, code in (
        (b"", "E202"),
        (b"something else", "E202"),
        (whole[:40], "E201"),
        (whole[:-1], "E201"),
        (whole.replace(b'"schema": 1', b'"schema": 9', 1), "E202"),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=code):
            open_packed(path, packed.plan, SIM)
    with pytest.raises(ModelError, match="E102"):
        open_packed(path.parent / "none", packed.plan, SIM)
    with pytest.raises(ModelError, match="E106"):
        save(path / "below a file", packed, SIM)
