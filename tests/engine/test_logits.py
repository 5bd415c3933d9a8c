"""How far bf16 logits of the real model are from the float32 model over the same rounded weights.

Error of a position: ‖a − b‖₂ / ‖b‖₂ over the vocabulary, teacher-forced over the stored answers.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from warploom.engine import load
from warploom.engine.checkpoint import Checkpoint, open_checkpoint
from warploom.engine.model import Model
from warploom.engine.pull import pull
from warploom.engine.reference import forward
from warploom.engine.registry import KnownModel, locate
from warploom.engine.weights import Weights, load_weights

pytestmark = pytest.mark.model

ORACLE = json.loads(
    (Path(__file__).parents[1] / "golden" / "smollm2" / "tokens.json").read_text("utf-8")
)
ROWS = ORACLE["rows"]
MEDIAN, MOST = 1.2e-2, 6e-2


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    found = locate("smollm2-135m")
    return open_checkpoint(pull(found) if isinstance(found, KnownModel) else found)


@pytest.fixture(scope="module")
def rounded(checkpoint: Checkpoint) -> Weights:
    return load_weights(checkpoint, "bf16", lambda array: array)


def reference(checkpoint: Checkpoint, rounded: Weights, row: dict) -> np.ndarray:
    ids = row["prompt_ids"] + row["ids"]
    return forward(checkpoint.config, rounded, ids, last=len(row["ids"]) + 1)[:-1]


def errors(model: Model, checkpoint: Checkpoint, rounded: Weights, rows: list[dict]) -> np.ndarray:
    found = []
    for row in rows:
        wanted = reference(checkpoint, rounded, row)
        ids = row["prompt_ids"] + row["ids"][:-1]
        got = model.logits(ids, last=len(row["ids"]))
        distance = np.linalg.norm(got - wanted, axis=1)
        found.append(distance / np.linalg.norm(wanted, axis=1))
    return np.concatenate(found)


def test_the_reference_equals_that_of_transformers(
    checkpoint: Checkpoint, rounded: Weights
) -> None:
    for row in ROWS:
        anchor = row["bf16_weights_first_top8"]
        first = reference(checkpoint, rounded, row)[0]
        np.testing.assert_allclose(first[anchor["ids"]], anchor["logits"], rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_bf16_on_the_simulator(checkpoint: Checkpoint, rounded: Weights) -> None:
    model = load(checkpoint.path, device="sim", dtype="bf16")
    found = errors(model, checkpoint, rounded, ROWS[:1])
    assert found.max() <= MOST
    assert np.median(found) <= MEDIAN


@pytest.mark.gpu
def test_bf16_on_the_gpu(checkpoint: Checkpoint, rounded: Weights) -> None:
    model = load(checkpoint.path, device="gpu", dtype="bf16")
    found = errors(model, checkpoint, rounded, ROWS)
    rival = ORACLE["transformers_bf16"]
    assert len(found) == rival["positions"]
    assert np.median(found) <= min(MEDIAN, rival["median"])
    assert found.max() <= min(MOST, rival["max"])
