"""The runner of the token kernel against the NumPy forward pass, and which models it takes."""

import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.model import Model
from warploom.engine.model import _kernels as chosen_kernels
from warploom.engine.place import Place
from warploom.engine.reference import forward
from warploom.engine.runner import sizes as unfused_sizes
from warploom.engine.token_runner import TokenRunner, shape_of, why_not
from warploom.engine.token_runner import sizes as token_sizes
from warploom.engine.weights import load_weights
from warploom.kernels.token.reference import Layer
from warploom.kernels.token.reference import Model as token_model
from warploom.kernels.token.reference import forward as token_forward
from warploom.testing.golden import Golden

SIZES = tiny.Tiny(
    hidden=64, heads=2, kv_heads=1, head_dim=32, feed_forward=64, context=100, tied=False, seed=5
)
# A key whose rounding falls the other way moves sharp attention by some hundredths, at its own and
# at all later positions; before the first such key there is next to no error.
NEAR, BEFORE = 3e-2, 1e-5


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny.write_gguf(tmp_path / "tiny.gguf", SIZES)


def run(path: Path, place: str) -> Model:
    return load(path, device=place, dtype="bf16", kernels="token")


def reference(path: Path, ids: list[int]) -> np.ndarray:
    """Logits with the roundings of the kernel. Attention is so sharp here that those of keys move
    them by up to a tenth; without, this is the forward pass of the engine."""
    checkpoint = open_checkpoint(path)
    held = load_weights(checkpoint, "bf16", lambda a: a)
    layers = [
        Layer(
            qkv=layer.qkv,
            out=layer.attention_out,
            gate_up=layer.gate_up,
            down=layer.down,
            norms=np.stack([layer.attention_norm, layer.ffn_norm]),
        )
        for layer in held.layers
    ]
    config = checkpoint.config
    made = token_model(
        *(shape_of(config), held.embedding, layers, held.final_norm, held.head),
        *(held.frequencies, config.norm_eps),
    )
    wanted = forward(config, held, ids)
    np.testing.assert_allclose(token_forward(made, ids).logits, wanted, rtol=1e-3, atol=1e-4)
    return token_forward(made, ids, short=True).logits


def some_ids(count: int) -> list[int]:
    return np.random.default_rng(count).integers(0, len(tiny.tokens()), count).tolist()


def near(found: np.ndarray, wanted: np.ndarray) -> bool:
    errors = np.linalg.norm(found - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)
    return bool(np.max(errors) < NEAR)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 21])
def test_pieces_give_the_logits_of_the_whole(path: Path, place: str, count: int) -> None:
    ids = some_ids(count)
    found, wanted = run(path, place).logits(ids), reference(path, ids)
    assert near(found, wanted)
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.quantile(errors, 0.25) < BEFORE


def test_the_last_rows_only(path: Path, place: str) -> None:
    model, ids = run(path, place), some_ids(21)
    whole = model.logits(ids)
    for last in (0, 1, 5, 13, 21):
        got = model.logits(ids, last=last)
        assert np.array_equal(got, whole[21 - last :])


def test_token_by_token_goes_on_where_the_prompt_ended(path: Path, place: str) -> None:
    """Also where another token than the best one is appended, right after the prompt and later."""
    ids = some_ids(24)
    runner = run(path, place).runner
    runner.feed(ids[:11])
    wanted = reference(path, ids)
    for position in range(10, 23):
        assert near(runner.logits(), wanted[position])
        assert runner.best() == int(np.argmax(runner.logits()))
        runner.advance(ids[position + 1])
    assert runner.length == 24 and runner.launches_a_token == 1


def test_unseen_tokens_are_the_best_ones(path: Path, place: str) -> None:
    runner = run(path, place).runner
    runs = []
    for _ in range(2):
        runner.feed(some_ids(9))
        for _ in range(12):
            runner.advance(runner.best())
        runs.append((runner.best(), runner.logits().tobytes()))
    assert runs[0] == runs[1]
    runner.feed(some_ids(9))
    for _ in range(12):
        runner.advance_unseen()
    assert (runner.best(), runner.logits().tobytes()) == runs[0]


def test_a_full_context_is_refused_before_anything_is_written(path: Path, place: str) -> None:
    ids = some_ids(100)
    model = run(path, place)
    generation = model.generate(ids[:98], max_new_tokens=9)
    assert len(list(generation)) <= 2
    model.runner.feed(ids)
    with pytest.raises(ModelError, match="the context of 100 tokens is full"):
        model.runner.advance(1)
    with pytest.raises(ModelError, match="E301"):
        model.generate([*ids, 1])


def test_facts(path: Path, place: str) -> None:
    facts = run(path, place).describe()
    assert (facts["kernels"], facts["why"]) == ("token", "one launch a token")
    assert facts["cache_bytes"] == 2 * 2 * SIZES.layers * 128 * SIZES.head_dim


def test_progress_is_told(path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    load(path, device="sim", dtype="bf16", kernels="token", progress=lambda *x: heard.append(x))
    assert [x for x in heard if x[0] == "pack"] == [("pack", n, 3) for n in (1, 2, 3)]


def test_what_does_not_fit(tmp_path: Path, path: Path) -> None:
    """The reason names the size and the rule; who asked for the kernel is refused."""
    small = tiny.write_gguf(tmp_path / "small.gguf", tiny.Tiny())
    assert load(small, device="sim", dtype="bf16").kernels == "unfused"
    with pytest.raises(ModelError, match="`hidden` is 32"):
        load(small, device="sim", dtype="bf16", kernels="token")
    with pytest.raises(ModelError, match="bf16 or f16, not f32"):
        load(path, device="sim", dtype="f32", kernels="token")
    with pytest.raises(ModelError, match="no kernels `all`"):
        load(path, device="sim", kernels="all")
    assert load(path, device="sim").why == "one launch an operation"
    config = open_checkpoint(path).config
    assert not why_not(config, Place("sim"), "f16")


def test_several_tokens_a_launch_are_the_same(path: Path, place: str) -> None:
    """Also the last ones, fewer than a launch takes, and right after a prompt of several pieces."""
    model = run(path, place)
    runs = []
    for count in (1, 4):
        generation = model.generate(
            some_ids(11), max_new_tokens=11, tokens_per_launch=count, stop="no such text"
        )
        pieces = [(piece.id, piece.logprob) for piece in generation]
        runs.append((pieces, generation.finish, len(generation.seconds.tokens)))
        assert model.runner.length == 11 + len(pieces) - 1
    assert runs[0] == runs[1]
    assert len(runs[0][0]) == 11


def test_several_tokens_stop_at_the_end_of_the_context(path: Path, place: str) -> None:
    model = run(path, place)
    model.runner.feed(some_ids(97))
    assert isinstance(model.runner, TokenRunner)
    model.runner.run_ahead(model.runner.best(), 3)
    tokens, logits = model.runner.found()
    assert (len(tokens), logits.shape) == (3, (3, len(tiny.tokens())))
    before = model.runner.logits().tobytes()
    with pytest.raises(ModelError, match="it holds 100, and 3 more were given"):
        model.runner.run_ahead(tokens[-1], 3)
    assert model.runner.logits().tobytes() == before and model.runner.length == 100


@pytest.mark.parametrize("where", ["_launch", "wait"])
def test_an_interrupt_leaves_the_next_launch_right(
    path: Path, place: str, where: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes while a launch runs. The sequence is gone, and says so; a new one is right."""
    model = run(path, place)
    runner = model.runner
    assert isinstance(runner, TokenRunner)
    wanted = model.logits(some_ids(9)).tobytes()
    runner.feed(some_ids(9))
    runner.best()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "wait":
            patch.setattr(Place, "wait", interrupted)
        else:
            patch.setitem(runner._launches, (1, 1, True), interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner.advance(3)
            runner.logits()
    with pytest.raises(ModelError) as refused:
        runner.advance(3)
    golden(str(refused.value), "interrupted")
    assert model.logits(some_ids(9)).tobytes() == wanted


def test_an_interrupt_in_the_middle_of_a_simulated_launch(path: Path) -> None:
    """A signal stops blocks between the meetings of an exchange, which then count too few."""
    model = run(path, "sim")
    wanted = model.logits(some_ids(9)).tobytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                model.logits(some_ids(9))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert model.logits(some_ids(9)).tobytes() == wanted


@pytest.mark.gpu
def test_a_gpu_takes_the_token_kernel_by_itself(tmp_path: Path, path: Path) -> None:
    assert load(path, device="gpu").kernels == "token"
    assert (
        load(path, device="gpu", kernels="unfused").why == "one launch an operation, as asked for"
    )
    small = load(tiny.write_gguf(tmp_path / "small.gguf", tiny.Tiny()), device="gpu")
    assert small.kernels == "unfused"
    assert small.why == (
        "one launch an operation: token: `hidden` is 32; the kernel takes multiples of 64"
    )
    exact = load(path, device="gpu", dtype="f32")
    assert "bf16 or f16, not f32" in exact.why


def test_text_of_kernels_on_a_gpu(tmp_path: Path, path: Path, golden: Golden) -> None:
    """Which kernels are taken where nobody asks, and what stands in the way of the first."""
    gpu: Any = SimpleNamespace(is_gpu=True, multiprocessors=132)
    config = open_checkpoint(path).config
    small = open_checkpoint(tiny.write_gguf(tmp_path / "small.gguf", tiny.Tiny())).config
    texts = [
        " ".join(chosen_kernels(*case, None))
        for case in (
            (config, gpu, "bf16"),
            (config, gpu, "f32"),
            (small, gpu, "bf16"),
            (replace(config, head_dim=24, heads=8), gpu, "bf16"),
            (replace(config, head_dim=160, heads=2), gpu, "f16"),
            (replace(config, feed_forward=100), gpu, "bf16"),
            (config, Place("sim"), "bf16"),
        )
    ]
    golden("\n".join(texts))


def test_text_of_too_little_memory(
    path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read. A context that fits is named where there is one."""
    texts = []
    config, spare = open_checkpoint(path).config, 256 << 20
    tight = token_sizes(config, Place("sim"), "bf16", 60).total
    for free, kernels in ((50 << 20, "unfused"), (spare + tight, "token")):
        monkeypatch.setattr(Place, "free_bytes", free)
        with pytest.raises(ModelError) as refused:
            load(path, device="sim", dtype="bf16", kernels=kernels)
        texts.append(str(refused.value).replace(str(path), "tiny.gguf"))
    golden("\n\n".join(texts))


@pytest.mark.parametrize("kernels", ["token", "unfused"])
def test_sizes_are_those_of_the_arrays(path: Path, kernels: str) -> None:
    config = open_checkpoint(path).config
    model = load(path, device="sim", dtype="bf16", kernels=kernels)
    if kernels == "token":
        found = token_sizes(config, Place("sim"), "bf16", 100)
    else:
        found = unfused_sizes(config, "bf16", 100)
    assert found.cache == model.runner.cache_bytes
    assert found.weights >= 2 * config.parameters


def test_text_of_several_tokens_a_launch(path: Path, golden: Golden) -> None:
    token, unfused = run(path, "sim"), load(path, device="sim", dtype="bf16")
    texts = []
    for model, options in (
        (token, {"tokens_per_launch": 0}),
        (token, {"tokens_per_launch": 4, "temperature": 0.5}),
        (unfused, {"tokens_per_launch": 4}),
    ):
        with pytest.raises(ModelError) as refused:
            model.generate([1], **options)
        texts.append(str(refused.value))
    golden("\n\n".join(texts))
