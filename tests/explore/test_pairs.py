"""Exploration of the pairs of `tests/hazards`: each wrong kernel that compiles is found, the right
one is proved."""

from pathlib import Path

import pytest

import warploom as wl
from tests.hazards.test_hazards import BROKEN, FIXED, Trial, named
from warploom.runtime.variant import SimVariant
from warploom.sim.explore.explore import Explored

_LIMIT = 20_000


def explored(path: Path) -> Explored | None:
    """The exploration of a file's example; None where it does not compile, which is found earlier
    then."""
    trial = Trial(path)
    call = trial.kernel.example_call()
    try:
        arguments, variant = call.launcher._prepare(call.args, call.kwargs)
    except wl.Error:
        return None
    held = trial.variant or variant
    assert isinstance(held, SimVariant)
    return held.explore(call.launcher.grid, arguments, call.launcher.ways, _LIMIT, True)


@pytest.mark.parametrize("path", named(BROKEN))
def test_wrong(path: Path):
    found = explored(path)
    assert found is None or [r for r in found.findings if r.code != "K002"]


@pytest.mark.parametrize("path", named(FIXED))
def test_right(path: Path):
    found = explored(path)
    assert found is not None
    assert not found.findings, [r.render() for r in found.findings]
    assert found.complete
    # Where nothing is left to choice, order is the same in all interleavings.
    assert found.choices or found.interleavings == found.distinct
