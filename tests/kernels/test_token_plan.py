"""Plans: every step has one owner, shares are even, what a block holds fits; the packed order."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.token_model import SMALL
from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import token
from warploom.kernels.token import packing
from warploom.kernels.token.packing.reference import packed
from warploom.kernels.token.plan import ROWS, UNIT, Matrix
from warploom.testing.golden import Golden

SHAPES = {
    "llama-3.2-1b": token.Shape(16, 2048, 32, 8, 64, 8192, 128256, 64),
    "llama-2-7b": token.Shape(32, 4096, 32, 32, 128, 11008, 32000, 128),
    "llama-3.1-8b": token.Shape(32, 4096, 32, 8, 128, 14336, 128256, 128),
    "qwen3-8b": token.Shape(36, 4096, 32, 8, 128, 12288, 151936, 128),
    "pythia-2.8b": token.Shape(32, 2560, 32, 32, 80, 10240, 50304, 20, parallel=True, gated=False),
    "pythia-6.9b": token.Shape(32, 4096, 32, 32, 128, 16384, 50432, 32, parallel=True, gated=False),
    "smollm2-135m": token.Shape(30, 576, 9, 3, 64, 1536, 49152, 64),
    "small": SMALL,
}
PLANS = [(name, blocks, warps) for name in SHAPES for blocks in (132, 116) for warps in (16, 12)]


@pytest.mark.parametrize(("name", "blocks", "warps"), PLANS)
def test_every_step_has_one_owner(name: str, blocks: int, warps: int) -> None:
    plan = token.make(SHAPES[name], blocks, warps)
    for matrix in (*plan.matrices, plan.head):
        assert matrix.start(0) == 0 and matrix.start(blocks) == matrix.total
        starts = np.array([matrix.start(b) for b in range(matrix.blocks + 1)])
        sizes = np.diff(starts)
        assert sizes.min() >= 1 and sizes.max() - sizes.min() <= 1
        assert sizes.max() == matrix.longest
        owners = np.repeat(np.arange(matrix.blocks), sizes)
        some = range(0, matrix.total, 1 + matrix.total // 500)
        assert [matrix.owner(step) for step in some] == owners[:: some.step].tolist()
        assert matrix.bands * matrix.band_rows >= matrix.rows
        assert matrix.steps * matrix.wide * UNIT == matrix.columns
        assert matrix.high * matrix.wide == warps
        # The part of a block is its distance from the first owner of the band.
        bands = owners.reshape(matrix.bands, matrix.steps)
        assert (bands[:, -1] - bands[:, 0]).max() + 1 == matrix.parts
        assert np.diff(bands, axis=1).max(initial=0) <= 1


@pytest.mark.parametrize("name", ["llama-3.1-8b", "pythia-2.8b", "pythia-6.9b"])
def test_the_order_of_the_stream(name: str) -> None:
    """That of the phases; what is made of the same spans is laid out alike."""
    plan = token.make(SHAPES[name], 132)
    order = (plan.qkv, plan.out, plan.gate_up, plan.down)
    if plan.shape.parallel:
        order = (plan.qkv, plan.gate_up, plan.down, plan.out)
        assert plan.qkv.wide == plan.gate_up.wide
    base = 0
    for matrix in order:
        assert matrix.base == base
        base += matrix.total
    assert base == plan.layer_steps


def test_a_source_is_held_or_added_up_once() -> None:
    """One column, and two where registers suffice."""
    plan = token.make(SHAPES["pythia-6.9b"], 132)
    assert [plan.is_held(n) for n in (1, 2, 3)] == [True, True, False]
    assert [plan.is_reduced(n) for n in (1, 2, 3)] == [False, False, True]
    few = token.make(SHAPES["pythia-2.8b"], 132, 4)
    assert [few.is_held(n) for n in (1, 2)] == [True, False]
    assert [few.is_reduced(n) for n in (1, 2)] == [False, True]
    other = token.make(replace(few.shape, parallel=False), 132, 4)
    assert [other.is_reduced(n) for n in (1, 2, 3)] == [False, False, True]


@pytest.mark.parametrize("name", ["llama-3.2-1b", "llama-2-7b", "llama-3.1-8b", "qwen3-8b"])
def test_few_parts(name: str) -> None:
    """A few blocks may have no share, where results have fewer parts for it; none has more."""
    plan = token.make(SHAPES[name], 132)
    for matrix in plan.matrices:
        even = replace(matrix, blocks=min(132, matrix.total))
        assert matrix.longest == even.longest and matrix.parts <= even.parts
        assert matrix.blocks > 0.94 * even.blocks
    assert plan.out.held_steps * plan.out.wide * UNIT <= 2048
    if name == "llama-3.2-1b":
        found = [(m.blocks, m.parts) for m in (plan.out, plan.gate_up, plan.down)]
        assert found == [(128, 2), (128, 1), (128, 2)]


def test_warps_that_suit_a_model() -> None:
    """Sixteen, or twelve where bands of sixteen leave many rows of zeros."""
    wanted = {"smollm2-135m": 12}
    for name, shape in SHAPES.items():
        assert token.make(shape, 132).warps == wanted.get(name, 16), name


@pytest.mark.parametrize("name", SHAPES)
def test_little_of_the_stream_is_filling(name: str) -> None:
    """Rows of zeros at the end of matrices, for models that are worth a launch."""
    shape = SHAPES[name]
    plan = token.make(shape, 132)
    real = sum(m.rows * m.columns for m in plan.matrices) * shape.layers
    real += plan.head.rows * plan.head.columns
    whole = plan.total_steps * plan.step_elements
    assert plan.step_elements == plan.warps * ROWS * UNIT
    assert whole / real < (1.001 if shape.hidden >= 2048 else 2.1)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize(
    ("rows", "columns", "high", "wide"),
    [(64, 64, 4, 1), (70, 256, 2, 2), (1, 128, 4, 1), (33, 320, 4, 1), (48, 512, 1, 4)],
)
def test_packed_on_the_device(device, dtype, rows: int, columns: int, high: int, wide: int) -> None:
    """As NumPy packs, into its place; what lies around it stays."""
    matrix = Matrix(rows, columns, high, wide, 1, 2)
    # The rest of the plan says only how large the array is.
    plan = token.make(token.Shape(1, 512, 4, 4, 64, 64, 512, 32), 1, 4)
    weights = np.random.default_rng(rows).standard_normal((rows, columns)).astype(dtype)
    target = device.put(np.ones((plan.total_steps, plan.step_elements), dtype))
    first = matrix.base
    packing.pack(plan, matrix, device.put(weights), target)
    found = device.get(target)
    assert np.array_equal(found[first : first + matrix.total], packed(weights, matrix, 4))
    assert (np.delete(found, np.s_[first : first + matrix.total], 0) == 1).all()


def test_packing_is_refused(golden: Golden) -> None:
    plan = token.make(SMALL, 5, 4)
    whole = np.zeros((plan.total_steps, plan.step_elements), ml_dtypes.bfloat16)
    texts = []
    for weights, target in (
        (np.zeros((9, 128), whole.dtype), whole),
        (np.zeros((256, 128), np.float32), whole),
        (np.zeros((256, 128), whole.dtype), whole[1:]),
    ):
        with pytest.raises((ShapeError, LaunchError)) as refused:
            packing.pack(plan, plan.qkv, weights, target)
        texts.append(str(refused.value))
    golden("\n\n".join(texts))
