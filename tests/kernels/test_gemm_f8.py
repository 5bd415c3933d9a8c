"""Products of 8-bit floats against float64: scales, promotion, shapes, what is refused."""

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.conftest import ROUNDING
from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import gemm
from warploom.kernels.activation.kernel import silu
from warploom.kernels.gemm import config, kernel, operands, reference

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
PAIRS = [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)]
# What the unit loses of a sum of 128 products, and f32 of the sums of these (numerics.md, N23).
LOST = 4 * 2.0**-8


def draw(shape, kind, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def integers(shape, kind, seed=0):
    """Whole numbers whose sums of 128 products have 13 bits."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(kind)


def run(device, a, b, dtype=np.float32, **options):
    """a · bᵀ, both [rows, K]."""
    out = device.empty((a.shape[0], b.shape[0]), dtype)
    arrays = {
        name: device.put(value) if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }
    gemm.matmul(device.put(a), device.put(b).T, out, **arrays)
    return device.get(out)


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: "-".join(t.__name__ for t in pair))
@pytest.mark.parametrize("promote", [0, 128, 256])
def test_pairs_are_exact_where_their_sums_are(device, kinds, promote):
    a, b = integers((72, 272), kinds[0]), integers((104, 272), kinds[1], 1)
    assert np.array_equal(run(device, a, b, promote=promote), reference.matmul(a, b.T))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 16, 16), (64, 64, 128), (65, 24, 144), (7, 200, 16), (130, 72, 400)]
)
@pytest.mark.parametrize("out", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_shapes(device, close, m, n, k, out):
    a, b = draw((m, k), E4M3), draw((n, k), E4M3, 1)
    bound = LOST * reference.error_scale(a, b.T)
    close(run(device, a, b, out), reference.matmul(a, b.T), bound)


# 256 rows of 192 columns are more sums than registers.
TILES = [(r, c) for r in (64, 128, 256) for c in (16, 64, 96, 192) if (r, c) != (256, 192)]


@pytest.mark.parametrize(("rows", "columns"), TILES)
@pytest.mark.parametrize("promote", [0, 128, 256])
def test_tiles(device, rows, columns, promote):
    """Every element of every tile comes from its own row and column, in one tile or several."""
    shape = config.Shape(rows + 8, columns + 8, 160, False, True, 4, 132, 1, 1, promote)
    fitting = {(c.BM, c.BN): c for c in config.candidates(shape)}
    a, b = integers((rows + 8, 160), E4M3), integers((columns + 8, 160), E4M3, 1)
    made = run(device, a, b, promote=promote, config=fitting[rows, columns])
    assert np.array_equal(made, reference.matmul(a, b.T))


SCALES = {
    "numbers": (0.5, 3.0),
    "one": (np.full((1,), 0.5, np.float32), np.full((1, 1), 3.0, np.float32)),
    "rows": (np.linspace(0.5, 2, 72, dtype=np.float32)[:, None], None),
    "columns": (None, np.linspace(-1, 2, 104, dtype=np.float32)[None, :]),
    "both": (np.linspace(0.5, 2, 72, dtype=np.float32), np.linspace(-1, 2, 104, dtype=np.float32)),
    "mixed": (0.25, np.linspace(-1, 2, 104, dtype=np.float32)),
}


def shaped(scale, axis):
    """A scale as NumPy spreads it over the product."""
    if scale is None or isinstance(scale, float):
        return 1.0 if scale is None else scale
    return scale.reshape((-1, 1) if axis == 0 else (1, -1))


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("swap", [False, True])
def test_scales(device, close, name, swap):
    scale_a, scale_b = SCALES[name]
    a, b = draw((72, 144), E4M3), draw((104, 144), E5M2, 1)
    chosen = config.Config(64, 64, 64, 2, 1, BK=128, SWAP=swap)
    made = run(device, a, b, scale_a=scale_a, scale_b=scale_b, config=chosen)
    scales = {"scale_a": shaped(scale_a, 0), "scale_b": shaped(scale_b, 1)}
    expected = reference.matmul(a, b.T, **scales)
    most = np.abs(np.asarray(scales["scale_a"]) * np.asarray(scales["scale_b"]))
    close(made, expected, most * LOST * reference.error_scale(a, b.T) + 1e-5)


@pytest.mark.case("C01")
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7])
def test_trip_counts(device, stages, steps):
    """Short sums of one to three steps, the last one ragged, over several tiles of a block."""
    a, b = integers((192, 32 * steps), E4M3, steps), integers((64, 32 * steps), E4M3, stages)
    for promote in (32, 64, 96):
        out = device.empty((192, 64), np.float32)
        tiles = {"BM": 64, "BN": 64, "BK": 32, "EN": 32, "MATH": 1, "STAGES": stages}
        kernel.gemm[2](device.put(a), device.put(b).T, out, B_T=True, PROMOTE=promote, **tiles)
        assert np.array_equal(device.get(out), reference.matmul(a, b.T)), promote


def test_steps_dealt_to_blocks(device, close):
    a, b = draw((72, 1040), E4M3), draw((104, 1040), E4M3, 1)
    rows = np.linspace(0.5, 2, 72, dtype=np.float32)
    chosen = config.Config(64, 64, 64, 2, 1, BK=128, SPLIT=7)
    made = run(device, a, b, scale_a=rows, promote=256, config=chosen)
    expected = reference.matmul(a, b.T, scale_a=rows[:, None])
    close(made, expected, 4 * LOST * reference.error_scale(a, b.T))


def test_a_scale_of_rank_0(device):
    a, b = integers((16, 32), E4M3), integers((16, 32), E4M3, 1)
    made = run(device, a, b, scale_a=np.array(0.5, np.float32), scale_b=np.float32(2))
    assert np.array_equal(made, reference.matmul(a, b.T))


def test_the_whole_epilogue(device, close):
    a, b = draw((40, 160), E4M3), draw((48, 160), E4M3, 1)
    bias, residual = (draw(shape, np.float32, 2) for shape in ((48,), (40, 48)))
    scale = np.linspace(0.5, 1, 40, dtype=np.float32)
    made = run(
        device, a, b, np.float16, bias=bias, residual=residual, beta=0.5, scale_a=scale,
        scale_b=0.5, activation=silu,
    )  # fmt: skip
    expected = reference.matmul(
        a, b.T, bias, residual, 1.0, 0.5, lambda y: y / (1 + np.exp(-y)), scale[:, None], 0.5
    )
    close(made, expected, 2 * LOST * reference.error_scale(a, b.T) + 1e-5)


def test_a_batch(device, close):
    a, b = draw((3, 24, 144), E4M3), draw((3, 40, 144), E4M3, 1)
    rows = np.linspace(0.5, 2, 24, dtype=np.float32)
    out = device.empty((3, 24, 40), np.float32)
    right = device.put_strided(b.swapaxes(1, 2))
    gemm.matmul(device.put(a), right, out, scale_a=device.put(rows))
    wide = b.swapaxes(1, 2).astype(np.float64)
    expected = rows[:, None] * (a.astype(np.float64) @ wide)
    close(device.get(out), expected, 2 * LOST * (np.abs(a.astype(np.float64)) @ np.abs(wide)))


def test_one_operand_of_a_batch_with_scales_for_rows(device, close):
    """Rows of a batch do not become rows of one product where each has a factor."""
    a, b = draw((3, 24, 144), E4M3), draw((40, 144), E4M3, 1)
    rows = np.linspace(0.5, 2, 24, dtype=np.float32)
    out = device.empty((3, 24, 40), np.float32)
    gemm.matmul(device.put(a), device.put(b).T, out, scale_a=device.put(rows))
    wide = b.T.astype(np.float64)
    expected = rows[:, None] * (a.astype(np.float64) @ wide)
    close(device.get(out), expected, 2 * LOST * (np.abs(a.astype(np.float64)) @ np.abs(wide)))


def test_without_out_the_result_is_bf16(device):
    a, b = integers((24, 32), E4M3), integers((40, 32), E4M3, 1)
    made = gemm.matmul(device.put(a), device.put(b).T)
    expected = reference.matmul(a, b.T)
    assert np.array_equal(device.get(made).astype(np.float64), expected)
    assert device.get(made).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("empty", ["m", "n", "k"])
def test_nothing(device, empty):
    m, n, k = (0 if axis == empty else 32 for axis in "mnk")
    made = run(device, np.zeros((m, k), E4M3), np.zeros((n, k), E4M3), scale_a=2.0)
    assert made.shape == (m, n)
    assert not made.any()


@pytest.mark.parametrize("which", ["a", "b", "k"])
def test_operands_that_lie_otherwise_take_the_slow_path(device, close, which, monkeypatch, capsys):
    """Across K, or with rows that the copy engine cannot take: right, and said once."""
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)
    operands._told.clear()
    k = 143 if which == "k" else 144
    a, b = draw((80, k), E4M3), draw((112, k), E4M3, 1)
    left = device.put_strided(a.T.copy().T) if which == "a" else device.put(a)
    right = device.put(b.T.copy()) if which == "b" else device.put(b).T
    out = device.empty((80, 112), np.float32)
    gemm.matmul(left, right, out, scale_b=device.put(np.array([2.0], np.float32)))
    close(device.get(out), 2 * reference.matmul(a, b.T), 1e-4)
    said = capsys.readouterr().err
    assert ("along K" in said) if which != "k" else ("multiple of 16" in said)


def test_what_is_refused(golden):
    a, b = np.zeros((32, 64), E4M3), np.zeros((48, 64), E4M3)
    calls = {
        "two kinds": lambda: gemm.matmul(a, b.astype(np.float16).T),
        "scale of rows": lambda: gemm.matmul(a, b.T, scale_a=np.ones(31, np.float32)),
        "scale of columns": lambda: gemm.matmul(a, b.T, scale_b=np.ones((48, 1, 2), np.float32)),
        "scale dtype": lambda: gemm.matmul(a, b.T, scale_a=np.ones(1, np.float64)),
        "promote": lambda: gemm.matmul(a, b.T, promote=192),
        "result": lambda: gemm.matmul(a, b.T, dtype=E4M3),
    }
    texts = []
    for name, call in calls.items():
        with pytest.raises((ShapeError, LaunchError)) as refused:
            call()
        texts.append(f"{name}:\n{refused.value}\n")
    golden("\n".join(texts))


@pytest.mark.parametrize(("depth", "promote"), [(96, 128), (256, 128), (96, 256)])
def test_steps_that_sums_do_not_end_with_are_refused(depth, promote):
    """The roles would count the items of a sum differently, and wait for ever."""
    a = np.zeros((64, 512), E4M3)
    chosen = config.Config(64, 64, 64, 2, 1, BK=depth)
    with pytest.raises(ShapeError, match=f"BK = {depth}, and sums are promoted after {promote}"):
        gemm.matmul(a, a.T, promote=promote, config=chosen)


@pytest.mark.parametrize(("depth", "promote"), [(64, 128), (96, 0), (256, 256), (32, 384)])
def test_steps_that_sums_end_with(device, depth, promote):
    a, b = integers((72, 528), E4M3), integers((64, 528), E4M3, 1)
    chosen = config.Config(64, 64, 64, 2, 1, BK=depth)
    made = run(device, a, b, promote=promote, config=chosen)
    assert np.array_equal(made, reference.matmul(a, b.T))


def test_promotion_halves_no_bits():
    """Both ways of adding have the bound; the simulator's f32 sums differ by f32 roundings only."""
    a, b = draw((64, 1024), E4M3), draw((64, 1024), E4M3, 1)
    out = [np.empty((64, 64), np.float32) for _ in range(2)]
    for promote, made in zip((0, 256), out, strict=True):
        gemm.matmul(a, b.T, made, promote=promote)
    scale = reference.error_scale(a, b.T)
    assert (np.abs(out[0] - out[1]) <= 2.0**-20 * scale).all()
    assert ROUNDING[out[0].dtype] == 2.0**-24
