"""Ten thousand tokens in a row, and launches whose warps are held up at random: always the same."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.token_model import SMALL, Machine, machine, model
from warploom.kernels.token.kernel import token

TOKENS, ROUNDS = 10_000, 100
FIRST = 7


def long(device, sequences: int = 1, blocks: int = 132) -> Machine:
    return machine(
        device, model(), blocks=blocks, warps=16, context=10_240, page=64, sequences=sequences
    )


def in_rounds(device, first: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens [TOKENS, columns] and the last logits, ROUNDS tokens a launch."""
    count = len(first)
    run = long(device, count)
    columns = run.columns(first, [0] * count, list(range(count)))
    made, found = run.call(columns, rounds=ROUNDS), []
    launch = made.launcher.bound(*made.args, **made.kwargs)
    for _ in range(TOKENS // ROUNDS):
        launch()
        found.append(run.chosen(count))
    assert device.get(columns.positions).tolist() == [TOKENS] * count
    return np.concatenate(found), run.logits(count)[-count:]


@pytest.mark.gpu
def test_ten_thousand_tokens(device) -> None:
    """A launch for each, launches of a hundred, twice, and one of eight columns: the same bits."""
    tokens, logits = in_rounds(device, [FIRST])
    assert len(set(tokens[:, 0].tolist())) > 1
    run = long(device)
    columns = run.columns([FIRST], [0], [0])
    made = run.call(columns)
    launch = made.launcher.bound(*made.args, **made.kwargs)
    for number in range(1, TOKENS + 1):
        launch()
        if number % ROUNDS == 0:
            assert device.get(columns.ids)[0] == tokens[number - 1, 0], f"token {number}"
    assert run.logits(1).tobytes() == logits.tobytes()
    again, last = in_rounds(device, [FIRST])
    assert np.array_equal(again, tokens) and last.tobytes() == logits.tobytes()
    batch, rows = in_rounds(device, [1, 2, 3, FIRST, 5, 6, 8, 9])
    assert np.array_equal(batch[:, 3], tokens[:, 0]) and rows[3].tobytes() == logits.tobytes()


def held_up(run: Machine, columns: Any, seed: int | None, rounds: int) -> np.ndarray:
    """Logits of all rounds, with warps held up at random where there is a seed."""
    made = run.call(columns, rounds=rounds)
    if seed is None:
        made.run()
    else:
        slow = token.options(debug=True, delays=seed).launch(run.plan.blocks, cooperative=True)
        slow(*made.args, **made.kwargs)
    return run.logits(columns.count)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", [1, 2])
def test_warps_held_up_at_random(device, seed: int) -> None:
    histories = [np.random.default_rng(n).integers(0, SMALL.vocabulary, n).tolist() for n in (300,)]
    found = []
    for delays in (None, seed):
        run = long(device, 2).holding([*histories, []])
        columns = run.columns([5, 6], [300, 0], [0, 1])
        found.append(held_up(run, columns, delays, rounds=40).tobytes())
    assert found[0] == found[1]
