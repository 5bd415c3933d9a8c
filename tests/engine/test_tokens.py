"""The small real model says what transformers says in float32, token for token.

`tests/golden/smollm2/tokens.json` is made by `make.py` beside it, without this package.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.engine.fake import Script
from warploom.engine import load
from warploom.engine.checkpoint import Checkpoint, open_checkpoint
from warploom.engine.model import Model
from warploom.engine.place import Place
from warploom.engine.pull import pull
from warploom.engine.reference import forward
from warploom.engine.registry import KNOWN, KnownModel, locate
from warploom.engine.weights import Weights, load_weights

pytestmark = pytest.mark.model

ORACLE = json.loads(
    (Path(__file__).parents[1] / "golden" / "smollm2" / "tokens.json").read_text("utf-8")
)
ROWS = ORACLE["rows"]
NAMES = [row["prompt"] for row in ROWS]
NAME = "smollm2-135m"
# The sums of two float32 computations differ by about this much in the largest logits.
ROUNDING = 2e-3
# The median error of bf16, of the norm of a position's logits (`test_logits.py`).
BF16 = 1.2e-2


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    found = locate(NAME)
    return open_checkpoint(pull(found) if isinstance(found, KnownModel) else found)


@pytest.fixture(scope="module")
def sim(checkpoint: Checkpoint) -> Model:
    return load(checkpoint.path, device="sim", dtype="f32")


@pytest.fixture(scope="module")
def gpu(checkpoint: Checkpoint) -> Model:
    return load(checkpoint.path, device="gpu", dtype="f32")


def test_the_oracle_is_of_this_model_and_decides_clearly() -> None:
    assert ORACLE["sha256"] == KNOWN[NAME].sha256
    assert ORACLE["model"] == KNOWN[NAME].file
    assert min(row["gap"] for row in ROWS) >= 0.02
    assert ROWS[0]["ids"] == [504, 3575, 282, 4649, 314, 7042, 30, 2]
    assert all(len(row["ids"]) == 32 or row["ids"][-1] == ORACLE["end"] for row in ROWS)


def test_tokenizer_and_template_equal_those_of_transformers(checkpoint: Checkpoint) -> None:
    tokenizer = checkpoint.tokenizer()
    for row in ORACLE["tokenizer"]:
        assert tokenizer.encode(row["text"], special=False) == row["ids"], row["text"]
    model = Model(NAME, checkpoint, tokenizer, Script([0]), Place("sim"), "f32", 0.0)
    for row in ROWS:
        assert model.encode(row["prompt"]) == row["prompt_ids"]
        assert tokenizer.decode(row["ids"]) == row["text"]


def test_the_numpy_forward_pass_gives_the_same_tokens(checkpoint: Checkpoint) -> None:
    weights = load_weights(checkpoint, "f32", lambda array: array)
    for row in ROWS:
        ids = row["prompt_ids"] + row["ids"]
        logits = forward(checkpoint.config, weights, ids, last=len(row["ids"]) + 1)[:-1]
        assert logits.argmax(axis=1).tolist() == row["ids"], row["prompt"]
        top = np.sort(logits, axis=1)
        assert (top[:, -1] - top[:, -2]).min() == pytest.approx(row["gap"], abs=ROUNDING)


def check(model: Model, row: dict, count: int | None = None) -> None:
    wanted = row["ids"][:count]
    generation = model.generate(row["prompt"], max_new_tokens=count or 32)
    assert [piece.id for piece in generation] == wanted
    assert generation.prompt_ids == row["prompt_ids"]
    if count is None:
        assert generation.text == row["text"]
        assert generation.finish == ("stop" if wanted[-1] == ORACLE["end"] else "length")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROWS[:2], ids=NAMES[:2])
def test_two_prompts_in_full_on_the_simulator(sim: Model, row: dict) -> None:
    check(sim, row)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROWS[2:], ids=NAMES[2:])
def test_eight_tokens_of_the_others_on_the_simulator(sim: Model, row: dict) -> None:
    check(sim, row, 8)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_all_prompts_in_full_on_the_simulator(sim: Model, row: dict) -> None:
    check(sim, row)


@pytest.mark.gpu
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_all_prompts_in_full_on_the_gpu(gpu: Model, row: dict) -> None:
    check(gpu, row)


@pytest.fixture(scope="module")
def one_launch(checkpoint: Checkpoint) -> Model:
    model = load(checkpoint.path, device="gpu")
    assert (model.kernels, model.dtype) == ("token", "bf16")
    return model


@pytest.fixture(scope="module")
def exact(checkpoint: Checkpoint) -> Weights:
    return load_weights(checkpoint, "f32", lambda array: array)


@pytest.mark.gpu
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_one_launch_a_token_says_the_same_where_the_gap_is_clear(
    one_launch: Model, checkpoint: Checkpoint, exact: Weights, row: dict
) -> None:
    """Greedy in bf16, whichever number of tokens a launch computes; the float32 model decides
    where its two largest logits lie further apart than bf16 errs."""
    ids, wanted = row["prompt_ids"] + row["ids"], row["ids"]
    truth = forward(checkpoint.config, exact, ids, last=len(wanted) + 1)[:-1]
    top = np.sort(truth, axis=1)
    error = BF16 * np.linalg.norm(truth, axis=1) / np.sqrt(truth.shape[1])
    clear = top[:, -1] - top[:, -2] > 6 * error
    assert clear.mean() > 0.6
    found = one_launch.logits(ids[:-1], last=len(wanted)).argmax(axis=1)
    assert (found == wanted)[clear].all()
    answers = []
    for count in (1, 8):
        generation = one_launch.generate(row["prompt"], max_new_tokens=32, tokens_per_launch=count)
        answers.append([piece.id for piece in generation])
    assert answers[0] == answers[1]
    for token, right, decided in zip(answers[0], wanted, clear, strict=False):
        if token != right:
            assert not decided
            break  # from here on it is another text
