"""`matmul` as a call: batches, epilogues, results of its own, what is refused."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError, LaunchError, ShapeError
from warploom.kernels import gemm
from warploom.kernels.gemm import config, kernel, operands, reference

SMALL = config.Config(BM=64, BN=64, EN=32, STAGES=2, MATH=1)
SWAPPED = config.Config(BM=64, BN=32, EN=32, STAGES=2, MATH=1, SWAP=True)
BF16 = ml_dtypes.bfloat16
F16, F32 = np.float16, np.float32


def integers(*shape, dtype: Any = F16, seed=0):
    """Small whole numbers: every sum of products is exact in f32."""
    return np.random.default_rng((*shape, seed)).integers(-4, 5, shape).astype(dtype)


def same(device, made, expected):
    """The exact numbers, in the dtype of the result."""
    held = device.get(made)
    assert np.array_equal(held, expected.astype(held.dtype))


def turned(x):
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)


# ---- batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches(device, batch, layout):
    a, b = integers(batch, 72, 136), integers(batch, 136, 200)
    left, right = (
        device.put_strided(turned(x)) if letter == "t" else device.put(x)
        for x, letter in ((a, layout[0]), (b, layout[1]))
    )
    out = device.empty((batch, 72, 200), F32)
    assert gemm.matmul(left, right, out) is out
    same(device, out, reference.matmul(a, b))


@pytest.mark.parametrize(("m", "n", "k"), [(2, 8, 8), (64, 64, 64), (65, 72, 24), (3, 129, 200)])
@pytest.mark.parametrize("chosen", [SMALL, SWAPPED], ids=["tiles", "swapped"])
def test_tiles_end_with_their_matrix(device, chosen, m, n, k):
    """Rows past the end of one matrix are not the first rows of the next."""
    a, b = integers(3, m, k), integers(3, n, k).swapaxes(1, 2)
    right = device.put_strided(b)
    out = device.put(np.full((3, m, n), 7, F32))
    gemm.matmul(device.put(a), right, out, config=chosen)
    same(device, out, reference.matmul(a, b))


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("how", ["two axes", "one of three", "stride 0"])
def test_an_operand_that_all_products_share(device, which, how):
    a, b = integers(4, 40, 64), integers(4, 64, 72)
    if which == "a":
        a = a[:1]
    else:
        b = b[:1]
    expected = reference.matmul(a, b)
    one = a if which == "a" else b
    held = {"a": device.put(a), "b": device.put(b)}
    if how == "two axes":
        held[which] = device.put(one[0])
    elif how == "stride 0":
        held[which] = device.put_strided(np.broadcast_to(one[0], (4, *one.shape[1:])))
    out = device.empty((4, 40, 72), F32)
    gemm.matmul(held["a"], held["b"], out)
    same(device, out, expected)


def test_a_batch_of_rows_becomes_one_product(randn):
    """With one `b` for all, the products are the rows of one, where rows follow each other."""
    a, b = randn((6, 5, 64), "f16"), randn((64, 32), "f16")
    out = np.zeros((6, 5, 32), F32)
    views = {name: wl.runtime.arrays.read(x, name) for name, x in (("a", a), ("b", b))}
    views["out"] = wl.runtime.arrays.read(out, "out")
    operands.fold(views)
    assert views["a"].shape == (30, 64) and views["out"].shape == (30, 32)
    apart = {**views, "a": wl.runtime.arrays.read(a[:, ::2], "a")}
    apart["out"] = wl.runtime.arrays.read(out[:, :3], "out")
    operands.fold(apart)
    assert apart["a"].shape == (6, 3, 64)


@pytest.mark.parametrize("rows", [5, 3])
def test_rows_of_a_batch_with_and_without_gaps(device, rows):
    a, b = integers(6, 5, 64)[:, :rows], integers(64, 40)
    out = device.empty((6, rows, 40), F32)
    residual = integers(6, rows, 40, dtype=F32)
    left = device.put_strided(a)
    gemm.matmul(left, device.put(b), out, residual=device.put(residual))
    same(device, out, reference.matmul(a, b, residual=residual))


@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [(0, 8, 8, 8), (2, 0, 8, 8), (2, 8, 0, 8), (2, 8, 8, 0), (0, 0, 0, 0)],
)
def test_empty_batches(device, batch, m, n, k):
    a, b = np.zeros((batch, m, k), F16), np.zeros((batch, k, n), F16)
    out = device.put(np.full((batch, m, n), 3, F32))
    bias = integers(n, dtype=F32)
    gemm.matmul(device.put(a), device.put(b), out, device.put(bias))
    same(device, out, np.broadcast_to(bias, (batch, m, n)))


@pytest.mark.case("C18")
def test_a_step_between_products_that_the_engine_cannot_take(device, capsys, monkeypatch):
    monkeypatch.setattr(operands, "_told", [])
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)
    wide = integers(3, 8 * 16 + 4)
    a = np.ndarray((3, 8, 16), F16, wide, 0, (wide.strides[0], 32, 2))
    b = integers(3, 16, 24)
    out = device.empty((3, 8, 24), F32)
    left = device.put_strided(a)
    gemm.matmul(left, device.put(b), out)
    same(device, out, reference.matmul(a, b))
    said = capsys.readouterr().err
    assert "`a` has a stride of 264 bytes along axis 0" in said
    assert "a stride of 136 elements" in said


def test_a_reason_is_said_once_with_the_numbers_of_its_first(capsys, monkeypatch):
    monkeypatch.setattr(operands, "_told", [])
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)
    for k in (9, 11, 13):
        gemm.matmul(integers(4, k), integers(k, 16))
    gemm.matmul(integers(4, 16), integers(16, 9))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "18 bytes along axis 0" in said[0] and "`b`" in said[1]


# ---- epilogues ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [None, SMALL, SWAPPED], ids=["chosen", "tiles", "swapped"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_residual(device, chosen, dtype, with_bias):
    kind = {"f32": F32, "f16": F16}[dtype]
    a, b = integers(70, 64), integers(136, 64).T
    residual = integers(70, 136, dtype=kind)
    bias = integers(136, dtype=kind) if with_bias else None
    out = device.empty((70, 136), F32)
    gemm.matmul(
        *(device.put(a), device.put_strided(b), out),
        bias=None if bias is None else device.put(bias),
        residual=device.put(residual),
        config=chosen,
    )
    same(device, out, reference.matmul(a, b, bias, residual))


@pytest.mark.parametrize("chosen", [None, SWAPPED], ids=["tiles", "swapped"])
def test_scales(device, chosen):
    a, b, residual = integers(40, 64), integers(72, 64).T, integers(40, 72, dtype=F32)
    left, right, more = device.put(a), device.put_strided(b), device.put(residual)
    before = None
    for alpha, beta in ((0.5, 1.0), (-2.0, 0.25), (1.0, 3.0), (0.125, -1.0)):
        out = device.empty((40, 72), F32)
        how = {"alpha": alpha, "beta": beta, "config": chosen}
        gemm.matmul(left, right, out, residual=more, **how)
        same(device, out, reference.matmul(a, b, None, residual, alpha, beta))
        assert before is None or not np.array_equal(before, device.get(out))
        before = device.get(out).copy()


def test_scales_compile_once(randn):
    """A factor is an argument of the launch: another value is no other kernel."""
    a, b, out = randn((64, 64), "f16"), randn((64, 64), "f16"), np.empty((64, 64), F32)
    gemm.matmul(a, b, out, alpha=0.5)
    before = wl.stats().compiles
    gemm.matmul(a, b, out, alpha=0.75)
    assert wl.stats().compiles == before


@pytest.mark.parametrize("chosen", [None, SWAPPED], ids=["tiles", "swapped"])
@pytest.mark.parametrize("dtype", [F16, F32])
def test_the_result_may_be_the_residual(device, chosen, dtype):
    a, b, c = integers(130, 64), integers(200, 64).T, integers(130, 200, dtype=dtype)
    out = device.put(c)
    gemm.matmul(device.put(a), device.put_strided(b), out, residual=out, config=chosen)
    same(device, out, reference.matmul(a, b, residual=c))


def test_the_only_product_of_a_batch_in_place(device):
    a, b, c = integers(1, 8, 16), integers(16, 24), integers(1, 8, 24)
    out = device.put(c)
    gemm.matmul(device.put(a), device.put(b), out, residual=out)
    same(device, out, reference.matmul(a, b, residual=c))


def test_residuals_and_biases_of_a_batch(device):
    a, b = integers(3, 40, 64), integers(3, 64, 72)
    for bias_shape in ((72,), (1, 72), (3, 72)):
        for residual_shape in ((40, 72), (1, 40, 72), (3, 40, 72)):
            bias, residual = integers(*bias_shape), integers(*residual_shape)
            out = device.empty((3, 40, 72), F32)
            gemm.matmul(
                *(device.put(a), device.put(b), out, device.put(bias)),
                residual=device.put(residual),
            )
            same(device, out, reference.matmul(a, b, bias, residual))


ACTIVATIONS = {
    "relu": lambda v: np.maximum(v, 0),
    "silu": lambda v: v / (1 + np.exp(-v)),
    "gelu": lambda v: 0.5 * v * (1 + np.vectorize(__import__("math").erf)(v * 0.5**0.5)),
    "gelu_tanh": lambda v: 0.5 * v * (1 + np.tanh((2 / np.pi) ** 0.5 * (v + 0.044715 * v**3))),
}


@pytest.mark.parametrize("word", ACTIVATIONS)
def test_activations_by_name(device, close, word):
    """All but the factor follow the product; the residual comes last."""
    a, b, residual = integers(40, 64), integers(64, 72), integers(40, 72, dtype=F32)
    out = device.empty((40, 72), F32)
    gemm.matmul(
        *(device.put(a), device.put(b), out),
        activation=word,
        residual=device.put(residual),
        alpha=1 / 32,
    )
    expected = reference.matmul(a, b, None, residual, 1 / 32, 1.0, ACTIVATIONS[word])
    close(device.get(out), expected, 1e-6)


@pytest.mark.case("C19")
@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
def test_views_of_every_argument(device, seen_as, how):
    """Gaps, offsets and exchanged axes in bias, residual and result, and on the slow path."""
    a, b, residual = integers(40, 64), integers(64, 72), integers(40, 72)
    bias = device.put_strided(np.repeat(integers(72), 2)[::2])
    for left, right in (
        (device.put(a), device.put(b)),
        (device.put_strided(seen_as(a, how)), device.put_strided(seen_as(b, how))),
    ):
        out = device.put_strided(seen_as(np.zeros((40, 72), F16), how))
        more = device.put_strided(seen_as(residual, how))
        gemm.matmul(left, right, out, bias, residual=more, alpha=0.25, beta=2.0)
        expected = reference.matmul(a, b, integers(72), residual, 0.25, 2.0)
        same(device, out, expected)


@pytest.mark.case("C19")
@pytest.mark.parametrize("rows", [60, 63])
def test_a_view_after_the_aligned_whole(device, rows):
    """What a view lacks is seen although the whole array came first; it costs one variant."""
    base = integers(rows + 2, 72)
    right = device.put(integers(64, 40))
    views = {
        "whole": base[:rows, :64].copy(),
        "rows from the second on": base[1 : rows + 1, :64],
        "columns from the fourth on": base[:rows, 3:67],
        "step of 65": np.ndarray((rows, 64), F16, base, 0, (130, 2)),
        "transposed": integers(64, rows).T,
    }
    for what, view in views.items():
        held = device.put_strided(view)
        before = wl.stats()
        made = [device.get(gemm.matmul(held, right, dtype=F32)) for _ in range(2)]
        fresh = sum(wl.stats().variants.values()) - sum(before.variants.values())
        assert fresh <= 1, what
        for one in made:
            assert np.array_equal(one, reference.matmul(view, integers(64, 40))), what


# ---- results -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 72), (0, 72), (2, 40, 72)])
def test_a_result_of_its_own(device, shape):
    *batch, m, n = shape
    a, b = integers(*batch, m, 64), integers(*batch, 64, n)
    left, right = device.put(a), device.put(b)
    made = gemm.matmul(left, right)
    assert type(made) is type(left) and made.dtype == left.dtype and made.shape == shape
    same(device, made, reference.matmul(a, b))
    exact = gemm.matmul(left, right, dtype=wl.f32)
    assert exact.dtype == F32
    same(device, exact, reference.matmul(a, b))


def test_a_matrix_with_itself(device):
    """Both operands may be one array, seen two ways."""
    a = integers(72, 64)
    held = device.put(a)
    same(device, gemm.matmul(held, held.T, dtype=F32), reference.matmul(a, a.T))


@pytest.mark.torch
@pytest.mark.parametrize("batch", [(), (3,)])
def test_torch_tensors_give_torch_tensors(device, batch):
    import torch

    place = "cpu" if device.name == "sim" else "cuda"
    a, b = integers(*batch, 40, 64), integers(*batch, 72, 64)
    left = torch.from_numpy(a).to(place, torch.bfloat16)
    right = torch.from_numpy(b).to(place, torch.bfloat16).mT
    made = gemm.matmul(left, right)
    assert made.dtype is torch.bfloat16 and made.device == left.device
    exact = gemm.matmul(left, right, dtype=torch.float32)
    assert exact.dtype is torch.float32
    expected = reference.matmul(a, b.swapaxes(-1, -2))
    assert np.array_equal(exact.cpu().numpy(), expected)
    assert np.array_equal(made.float().cpu().numpy(), expected.astype(BF16).astype(F32))


@pytest.mark.parametrize("k", [64, 72, 60])
def test_rows_do_not_depend_on_the_batch(device, randn, k):
    """With batch_invariant the bits of a row are those that it has alone."""
    a, b = randn((130, k), "f16"), randn((k, 72), "f16")
    right = device.put(b)
    whole = device.get(gemm.matmul(device.put(a), right, dtype=wl.f32, batch_invariant=True))
    for m in (1, 2, 16, 64, 65, 129):
        made = gemm.matmul(device.put(a[:m]), right, dtype=wl.f32, batch_invariant=True)
        assert np.array_equal(device.get(made), whole[:m]), m


def test_the_transposed_product_has_the_same_bits(device, randn):
    a, b = randn((40, 1032), "bf16"), randn((136, 1032), "bf16").T
    left, right = device.put(a), device.put_strided(b)
    made = [gemm.matmul(left, right, dtype=F32, config=c) for c in (SMALL, SWAPPED)]
    assert np.array_equal(*(device.get(one) for one in made))


def test_repeats_are_identical(device, randn):
    a, b = device.put(randn((130, 264), "bf16")), device.put(randn((264, 200), "bf16"))
    first = device.get(gemm.matmul(a, b))
    for _ in range(1000 if device.name == "gpu" else 3):
        assert np.array_equal(device.get(gemm.matmul(a, b)), first)


# ---- what is refused ---------------------------------------------------------------------------


def test_a_batch_that_does_not_fit():
    a, b = np.zeros((2, 8, 16), F16), np.zeros((3, 16, 8), F16)
    with pytest.raises(ShapeError, match="axis 0 of `b` is 3, and B is 2"):
        gemm.matmul(a, b)
    with pytest.raises(ShapeError, match="axis 0 of `out` is 3, and B is 2"):
        gemm.matmul(a, b[0], np.zeros((3, 8, 8), F16))
    with pytest.raises(ShapeError, match="`out` has 2 axes"):
        gemm.matmul(a, b[0], np.zeros((8, 8), F16))
    with pytest.raises(ShapeError, match="`residual` has 3 axes"):
        gemm.matmul(a[0], b[0], residual=np.zeros((1, 8, 8), F16))
    with pytest.raises(ShapeError, match="`a` has 4 axes"):
        gemm.matmul(a[None], b[0])
    with pytest.raises(ShapeError, match="`a` has 1 axes"):
        gemm.matmul(a[0, 0], b[0])


def test_wrong_words_and_types():
    a, b = np.zeros((8, 16), F16), np.zeros((16, 8), F16)
    with pytest.raises(LaunchError, match="there is no activation 'tanhh'"):
        gemm.matmul(a, b, activation="tanhh")
    with pytest.raises(ShapeError, match="a result of i32"):
        gemm.matmul(a, b, dtype=np.int32)
    with pytest.raises(ShapeError, match="`residual` is f64"):
        gemm.matmul(a, b, residual=np.zeros((8, 8)))
    with pytest.raises(ShapeError, match="a tile of the transposed product for one row"):
        gemm.matmul(a[:1], b, config=SWAPPED)
    with pytest.raises(LaunchError, match="`a` is a tensor, and a list was given"):
        gemm.matmul([[1.0]], b)
    with pytest.raises(LaunchError, match="`out` shares memory with `residual`"):
        held = np.zeros((9, 8), F16)
        gemm.matmul(a, b, held[1:], residual=held[:8])
    with pytest.raises(ShapeError, match="`out` overlaps `bias`"):
        held = np.zeros((9, 8), F16)
        gemm.matmul(a, b, held[:8], bias=held[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"BM": 96}, "BM = 96 with MATH = 1"),
        ({"BM": 0}, "BM = 0 with MATH = 1"),
        ({"MATH": 2}, "BM = 64 with MATH = 2"),
        ({"EN": 48}, "slices of EN = 48 columns in tiles of BN = 64"),
        ({"EN": 0}, "has EN = 0"),
        ({"STAGES": 0}, "has STAGES = 0"),
        ({"GROUP": 0}, "has GROUP = 0"),
        ({"CLUSTER": (0, 1)}, r"has CLUSTER = \(0, 1\)"),
        ({"SPLIT": -3}, "has SPLIT = -3"),
        ({"SPLIT": 2, "PINGPONG": True}, "SPLIT besides PINGPONG"),
    ],
)
def test_tiles_that_cannot_be(change, said):
    a = np.zeros((64, 64), F16)
    row = {**SMALL.row(), **change}
    with pytest.raises(ShapeError, match=said) as refused:
        gemm.matmul(a, a, config=row)
    if "BM" in said:
        assert "the nearest above: BM=" in str(refused.value)


def test_a_config_that_is_none():
    a = np.zeros((64, 64), F16)
    matmul: Any = gemm.matmul
    with pytest.raises(LaunchError, match="`STEPS` of `config` is unknown"):
        matmul(a, a, config={**SMALL.row(), "STEPS": 3})
    with pytest.raises(LaunchError, match="`BN` of `config` is missing"):
        matmul(a, a, config={"BM": 64})
    with pytest.raises(LaunchError, match="`config` is a str"):
        matmul(a, a, config="large")
    for name, value in (("STAGES", "2"), ("GROUP", 2.5), ("SWAP", 1), ("BM", True)):
        with pytest.raises(LaunchError, match=f"`config` has {name} = "):
            matmul(a, a, config={**SMALL.row(), name: value})
    for cluster in (2, (2,), [1, 2, 1], (2, "1"), (True, 1)):
        with pytest.raises(LaunchError, match="`config` has CLUSTER = ") as refused:
            matmul(a, a, config={**SMALL.row(), "CLUSTER": cluster})
        assert "two integers" in str(refused.value)


def test_factors_that_are_no_numbers():
    a, one = np.zeros((64, 64), F16), np.ones(1, F32)
    matmul: Any = gemm.matmul
    for given in ({"alpha": "2"}, {"alpha": None}, {"beta": one}, {"alpha": 1j}):
        (name,) = given
        with pytest.raises(LaunchError, match=f"`{name}` is .*, and no number"):
            matmul(a, a, residual=a, **given)
    for promote in ("128", 128.0, True, -128):
        with pytest.raises(LaunchError, match="promote="):
            matmul(a, a, promote=promote)
    assert matmul(a, a, alpha=np.float32(2), beta=np.int64(3), residual=a).shape == (64, 64)


def test_an_operand_that_is_missing_and_a_result_of_two_types():
    a, out = np.zeros((64, 64), F16), np.zeros((64, 64), F32)
    matmul: Any = gemm.matmul
    for given in ((None, a), (a, None)):
        with pytest.raises(LaunchError, match="is a tensor, and None was given"):
            matmul(*given)
    with pytest.raises(ShapeError, match="`out` is f32, and `dtype` is f16"):
        matmul(a, a, out, dtype=np.float16)
    assert matmul(a, a, out, dtype=np.float32) is out


def test_too_many_stages_are_refused_with_their_bytes():
    a = np.zeros((64, 64), F16)
    with pytest.raises(CompileError, match="bytes of shared memory"):
        gemm.matmul(a, a, config=replace(SMALL, STAGES=20))


def test_the_epilogue_costs_nothing_where_it_is_not_asked_for():
    """Neither a multiplication nor a load: the text of a plain product names none of it."""
    a = np.zeros((64, 64), F16)
    call = kernel.gemm.launch(1).call(a, a, np.zeros((64, 64), F16), **SMALL.constants())
    text = call.text("tile")
    assert "residual" not in text and "alpha" not in text and "bias" not in text
