"""The words of other libraries: none is one of ours, and what stands for it exists."""

import re

import numpy as np
import pytest

import warploom as wl
from warploom.frontend.expressions import _ATTRIBUTES as ATTRIBUTES
from warploom.language import elsewhere


@pytest.mark.parametrize("name", elsewhere.OF_PACKAGE)
def test_a_word_of_the_package(name):
    assert name not in wl.__all__
    for own in re.findall(r"wl\.(\w+)", elsewhere.OF_PACKAGE[name]):
        assert own in wl.__all__


@pytest.mark.parametrize("name", elsewhere.OF_VALUE)
def test_a_word_of_values(name):
    assert not any(name in allowed for allowed in ATTRIBUTES.values())
    for own in re.findall(r"wl\.(\w+)", elsewhere.OF_VALUE[name]):
        assert own in wl.__all__


# What the tables promise, run.
@wl.kernel
def promised(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor):
    a, b = wl.load(x[0:4, 0:6]), wl.load(y[0:6, 0:5])
    dot = wl.sum(a[:, :, None] * b[None, :, :], axis=1)
    clamped = wl.minimum(wl.maximum(dot, -1), 2)
    cut = wl.where(dot < 0, wl.ceil(dot), wl.floor(dot))
    sigmoid = 1 / (1 + wl.exp(-dot))
    wl.store(z[0, 0:4, 0:5], dot)
    wl.store(z[1, 0:4, 0:5], clamped)
    wl.store(z[2, 0:4, 0:5], cut)
    wl.store(z[3, 0:4, 0:5], sigmoid)
    wl.store(z[4, 0:4, 0:5], dot - wl.full(dot.shape, 1, dot.dtype) + wl.zeros(dot.shape, wl.f32))


def test_what_the_hints_say(device):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, (4, 6)), rng.integers(-3, 4, (6, 5))
    x, y = x.astype(np.float32) / 2, y.astype(np.float32) / 4
    out = device.empty((5, 4, 5), np.float32)
    promised[1](device.put(x), device.put(y), out)
    dot = x @ y
    found = device.get(out)
    assert np.array_equal(found[0], dot)
    assert np.array_equal(found[1], np.clip(dot, -1, 2))
    assert np.array_equal(found[2], np.trunc(dot))
    assert np.allclose(found[3], 1 / (1 + np.exp(-dot)), rtol=1e-6)
    assert np.array_equal(found[4], dot - 1)
