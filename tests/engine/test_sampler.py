"""Sampling: the order of the settings, ties, reproducible draws with the right frequencies."""

import numpy as np
import pytest

from warploom.base.errors import ModelError
from warploom.engine.philox import philox, uniform
from warploom.engine.sampler import Sampling, log_probability, pick

LOGITS = np.array([1.0, 3.0, 2.0, 3.0, -np.inf, 0.0], np.float32)


def test_philox_gives_the_known_answers() -> None:
    # From the known-answer file of Random123: counter and key 0, and the digits of pi.
    assert philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert uniform(0, 0) == (0x6627E8D5 >> 8) / 2**24


def test_uniform_is_flat_and_depends_on_both_arguments() -> None:
    drawn = np.array([uniform(seed, offset) for seed in range(50) for offset in range(100)])
    assert 0 <= drawn.min() and drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.02
    counts = np.histogram(drawn, 10, (0, 1))[0]
    assert counts.min() > 400
    assert len(set(drawn.tolist())) > 4990


def test_greedy_takes_the_lowest_id_of_equal_logits() -> None:
    assert pick(LOGITS, Sampling(), 0) == 1


def test_nan_is_picked_so_that_a_broken_model_is_seen() -> None:
    broken = LOGITS.copy()
    broken[5] = np.nan
    assert pick(broken, Sampling(), 0) == 5
    assert pick(broken, Sampling(temperature=1.0), 0) == 5


def frequencies(sampling: Sampling) -> np.ndarray:
    drawn = [pick(LOGITS, sampling, position) for position in range(4000)]
    return np.bincount(drawn, minlength=len(LOGITS)) / len(drawn)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_have_the_probabilities_of_the_softmax(temperature: float) -> None:
    wanted = np.exp(LOGITS / temperature)
    wanted /= wanted.sum()
    got = frequencies(Sampling(temperature=temperature, seed=7))
    np.testing.assert_allclose(got, wanted, atol=0.03)
    assert got[4] == 0


def test_top_k_keeps_the_lowest_id_of_equal_logits() -> None:
    assert frequencies(Sampling(temperature=1.0, top_k=1)).argmax() == 1
    kept = frequencies(Sampling(temperature=1.0, top_k=3)) > 0
    np.testing.assert_array_equal(kept, [False, True, True, True, False, False])


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    # Softmax of LOGITS: ids 1 and 3 have 0.40 each, id 2 has 0.15, id 0 0.05, id 5 0.02.
    for top_p, wanted in ((0.3, {1}), (0.5, {1, 3}), (0.9, {1, 2, 3}), (0.96, {0, 1, 2, 3})):
        got = frequencies(Sampling(temperature=1.0, top_p=top_p))
        assert set(np.flatnonzero(got)) == wanted, top_p


def test_temperature_applies_before_top_p() -> None:
    # At temperature 0.2 ids 1 and 3 hold more than 0.99 of the probability.
    got = frequencies(Sampling(temperature=0.2, top_p=0.97))
    assert set(np.flatnonzero(got)) == {1, 3}


def test_a_draw_repeats_by_seed_and_position() -> None:
    first = [pick(LOGITS, Sampling(1.0, seed=3), position) for position in range(50)]
    again = [pick(LOGITS, Sampling(1.0, seed=3), position) for position in reversed(range(50))]
    other = [pick(LOGITS, Sampling(1.0, seed=4), position) for position in range(50)]
    assert first == again[::-1]
    assert first != other


def test_log_probability_is_that_of_the_softmax() -> None:
    total = np.log(np.exp(LOGITS.astype(np.float64)).sum())
    assert log_probability(LOGITS, 2) == pytest.approx(2.0 - total, abs=1e-6)
    assert log_probability(LOGITS, 4) == -np.inf
    large = np.array([5000.0, 5000.0], np.float32)
    assert log_probability(large, 0) == pytest.approx(-np.log(2))


@pytest.mark.parametrize(
    "setting",
    [{"temperature": -1.0}, {"temperature": float("nan")}, {"top_k": -1}, {"top_p": 0.0},
     {"top_p": 1.5}, {"seed": -1}, {"seed": 2**64}],
)  # fmt: skip
def test_text_of_an_impossible_setting(setting: dict, golden) -> None:
    with pytest.raises(ModelError) as caught:
        Sampling(**setting)
    name, value = next(iter(setting.items()))
    golden(str(caught.value), f"{name} {value}")
