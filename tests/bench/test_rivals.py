"""The torch rival computes the same model: its logits are those of the NumPy forward pass."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warploom.bench import decode_models
from warploom.bench.decode_models import HostRandom
from warploom.engine.config import ModelConfig
from warploom.engine.reference import forward
from warploom.engine.weights import Weights, moved

torch = pytest.importorskip("torch", reason="the rival is torch")
pytestmark = pytest.mark.torch

CONTEXT = 16


def model(name: str, **changes: Any) -> tuple[ModelConfig, Weights]:
    """A tiny model in float32."""
    config = replace(decode_models.config_of(name, CONTEXT), **changes)
    weights = decode_models.weights_of(config, HostRandom(1, 1 << 16), 1)
    if config.tied:
        weights.head = weights.embedding
    return config, moved(weights, lambda array: array.astype(np.float32))


CASES = {
    "llama": ("tiny", {}),
    "pairs side by side": ("tiny", {"rope_style": "interleaved"}),
    "tied": ("tiny", {"tied": True}),
    "qwen3": ("tiny-qwen3", {}),
    "pythia": ("tiny-pythia", {}),
    "pythia, one after the other": ("tiny-pythia", {"parallel": False}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("whole", [False, True])
def test_the_rival_is_the_same_model(case: str, whole: bool) -> None:
    """`whole` reads all of the cache, so the ids fill it."""
    from warploom.bench.rivals.torch_decoder import TorchDecoder

    name, changes = CASES[case]
    config, weights = model(name, **changes)
    count = CONTEXT if whole else 6
    ids = np.random.default_rng(2).integers(0, config.vocabulary, count).tolist()
    rival = TorchDecoder(config, weights, CONTEXT, compiled=False, place="cpu")
    with torch.inference_mode():
        for item in ids[:-1]:
            rival.token.fill_(item)
            rival.eager()
        if whole:
            rival.slots = None
        exact = rival.exact(ids[-1], count - 1, rival.keys, rival.values).numpy()
        rival.token.fill_(ids[-1])
        rival.eager()
    truth = forward(config, weights, ids, last=1)[0]
    assert np.abs(rival.logits.numpy() - truth).max() < 2e-4
    assert np.abs(exact - truth).max() < 2e-4
    assert int(rival.token) == truth.argmax()
    assert int(rival.position) == len(ids)


def test_random_weights_are_those_of_the_seed() -> None:
    from warploom.bench.rivals.torch_weights import TorchRandom

    first, again, other = (TorchRandom(seed, "cpu").matrix(40, 50, scale=0.3) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert 0.2 < float(first.float().std()) < 0.3
