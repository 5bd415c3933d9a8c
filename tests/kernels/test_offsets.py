"""Library calls on arrays whose rows lie further apart than 32-bit offsets reach.

The memory is reserved and hardly touched, so it costs pages and not gigabytes. Simulator only.
"""

import numpy as np
import pytest

from warploom.kernels import attention, embedding, kv, linear, norm, rope

pytestmark = [pytest.mark.slow, pytest.mark.case("C21")]

# Elements from one row to the next.
PITCH = 2**31 + 4096


@pytest.fixture(scope="module")
def memory():
    return np.zeros(PITCH + 4096, np.float16)


@pytest.fixture
def far(memory, randn):
    """`far(shape)`: two rows of random numbers, 4 GB apart."""

    def make(shape: tuple[int, ...]) -> np.ndarray:
        row = np.zeros(shape[1:], np.float16)
        strides = (PITCH * memory.itemsize, *row.strides)
        view = np.lib.stride_tricks.as_strided(memory, shape, strides)
        view[...] = randn(shape)
        return view

    return make


def both(call, view, *arguments):
    """The call on the far view and on a contiguous copy of it."""
    return call(view, *arguments), call(np.ascontiguousarray(view), *arguments)


def test_weights(far, randn):
    def run(w, x):
        out = np.empty((2, 2), np.float32)
        linear.linear(x, w, out)
        return out

    assert np.array_equal(*both(run, far((2, 96)), randn((2, 96))))


def test_table(far):
    def run(table):
        out = np.empty((3, 96), np.float32)
        embedding.embed(np.array([1, 0, 1], np.int32), table, out)
        return out

    assert np.array_equal(*both(run, far((2, 96))))


def test_rows_of_a_norm(far):
    def run(x):
        out = np.empty((2, 96), np.float32)
        norm.rms_norm(x, np.ones(96, np.float32), out, 1e-5)
        return out

    assert np.array_equal(*both(run, far((2, 96))))


@pytest.mark.parametrize("style", ["half", "interleaved"])
def test_heads(far, style):
    def run(x):
        out = np.empty(x.shape, np.float32)
        frequencies = np.ones(16, np.float32)
        rope.rope(x, np.array([3, 9], np.int32), frequencies, out, style=style)
        return out

    assert np.array_equal(*both(run, far((2, 3, 32))))


def test_cache(far, randn):
    cache, values, new = far((2, 2, 32)), randn((2, 2, 32), "f16"), randn((2, 2, 32))
    kv.append(new, new, cache, values.copy(), np.array([1, 0], np.int32))
    assert np.array_equal(cache, new[::-1].astype(np.float16))

    def run(keys):
        q, out = new.repeat(2, axis=1), np.empty((2, 4, 32), np.float32)
        partial = attention.workspace(2, 4, 32, 2, like=out)
        attention.decode(q, keys, values, np.array([0, 1], np.int32), out, 0.2, partial=partial)
        return out

    assert np.array_equal(*both(run, cache))
