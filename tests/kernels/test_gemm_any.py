"""Any product that `matmul` takes, drawn: sizes, batches, layouts, epilogues, forms of the kernel.

Inputs are small whole numbers and factors powers of two, so every result is exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.kernels import gemm
from warploom.kernels.gemm import reference
from warploom.kernels.gemm.config import Config
from warploom.testing.devices import GpuDevice, SimDevice

F16, F32 = np.float16, np.float32
TILE = Config(BM=64, BN=64, EN=32, STAGES=2, MATH=1)
FORMS = {
    "chosen": None,
    "one": TILE,
    "two": Config(BM=128, BN=64, EN=64, STAGES=3, MATH=2, GROUP=2),
    "turns": Config(BM=64, BN=64, EN=32, STAGES=3, MATH=2, PINGPONG=True),
    "stagger": Config(BM=128, BN=64, EN=32, STAGES=3, MATH=2, STAGGER=True),
    "pair": Config(BM=64, BN=64, EN=32, STAGES=2, MATH=1, CLUSTER=(2, 1)),
    "pair beside": Config(BM=64, BN=128, EN=32, STAGES=2, MATH=1, CLUSTER=(1, 2)),
    "split": Config(BM=64, BN=64, EN=32, STAGES=2, MATH=1, SPLIT=3),
    "swapped": Config(BM=64, BN=64, EN=32, STAGES=2, MATH=1, SWAP=True),
}
SIZES = st.one_of(st.integers(0, 3), st.sampled_from([8, 16, 63, 64, 65, 72, 130]))
FACTORS = st.sampled_from([1.0, 0.5, -2.0])


@dataclass(frozen=True)
class Product:
    """Everything about one call but its numbers."""

    m: int
    n: int
    k: int
    batch: tuple[int, ...]
    shared: str  # the operand without an axis for the batch, if any
    layouts: str
    out: type
    out_turned: bool
    bias: str
    residual: str
    alpha: float
    beta: float
    form: str


@st.composite
def products(draw: st.DrawFn) -> Product:
    batch = draw(st.sampled_from([(), (), (0,), (1,), (3,)]))
    form = draw(st.sampled_from(sorted(FORMS)))
    return Product(
        *(draw(SIZES) for _ in range(3)),
        batch,
        draw(st.sampled_from(["", "a", "b"])) if batch else "",
        draw(st.sampled_from(["nn", "nt", "tn", "tt"])),
        draw(st.sampled_from([F16, F32])),
        draw(st.booleans()),
        draw(st.sampled_from(["", "plain", "batch"] if batch else ["", "plain"])),
        draw(st.sampled_from(["", "plain", "in place", *(["batch"] if batch else [])])),
        draw(FACTORS),
        draw(FACTORS),
        form,
    )


def integers(seed: int, *shape: int, dtype: Any = F16) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).integers(-3, 4, shape).astype(dtype)


def turned(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)


def run(device: Any, p: Product) -> tuple[np.ndarray, np.ndarray]:
    """What the call makes, and what it should."""
    a = integers(1, *(() if p.shared == "a" else p.batch), p.m, p.k)
    b = integers(2, *(() if p.shared == "b" else p.batch), p.k, p.n)
    bias = None
    if p.bias:
        bias = integers(3, *(p.batch if p.bias == "batch" else ()), p.n)
    shape = (*p.batch, p.m, p.n)
    start = integers(4, *shape, dtype=p.out)
    out = device.put_strided(turned(start)) if p.out_turned else device.put(start)
    residual, held = None, None
    if p.residual == "in place":
        residual, held = start, out
    elif p.residual:
        residual = integers(5, *(p.batch if p.residual == "batch" else ()), p.m, p.n)
        held = device.put(residual)
    left, right = (
        device.put_strided(turned(x)) if letter == "t" else device.put(x)
        for x, letter in ((a, p.layouts[0]), (b, p.layouts[1]))
    )
    config = FORMS[p.form]
    if p.form == "swapped" and not 1 < p.m:
        config = None
    gemm.matmul(
        *(left, right, out, None if bias is None else device.put(bias)),
        residual=held,
        alpha=p.alpha,
        beta=p.beta,
        config=config,
    )
    expected = reference.matmul(a, b, bias, residual, p.alpha, p.beta)
    return device.get(out), np.broadcast_to(expected, shape)


@settings(max_examples=60, deadline=None)
@given(products())
def test_any_product(p: Product) -> None:
    made, expected = run(SimDevice(), p)
    assert np.array_equal(made, expected.astype(p.out))


@pytest.mark.gpu
@settings(max_examples=25, deadline=None)
@given(products())
def test_any_product_on_a_gpu(p: Product) -> None:
    """Fewer: each draw compiles a kernel or two."""
    made, expected = run(GpuDevice(), p)
    assert np.array_equal(made, expected.astype(p.out))
