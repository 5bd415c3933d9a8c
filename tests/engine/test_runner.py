"""The runner against the NumPy forward pass: chunks, single tokens, contexts, both devices."""

from pathlib import Path

import numpy as np
import pytest

from tests.engine import tiny
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.model import Model
from warploom.engine.reference import forward
from warploom.engine.weights import load_weights

# A context that the attention kernel splits, and that is no multiple of its split.
SIZES = tiny.Tiny(context=300, tied=False, seed=5)


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny.write_gguf(tmp_path / "tiny.gguf", SIZES)


def reference(path: Path, ids: list[int], dtype: str = "f32") -> np.ndarray:
    checkpoint = open_checkpoint(path)
    return forward(checkpoint.config, load_weights(checkpoint, dtype, lambda a: a), ids)


def some_ids(count: int) -> list[int]:
    return np.random.default_rng(count).integers(0, len(tiny.tokens()), count).tolist()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 21])
def test_chunks_give_the_logits_of_the_whole(path: Path, place: str, count: int) -> None:
    ids = some_ids(count)
    got = load(path, device=place, dtype="f32").logits(ids)
    np.testing.assert_allclose(got, reference(path, ids), rtol=2e-4, atol=2e-4)


def test_both_rotary_styles_agree(tmp_path: Path, path: Path, place: str) -> None:
    folder = tiny.write_folder(tmp_path / "folder", SIZES)
    ids = some_ids(11)
    got = load(folder, device=place, dtype="f32").logits(ids)
    np.testing.assert_allclose(got, reference(path, ids), rtol=5e-4, atol=5e-4)


def test_token_by_token_goes_on_where_the_prompt_ended(path: Path, place: str) -> None:
    ids = some_ids(24)
    runner = load(path, device=place, dtype="f32").runner
    runner.feed(ids[:11])
    wanted = reference(path, ids)
    for position in range(10, 23):
        np.testing.assert_allclose(runner.logits(), wanted[position], rtol=2e-4, atol=2e-4)
        assert runner.best() == int(np.argmax(runner.logits()))
        runner.advance(ids[position + 1])
    assert runner.length == 24


def test_a_second_prompt_starts_anew(path: Path, place: str) -> None:
    runner = load(path, device=place, dtype="f32").runner
    runner.feed(some_ids(19))
    runner.advance(runner.best())
    ids = some_ids(10)
    runner.feed(ids)
    np.testing.assert_allclose(runner.logits(), reference(path, ids)[-1], rtol=2e-4, atol=2e-4)


def test_unseen_tokens_are_the_best_ones(path: Path, place: str) -> None:
    model = load(path, device=place, dtype="f32")
    seen = list(model.generate(some_ids(9), max_new_tokens=12))
    if len(seen) < 12:
        pytest.fail("the seed gives an end token; choose another one")
    model.runner.feed(some_ids(9))
    for _ in range(11):
        model.runner.advance_unseen()
    assert model.runner.best() == seen[-1].id
    assert model.runner.launches_a_token > 10 * SIZES.layers


def test_the_last_rows_only(path: Path, place: str) -> None:
    model, ids = load(path, device=place, dtype="f32"), some_ids(21)
    whole = model.logits(ids)
    for last in (0, 1, 5, 6, 13, 21):
        got = model.logits(ids, last=last)
        assert got.shape == (last, len(tiny.tokens()))
        np.testing.assert_array_equal(got, whole[21 - last :])


@pytest.mark.slow
def test_a_context_over_several_splits_is_filled_to_its_last_token(path: Path, place: str) -> None:
    ids = some_ids(299)
    model = load(path, device=place, dtype="f32")
    wanted = reference(path, ids)
    np.testing.assert_allclose(model.logits(ids), wanted, rtol=1e-3, atol=1e-3)
    generation = model.generate(ids, max_new_tokens=9)
    pieces = list(generation)
    assert len(pieces) == 1
    assert pieces[0].id == int(np.argmax(wanted[-1]))
    assert generation.finish in ("length", "stop")


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_short_weights_stay_near_the_same_weights_in_f32(
    path: Path, place: str, dtype: str
) -> None:
    ids = some_ids(13)
    got = load(path, device=place, dtype=dtype).logits(ids)
    wanted = reference(path, ids, dtype)
    error = np.linalg.norm(got - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    # Only keys and values of the cache are rounded on the way.
    assert error.max() < (2e-2 if dtype == "bf16" else 3e-3)


@pytest.mark.gpu
def test_simulator_and_gpu_agree(path: Path) -> None:
    ids = some_ids(17)
    sim, gpu = (load(path, device=place, dtype="f32") for place in ("sim", "gpu"))
    np.testing.assert_allclose(sim.logits(ids), gpu.logits(ids), rtol=1e-4, atol=1e-4)


def test_two_runs_are_bit_equal(path: Path, place: str) -> None:
    model: Model = load(path, device=place)
    first, again = (model.logits(some_ids(12)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
