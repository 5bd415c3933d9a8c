"""Picks the next token from logits: temperature, top-k, top-p, draw, in this order.

Host side, float64, reproducible: the draw depends on seed and position only. Greedy picking on a
device is the argmax kernel; this module says the same for temperature 0.
"""

import math
from dataclasses import dataclass

import numpy as np

from warploom.engine.philox import uniform
from warploom.engine.refusal import refuse


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to pick. Temperature 0 is greedy; `top_k` 0 and `top_p` 1 leave all tokens in."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise _bad("temperature", self.temperature, "0, which picks the best token, or more")
        if self.top_k < 0:
            raise _bad("top_k", self.top_k, "0, which keeps every token, or more")
        if not 0 < self.top_p <= 1:
            raise _bad("top_p", self.top_p, "a number above 0, and 1 at most")
        if not 0 <= self.seed < 2**64:
            raise _bad("seed", self.seed, "a whole number from 0 to 2^64 - 1")

    @property
    def greedy(self) -> bool:
        """Whether the best token is always taken."""
        return self.temperature == 0


def check_count(max_new_tokens: int) -> None:
    """Refuse a number of tokens that is none. Raises ModelError E303."""
    if max_new_tokens < 0:
        raise _bad("max_new_tokens", max_new_tokens, "0 or more")


def _bad(name: str, value: object, wanted: str) -> Exception:
    return refuse("E303", f"{name} is {value}", hint=f"give {wanted}")


def pick(logits: np.ndarray, sampling: Sampling, position: int) -> int:
    """The token for `position` out of the logits [vocabulary]. Ties go to the lowest id.

    NaN counts as largest, as in the argmax kernel, so that a broken model is seen.
    """
    if sampling.greedy or np.isnan(logits).any():
        return int(np.argmax(logits))
    # A stable sort of the negated values keeps equal logits in the order of their ids.
    order = np.argsort(-logits, kind="stable")
    if sampling.top_k:
        order = order[: sampling.top_k]
    scores = logits[order].astype(np.float64)
    weights = np.exp((scores - scores[0]) / sampling.temperature)
    reached = np.cumsum(weights)
    if sampling.top_p < 1:
        kept = int(np.searchsorted(reached, sampling.top_p * reached[-1])) + 1
        order, reached = order[:kept], reached[:kept]
    draw = uniform(sampling.seed, position) * reached[-1]
    return int(order[min(int(np.searchsorted(reached, draw, side="right")), len(order) - 1)])


def log_probability(logits: np.ndarray, token: int) -> float:
    """Natural logarithm of the model's probability of a token, before any sampling setting.

    Exponentials in f32, their sum in f64: off by some 1e-7, a third of the time of f64.
    """
    top = logits.max()
    total = np.exp(logits - top).sum(dtype=np.float64)
    return float(np.float64(logits[token]) - top - np.log(total))
