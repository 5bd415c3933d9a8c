"""Suite `decode`: rows, sizes, and a whole measurement of a tiny model on the simulator."""

import numpy as np
import pytest

from warploom.bench import decode_models
from warploom.bench.case import Context
from warploom.bench.suites import decode


def test_rows() -> None:
    names = decode.cases("gpu")
    assert "llama-3.1-8b/ctx1024/b1" in names and "llama-2-7b/ctx16384/b1" in names
    assert len(names) == 10


def test_bytes_are_those_of_the_arrays() -> None:
    config = decode_models.config_of("tiny", 64)
    held = decode_models.weights_of(config, 0)
    arrays = [a for layer in held.layers for a in vars(layer).values()]
    matrices = sum(a.size for a in (*arrays, held.head, held.final_norm))
    cache = 2 * config.layers * 64 * config.kv_size
    expected = 2 * (matrices + 3 * (cache + config.hidden))
    assert decode_models.bytes_of(config, 64, 3) == expected


def test_weights_keep_the_size_of_what_passes() -> None:
    held = decode_models.weights_of(decode_models.config_of("tiny", 64), 0)
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    y = held.layers[1].qkv.astype(np.float32) @ x
    assert 0.4 < np.linalg.norm(y) / np.linalg.norm(x) / (len(y) / len(x)) ** 0.5 < 2
    assert not np.array_equal(held.layers[0].qkv, held.layers[1].qkv)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_tiny_model_is_measured(batch: int) -> None:
    row = decode.measure(f"tiny/ctx64/b{batch}", Context("sim", 0))
    row.settle()
    assert row.status == "ok", row.note
    assert row.extra["identical_runs"] is True
    assert row.error is not None and row.error < decode.TOLERANCE
    assert row.ours is not None and row.ours > 0
    assert set(row.rivals) == ({"unfused"} if batch == 1 else set())


@pytest.mark.gpu
def test_the_limit_reads_what_the_token_reads() -> None:
    context = Context("gpu", 0)
    row = decode.measure("tiny/ctx64/b1", context)
    assert row.status == "ok", row.note
    assert row.of_limit is not None and context.limits["read"]["unit"] == "TB/s"
