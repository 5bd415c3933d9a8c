"""The torch rival computes the same model: its logits are those of the NumPy forward pass."""

import numpy as np
import pytest

from warploom.engine.config import ModelConfig, rotary_frequencies
from warploom.engine.reference import forward
from warploom.engine.weights import LayerWeights, Weights

torch = pytest.importorskip("torch", reason="the rival is torch")
pytestmark = pytest.mark.torch


def model(style: str, tied: bool) -> tuple[ModelConfig, Weights]:
    config = ModelConfig(
        **{"family": "llama", "name": "tiny", "layers": 2, "hidden": 32, "heads": 4},
        **{"kv_heads": 2, "head_dim": 8, "feed_forward": 48, "vocabulary": 50, "context": 64},
        **{"norm_eps": 1e-5, "rope_base": 1e4, "rope_style": style, "rotary_dim": 8},
        tied=tied,
    )
    draw = np.random.default_rng(1)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (draw.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    def norm() -> np.ndarray:
        return (1 + 0.1 * draw.standard_normal(config.hidden)).astype(np.float32)

    layers = [
        LayerWeights(norm(), matrix(64, 32), matrix(32, 32), norm(), matrix(96, 32), matrix(32, 48))
        for _ in range(config.layers)
    ]
    embedding = matrix(50, 32)
    head = embedding if tied else matrix(50, 32)
    return config, Weights(embedding, layers, norm(), head, rotary_frequencies(config))


@pytest.mark.parametrize("style", ["half", "interleaved"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_rival_is_the_same_model(style: str, tied: bool) -> None:
    from warploom.bench.rivals.torch_decoder import TorchDecoder

    config, weights = model(style, tied)
    rival = TorchDecoder(config, weights, 16, compiled=False, place="cpu")
    ids = [3, 17, 42, 8, 8, 21]
    with torch.inference_mode():
        for item in ids:
            rival.token.fill_(item)
            rival.eager()
    truth = forward(config, weights, ids, last=1)[0]
    assert np.abs(rival.logits.numpy() - truth).max() < 1e-4
    assert int(rival.token) == truth.argmax()
    assert int(rival.position) == len(ids)
