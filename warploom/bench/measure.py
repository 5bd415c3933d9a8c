"""Timing: several contestants in turn, medians and spread. Knows no suite and no device."""

import time
from collections.abc import Callable, Mapping
from statistics import median


def alternate(
    contestants: Mapping[str, Callable[[], float]], rounds: int, rest_s: float = 0.0
) -> dict[str, list[float]]:
    """Call each contestant once a round, in turn, so that a slow spell hits all alike.

    A contestant returns its own measurement. The order turns round each time, because who comes
    second finds warmer caches and a warmer chip. `rest_s`: seconds of nothing before each round.
    """
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in range(rounds):
        if rest_s:
            time.sleep(rest_s)
        for name in names if turn % 2 == 0 else reversed(names):
            samples[name].append(contestants[name]())
    return samples


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def summary(samples: list[float]) -> tuple[float, tuple[float, float]]:
    """(median, (10th percentile, 90th percentile)); nearest ranks, so that each was measured."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    low = ordered[round(0.1 * last)]
    high = ordered[round(0.9 * last)]
    return median(ordered), (low, high)
