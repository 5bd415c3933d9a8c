"""Results that lie across their operands are refused; results in place of one are not."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError
from warploom.kernels import activation, attention, elementwise, embedding, kv, linear, norm, rope

ROW = np.ones(8, np.float32)
AT = np.zeros(2, np.int32)


def across(shape):
    """Two arrays of a shape, the second one starting a row later in the same memory."""
    memory = np.zeros((shape[0] + 1, *shape[1:]), np.float32)
    return memory[:-1], memory[1:]


def cases():
    x, y = across((2, 8))
    heads, later = across((2, 3, 8))
    square = np.zeros((8, 8), np.float32)
    partial = attention.workspace(2, 3, 8, 2, like=x)
    return {
        "rms_norm": lambda: norm.rms_norm(x, ROW, y, 1e-5),
        "layer_norm": lambda: norm.layer_norm(x, ROW, ROW, y, 1e-5),
        "linear": lambda: linear.linear(x, square, y),
        "linear residual": lambda: linear.linear(np.ones((2, 8), np.float32), square, y, None, x),
        "silu_mul": lambda: activation.silu_mul(np.ones((2, 8), np.float32), x, y),
        "gelu": lambda: activation.gelu(x, y),
        "softmax": lambda: activation.softmax(x, y),
        "add": lambda: elementwise.add(x, x, y),
        "embed": lambda: embedding.embed(AT, x, y),
        "rope": lambda: rope.rope(heads, AT, ROW[:4], later),
        "append": lambda: kv.append(heads, heads, later, np.ones((2, 3, 8), np.float32), AT),
        "decode": lambda: attention.decode(heads, heads, heads, AT, later, 1.0, partial=partial),
    }


@pytest.mark.parametrize("name", cases())
def test_refused(name):
    with pytest.raises(LaunchError, match="shares memory with"):
        cases()[name]()


def test_another_dtype_in_place_is_refused():
    x = np.zeros((2, 8), np.float32)
    with pytest.raises(LaunchError, match="`out` shares memory with `x`"):
        norm.rms_norm(x, ROW, x.view(np.float16)[:, ::2], 1e-5)
