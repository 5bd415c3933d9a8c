"""Suite `decode`: rows, sizes, and a whole measurement of a tiny model on the simulator."""

import numpy as np
import pytest

from warploom.bench import decode_models
from warploom.bench.case import Context
from warploom.bench.decode_models import HostRandom
from warploom.bench.suites import decode
from warploom.engine.weights import Weights

TINY = ["tiny", "tiny-qwen3", "tiny-pythia"]


def held(name: str) -> Weights:
    config = decode_models.config_of(name, 64)
    return decode_models.weights_of(config, HostRandom(0, 1 << 16), 0)


def test_rows() -> None:
    names = decode.cases("gpu")
    assert "llama-3.1-8b/ctx1024/b1" in names and "llama-2-7b/ctx16384/b1" in names
    assert len(names) == len(set(names)) == 14
    models = [name.split("/")[0] for name in names]
    assert sorted(models) == sorted(models, key=lambda name: (name, models.index(name)))


@pytest.mark.parametrize("name", TINY)
def test_bytes_are_those_of_the_arrays(name: str) -> None:
    config, weights = decode_models.config_of(name, 64), held(name)
    arrays = [a for layer in weights.layers for a in vars(layer).values()]
    arrays += [weights.head, weights.final_norm, weights.final_norm_bias]
    matrices = sum(a.size for a in arrays if a is not None)
    cache = 2 * config.layers * 64 * config.kv_size
    expected = 2 * (matrices + 3 * (cache + config.hidden))
    assert decode_models.bytes_of(config, 64, 3) == expected
    assert decode_models.cache_bytes(config, 64, 3) == 6 * cache


def test_weights_keep_the_size_of_what_passes() -> None:
    layers = held("tiny").layers
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    y = layers[1].qkv.astype(np.float32) @ x
    assert 0.4 < np.linalg.norm(y) / np.linalg.norm(x) / (len(y) / len(x)) ** 0.5 < 2
    assert not np.array_equal(layers[0].qkv, layers[1].qkv)


@pytest.mark.parametrize(
    ("name", "batch"),
    [("tiny", 1), ("tiny", 2), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in TINY[1:])],
)
def test_a_tiny_model_is_measured(name: str, batch: int) -> None:
    row = decode.measure(f"{name}/ctx64/b{batch}", Context("sim", 0))
    row.settle()
    assert row.status == "ok", row.note
    assert row.extra["identical_runs"] is True
    assert row.error is not None and row.error < decode.TOLERANCE
    assert row.ours is not None and row.ours > 0
    assert set(row.rivals) == ({"unfused"} if batch == 1 else set())
    assert set(row.extra["seconds_of"]) == {"weights", "kernel", "rivals", "check", "measure"}


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "batch"), [("tiny", 3), *((name, 1) for name in TINY)])
def test_a_row_of_a_gpu(name: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sides are held against torch in float32; the limit reads what the token reads."""
    pytest.importorskip("torch", reason="weights and rivals are torch's")
    from warploom.bench.rivals import torch_decoder

    monkeypatch.setattr(torch_decoder, "OPTIONS", {})  # no search: how fast it is matters not
    monkeypatch.setattr(decode, "PLAIN", ("tiny/ctx64/b1",))
    context = Context("gpu", 0)
    row = decode.measure(f"{name}/ctx64/b{batch}", context)
    row.settle()
    assert row.status == "ok", row.note
    assert row.of_limit is not None and context.limits["read"]["unit"] == "TB/s"
    if batch > 1:
        assert row.extra["batch_cost"] > 0
    else:
        plain = {"plain"} if name == "tiny" else set()
        assert set(row.rivals) == {"unfused", "compiled"} | plain
        assert max(row.extra["logit_errors_of_rivals"].values()) < decode.TOLERANCE
