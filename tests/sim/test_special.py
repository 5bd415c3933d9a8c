"""Transcendental functions are within half a unit and a bit in the last place."""

import math

import numpy as np
import pytest

from warploom.sim.special import SPECIAL, erf

POINTS = np.concatenate(
    [np.linspace(-8, 8, 4001), np.geomspace(1e-30, 1e30, 400), -np.geomspace(1e-30, 1e30, 400)]
).astype(np.float32)
TRUTH = {
    "exp": math.exp,
    "exp2": lambda x: math.pow(2, x),
    "log": math.log,
    "log2": math.log2,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "rcp": lambda x: 1 / x,
}


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_half_an_ulp(name):
    def truth(x):
        try:
            return TRUTH[name](x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    kept = [(x, truth(float(x))) for x in POINTS]
    kept = [(x, y) for x, y in kept if y is not None and abs(y) < 3.4e38]
    assert len(kept) > 1000
    x = np.array([k[0] for k in kept], np.float32)
    y = np.array([k[1] for k in kept])
    with np.errstate(all="ignore"):
        found = SPECIAL[name](x)
    assert found.dtype == np.float32
    unit = np.spacing(np.abs(y).astype(np.float32)).astype(np.float64)
    assert (np.abs(found - y) / unit).max() < 0.51


def test_erf_in_float64():
    x = np.concatenate([np.linspace(-7, 7, 20001), [1e-300, 1e300]])
    expected = np.array([math.erf(v) for v in x])
    assert np.abs(erf(x) - expected).max() < 1e-13


def test_edges():
    with np.errstate(all="ignore"):
        assert np.isnan(SPECIAL["erf"](np.float32([np.nan])))[0]
        assert SPECIAL["erf"](np.float32([-np.inf, np.inf])).tolist() == [-1, 1]
        assert np.signbit(SPECIAL["erf"](np.float32([-0.0])))[0]
        assert np.signbit(SPECIAL["tanh"](np.float32([-0.0])))[0]
        assert SPECIAL["exp"](np.float32([-np.inf, np.inf, 0])).tolist() == [0, np.inf, 1]
        assert SPECIAL["log"](np.float32([0, 1])).tolist() == [-np.inf, 0]
        assert np.isnan(SPECIAL["log"](np.float32([-1])))[0]
        assert SPECIAL["rsqrt"](np.float32([0, np.inf])).tolist() == [np.inf, 0]
