"""The rules of docs/numerics.md, one test each, on both devices."""

import math
import re
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from tests.language.test_products import in_steps
from tests.ops import arithmetic as ops
from tests.ops.tile import nearest
from tests.ops.trial import F8, bits, convert, edges, pairs, spread, wide
from tests.ops.wgmma import as_multiplied
from warploom.base.dtypes import BY_NAME
from warploom.base.target import product_of
from warploom.ir.kernel import walk
from warploom.ir.layout.layout import Place
from warploom.ir.ops import tile
from warploom.ir.parser import parse_kernel

ROOT = Path(__file__).parents[2]


def same(found, expected):
    """Equal bits, NaN as one class."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    wrong = np.argwhere(bits(found) != bits(expected))
    assert not len(wrong), [(tuple(i), found[tuple(i)], expected[tuple(i)]) for i in wrong[:5]]


def run(device, function, *arrays, dtype=None):
    """A function of `tests.ops.arithmetic`, or any `wl.function`, on tiles of all the elements."""
    first = arrays[0]
    out = device.empty(first.shape, first.dtype if dtype is None else dtype)
    kernel = ops.one_tile if len(arrays) == 1 else ops.on_tiles
    kernel[1](*(device.put(a) for a in arrays), out, F=function, SIZE=len(first))
    return device.get(out)


def test_every_rule_has_a_test():
    rules = re.findall(
        r"^\| (N\d\d) \|", (ROOT / "docs/numerics.md").read_text(encoding="utf-8"), re.M
    )
    tests = re.findall(r"^def test_(n\d\d)_", Path(__file__).read_text(encoding="utf-8"), re.M)
    assert rules
    assert set(rules) == {name.upper() for name in tests}


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_n01_floor_division(device, dtype):
    a, b = pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    bound = np.iinfo(a.dtype)
    quotients = [x // y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    kept = np.array([bound.min <= q <= bound.max for q in quotients])
    expected = np.array([q for q in quotients if bound.min <= q <= bound.max], a.dtype)
    same(run(device, ops.floordiv, a, b)[kept], expected)
    rest = [x % y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    same(run(device, ops.mod, a, b), np.array(rest, a.dtype))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_n01_floor_division_of_floats(device, dtype):
    # Python computes in f64: quotients below 2^22 come out alike, and a remainder is exact but for
    # one sum.
    a, b = pairs(dtype)
    a = np.concatenate([a, 50 * spread(dtype, (500,))]).astype(a.dtype)
    b = np.concatenate([b, spread(dtype, (500,), seed=1)]).astype(a.dtype)
    x, y = a.astype(np.float64), b.astype(np.float64)
    kept = np.isfinite(x) & np.isfinite(y) & (y != 0)
    with np.errstate(all="ignore"):
        kept &= (abs(x / y) < 2**22) & ((abs(x / y) > 2**-20) | (x == 0))
    a, b = a[kept], b[kept]
    both = list(zip(a.astype(np.float64).tolist(), b.astype(np.float64).tolist(), strict=True))
    assert len(both) > 500
    quotients = np.array([x // y for x, y in both]).astype(np.float32)
    same(run(device, ops.floordiv, a, b), quotients.astype(a.dtype))
    rests = np.array([x % y for x, y in both]).astype(np.float32)
    same(run(device, ops.mod, a, b), rests.astype(a.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_n01_floor_division_by_zero_and_of_infinity(device, dtype):
    inf, nan = float("inf"), float("nan")
    a = np.array([1, -1, 0, inf, -inf, 1, -1, -1, nan, 1, 5, -0.0], dtype)
    b = np.array([0, 0, 0, 2, 2, inf, inf, -inf, 1, nan, -0.0, 3], dtype)
    quotients = [inf, -inf, nan, nan, nan, 0, -1, 0, nan, nan, -inf, -0.0]
    same(run(device, ops.floordiv, a, b), np.array(quotients, dtype))
    rests = [nan, nan, nan, nan, nan, 1, inf, -1, nan, nan, nan, 0]
    same(run(device, ops.mod, a, b), np.array(rests, dtype))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_n02_nan_propagates(device, dtype):
    a, b = pairs(dtype)
    nan = np.isnan(wide(a)) | np.isnan(wide(b))
    for function in (ops.maximum, ops.minimum):
        assert np.array_equal(np.isnan(wide(run(device, function, a, b))), nan)
    rows = np.stack([wide(a)[:99], wide(b)[:99]]).astype(np.float32)
    assert np.isnan(rows).any()

    out = device.empty((99,), np.float32)
    largest_of_two[1](device.put(rows), out, SIZE=99)
    assert np.array_equal(np.isnan(device.get(out)), np.isnan(rows).any(0))


@wl.kernel
def largest_of_two(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    wl.store(z[wl.ds(0, SIZE)], wl.max(wl.load(x[wl.ds(0, 2), wl.ds(0, SIZE)]), 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_n03_zeros_are_ordered(device, dtype):
    a = np.array([0.0, -0.0, 0.0, -0.0]).astype(dtype)
    b = np.array([-0.0, 0.0, 0.0, -0.0]).astype(dtype)
    same(run(device, ops.maximum, a, b), np.array([0.0, 0.0, 0.0, -0.0]).astype(dtype))
    same(run(device, ops.minimum, a, b), np.array([-0.0, -0.0, 0.0, -0.0]).astype(dtype))


@wl.kernel
def extremes(x: wl.Tensor, z: wl.Tensor, ROWS: wl.const, SIZE: wl.const):
    t = wl.load(x[wl.ds(0, ROWS), wl.ds(0, SIZE)])
    wl.store(z[0, wl.ds(0, ROWS)], wl.argmax(t, 1))
    wl.store(z[1, wl.ds(0, ROWS)], wl.argmin(t, 1))


@pytest.mark.parametrize("size", [7, 33, 1000])
def test_n04_ties_take_the_lowest_index(device, size):
    rows = np.zeros((6, size), np.float32)
    rows[1, 3:] = 5
    rows[2, [2, 5]] = np.nan
    rows[3, 1:] = -np.inf
    rows[4, size - 1] = -1
    rows[5] = -0.0
    rows[5, 4] = 0.0  # equal to −0: no better
    out = device.empty((2, 6), np.int32)
    extremes[1](device.put(rows), out, ROWS=6, SIZE=size)
    same(device.get(out)[0], np.array([0, 3, 2, 0, 0, 0], np.int32))
    same(device.get(out)[1], np.array([0, 0, 2, 1, size - 1, 0], np.int32))


@wl.function
def plus_a_tenth(a):
    return a + 0.1


@wl.function
def mixes(a, b):
    return a + b


def test_n05_floats_never_mix(device):
    a = np.linspace(-3, 3, 50).astype(np.float16)
    same(run(device, plus_a_tenth, a), a + np.float16(0.1))
    with pytest.raises(wl.CompileError) as caught:
        run(device, mixes, a, a.astype(np.float32))
    assert caught.value.code == "T001"


@wl.function
def minus_zero_plus(a):
    return a + a


@wl.function
def times_minus_one(a):
    return a * -1.0


@wl.kernel
def sums(x: wl.Tensor, z: wl.Tensor, ROWS: wl.const, SIZE: wl.const):
    wl.store(z[wl.ds(0, ROWS)], wl.sum(wl.load(x[wl.ds(0, ROWS), wl.ds(0, SIZE)]), 1))


@pytest.mark.parametrize("size", [1, 7, 33, 576, 1000])
def test_n06_signed_zeros(device, size):
    zeros = np.array([0.0, -0.0], np.float32)
    same(run(device, ops.neg, zeros), -zeros)
    same(run(device, times_minus_one, zeros), -zeros)
    same(run(device, minus_zero_plus, zeros), zeros)
    rows = np.full((3, size), -0.0, np.float32)
    rows[1, size // 2] = 0.0
    out = device.empty((3,), np.float32)
    sums[1](device.put(rows), out, ROWS=3, SIZE=size)
    same(device.get(out), np.array([-0.0, 0.0, -0.0], np.float32))


def test_n07_denormals(device):
    tiny = (np.arange(1, 60) * 2.0**-149).astype(np.float32)
    assert (tiny > 0).all()
    same(run(device, ops.add, tiny, tiny), tiny * 2)
    same(run(device, ops.mul, tiny, np.full_like(tiny, 3)), tiny * 3)
    same(run(device, ops.div, tiny, np.full_like(tiny, 2)), tiny / 2)
    small = np.full(59, 2.0**-120, np.float32)
    same(run(device, ops.mul, small, np.full_like(small, 2.0**-20)), small * np.float32(2.0**-20))
    same(run(device, ops.sqrt, tiny), np.sqrt(tiny))
    for kind in (np.float16, ml_dtypes.bfloat16):
        values = np.array([float(ml_dtypes.finfo(kind).smallest_subnormal) * 3]).astype(kind)
        same(run(device, ops.neg, values), -values)


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div"])
def test_n08_each_operation_rounds_by_itself(device, kind):
    rng = np.random.default_rng(8)
    a, b = (np.ldexp(rng.standard_normal(3000), rng.integers(-30, 30, 3000)) for _ in "ab")
    a, b = a.astype(np.float32), b.astype(np.float32)
    f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[kind]
    same(run(device, ops.BINARY[kind], a, b), f(a, b))
    same(run(device, ops.sqrt, np.abs(a)), np.sqrt(np.abs(a)))


@wl.function
def product_and_sum(a, b):
    return a * b + b


@wl.function
def fused(a, b):
    return wl.fma(a, b, b)


def test_n09_nothing_is_fused(device):
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(3000).astype(np.float32) for _ in "ab")
    found, once = run(device, product_and_sum, a, b), run(device, fused, a, b)
    same(found, a * b + b)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(y))
        for x, y in zip(a, b, strict=True)
    ]
    same(once, np.array([nearest(e) for e in exact], np.float32))
    assert (found != once).any()


@wl.kernel
def casts(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    wl.store(z[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)]).cast(z.dtype))


def cast(device, array, kind):
    out = device.empty(array.shape, kind)
    casts[1](device.put(array), out, SIZE=len(array))
    return device.get(out)


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_n10_narrowing_rounds_to_nearest_even(device, target):
    info = ml_dtypes.finfo(ml_dtypes.bfloat16 if target == "bf16" else np.float16)
    step, most = float(info.eps), float(info.max)
    ties = [1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 2.0**-23, -(1 + step / 2)]
    ends = [most, most * (1 + step / 4), most * (1 + step / 2), -most * 1.5, math.inf, math.nan]
    small = [float(info.smallest_subnormal) * f for f in (0.5, 0.75, 1.5, 2.5)]
    with np.errstate(all="ignore"):
        values = np.array([*ties, *ends, *small]).astype(np.float32)
    found = cast(device, values, info.dtype)
    same(found, convert(values, target))
    assert found[:4].astype(np.float64).tolist() == [1, 1 + 2 * step, 1 + step, -1]
    assert found[6].astype(np.float64) == math.inf


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("target", [np.int32, np.int64])
def test_n11_to_integers(device, source, target):
    values = np.array(
        [0.9, -0.9, 1.9, -2.5, 3e9, -3e9, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**31]
    )
    with np.errstate(all="ignore"):
        values = np.concatenate([values.astype(edges(source).dtype), edges(source)])
    same(cast(device, values, target), convert(values, "i32" if target is np.int32 else "i64"))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_n12_integers_wrap(device, dtype):
    info = np.iinfo(dtype)
    most, least = np.array([info.max], dtype), np.array([info.min], dtype)
    one = np.array([1], dtype)
    with np.errstate(all="ignore"):
        same(run(device, ops.add, most, one), least)
        same(run(device, ops.sub, least, one), most)
        same(run(device, ops.mul, most, most), one)
        same(run(device, ops.neg, least), least)
        same(run(device, ops.shl, most, one), np.array([-2], dtype))
        same(run(device, ops.floordiv, least, -one), least)
        same(run(device, ops.absolute, least), least)


@pytest.mark.parametrize("size", [33, 576, 1000])
@pytest.mark.parametrize("warps", [1, 2, 4])
def test_n13_the_order_of_sums(device, size, warps):
    """Recomputed from the layout that the compiled kernel states: registers, lanes, warps."""
    x = np.random.default_rng(13).standard_normal((1, size)).astype(np.float32)
    out = device.empty((1,), np.float32)
    call = sums.launch(1, warps=warps).call(device.put(x), out, ROWS=1, SIZE=size)
    call.run()
    same(device.get(out), np.array([sum_by_layout(call, x[0], warps)], np.float32))
    # Neither the address nor the stride changes a bit.
    memory = np.zeros((3, 2 * size + 3), np.float32)
    view = memory[1:2, 3 : 3 + 2 * size : 2]
    view[...] = x
    other = device.empty((1,), np.float32)
    sums.launch(1, warps=warps)(device.put_strided(view), other, ROWS=1, SIZE=size)
    same(device.get(other), device.get(out))


def sum_by_layout(call, row, warps):
    (reduction,) = [
        op for op in walk(parse_kernel(call.text("roles")).body) if isinstance(op, tile.Reduce)
    ]
    layout = reduction.value.type.layout
    assert layout.warps == warps
    at = layout.coordinates(1)
    held = np.where(at < len(row), row[np.minimum(at, len(row) - 1)], np.float32(-0.0))
    total = held[0]
    for register in held[1:]:
        total = total + register
    for mode in layout.of(Place.LANE, 1):
        step = 1
        while step < mode.extent:
            mask = layout.divisor(mode) * step
            total = total + total[:, np.arange(32) ^ mask]
            step *= 2
    parts = [total[w, 0] for w in range(warps)] if layout.of(Place.WARP, 1) else [total[0, 0]]
    result = parts[0]
    for part in parts[1:]:
        result = np.float32(result + part)
    return result


@pytest.mark.parametrize("size", [1, 7, 80, 577])
def test_n14_pads_take_no_part(device, size):
    """Memory behind the row is full of NaN and of numbers that would win."""
    memory = np.full((4, size + 40), np.nan, np.float32)
    memory[:, :size] = -np.arange(1, 1 + size)
    out = device.empty((4,), np.float32)
    sums[1](device.put_strided(memory[:, :size]), out, ROWS=4, SIZE=size)
    same(device.get(out), np.full(4, -size * (size + 1) / 2, np.float32))
    best = device.empty((2, 4), np.int32)
    extremes[1](device.put_strided(memory[:, :size]), best, ROWS=4, SIZE=size)
    same(device.get(best), np.array([[0] * 4, [size - 1] * 4], np.int32))


@wl.kernel
def shifted(x: wl.Tensor, z: wl.Tensor, i: wl.i32, SIZE: wl.const):
    t = wl.load(x[wl.ds(i, SIZE)])
    wl.store(z[wl.ds(i + 2, SIZE)], t + wl.load(x[wl.ds(i, SIZE)], other=5))


@pytest.mark.parametrize("start", [-70, -3, 0, 5, 40, 2**31 - 64])
def test_n15_outside_of_a_tensor(device, start):
    x = np.arange(1, 41, dtype=np.float32)
    base = np.full(60, -1, np.float32)
    out = device.put_strided(base[10:50])
    shifted[1](device.put(x), out, start, SIZE=32)
    expected = base[10:50].copy()
    for n in range(32):
        inside = 0 <= start + n < 40
        if 0 <= start + n + 2 < 40:
            expected[start + n + 2] = 2 * x[start + n] if inside else 5
    same(device.get(out), expected)


def test_n16_bit_equal_arithmetic(device):
    """Against NumPy, which knows nothing of either device (and tests/ops for every edge)."""
    rng = np.random.default_rng(16)
    numbers = rng.integers(-(2**31), 2**31, 4000).astype(np.int32)
    others = rng.integers(-(2**31), 2**31, 4000).astype(np.int32)
    with np.errstate(all="ignore"):
        for kind, f in (("add", np.add), ("mul", np.multiply), ("xor", np.bitwise_xor)):
            same(run(device, ops.BINARY[kind], numbers, others), f(numbers, others))
    raw = rng.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    back = raw[::-1].copy()
    with np.errstate(all="ignore"):
        for kind, f in (("add", np.add), ("mul", np.multiply), ("div", np.divide)):
            same(run(device, ops.BINARY[kind], raw, back), f(raw, back))
    for kind, f in (("lt", np.less), ("eq", np.equal)):
        found = run(device, ops.COMPARE[kind], raw, back, dtype=np.bool_)
        same(found, f(raw, back))
    with np.errstate(all="ignore"):
        for kind, f in (("floor", np.floor), ("ceil", np.ceil), ("round", np.rint)):
            same(run(device, ops.UNARY[kind], raw), f(raw))
    whole = rng.integers(-50, 50, (2, 700)).astype(np.float32)
    out = device.empty((2,), np.float32)
    sums[1](device.put(whole), out, ROWS=2, SIZE=700)
    same(device.get(out), whole.sum(1))


@pytest.mark.parametrize("name", sorted(ops.ULP))
def test_n17_bounds(device, name):
    rng = np.random.default_rng(17)
    points = np.concatenate([rng.uniform(-20, 20, 4000), np.geomspace(1e-30, 1e30, 1000)])
    points = points.astype(np.float32)
    truth = ops._special(name, points)
    found = run(device, ops.UNARY[name], points)
    finite = np.isfinite(truth)
    assert np.array_equal(finite, np.isfinite(found))
    unit = np.spacing(np.abs(truth[finite])).astype(np.float64)
    error = np.abs(found[finite].astype(np.float64) - truth[finite]) / unit
    assert error.max() <= ops.ULP[name]
    assert f"Bound: {ops.ULP[name]} ulp in f32." in getattr(wl, name).__doc__


def test_n18_a_launch_repeats_its_bits(device):
    x = np.random.default_rng(18).standard_normal((8, 3000)).astype(np.float32)
    given = device.put(x)
    seen = set()
    for _ in range(5):
        out = device.empty((8,), np.float32)
        sums[1](given, out, ROWS=8, SIZE=3000)
        seen.add(device.get(out).tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_n19_division_by_zero_and_wide_shifts(device, dtype):
    info = np.iinfo(dtype)
    a = np.array([5, -5, 0, info.max, info.min], dtype)
    zero = np.zeros_like(a)
    same(run(device, ops.floordiv, a, zero), zero)
    same(run(device, ops.mod, a, zero), a)
    for count in (info.bits, info.bits + 1, -1, info.min):
        counts = np.full_like(a, count)
        same(run(device, ops.shl, a, counts), zero)
        same(run(device, ops.shr, a, counts), np.where(a < 0, -1, 0).astype(dtype))


@pytest.mark.parametrize("source", [np.int32, np.int64])
@pytest.mark.parametrize("target", [np.float16, ml_dtypes.bfloat16])
def test_n20_integers_to_short_floats(device, source, target):
    values = np.array([2**24 + 2**15 + 1, 2049, 65519, 65520, -(2**31), 2**24 + 1, 3], source)
    with np.errstate(all="ignore"):
        expected = values.astype(np.float32).astype(target)
    same(cast(device, values, target), expected)


@wl.kernel
def casts_f64(z: wl.Tensor, x: wl.f64):
    wl.store(z[wl.ds(0, 1)], x.cast(z.dtype))


@pytest.mark.parametrize("target", F8)
def test_n21_eight_bits(device, target):
    kind = BY_NAME[target].numpy
    every = np.arange(256, dtype=np.uint8).view(kind)
    numbers = every.astype(np.float32)
    same(cast(device, every, np.float32), numbers)  # exact, by NumPy's own conversion
    finite = np.unique(numbers[np.isfinite(numbers)])
    ties = (finite[1:] + finite[:-1]) / 2
    most = finite[-1]
    ends = np.array([most * 1.03, most * 1.07, 1e30, np.inf, np.nan, 2.0**-149], np.float32)
    values = np.concatenate(
        [ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, -ends[3]), ends, -ends]
    )
    same(cast(device, values, kind), convert(values, target))
    assert cast(device, ends[:5], kind).astype(np.float32).tolist()[:4] == [most] * 4
    for source in (np.float16, ml_dtypes.bfloat16):
        with np.errstate(all="ignore"):
            short = values.astype(source)
        same(cast(device, short, kind), convert(short, target))
    # A tie, and its neighbours that f32 does not tell from it.
    for tie in (float(ties[len(ties) // 2 + 20]), float(ties[4])):
        for number in (tie, np.nextafter(tie, np.inf), np.nextafter(tie, -np.inf), -1e300, np.nan):
            out = device.empty((1,), kind)
            casts_f64[1](out, float(number))
            same(device.get(out), convert(np.array([number]), target))


@wl.kernel
def added_in_memory(x: wl.Tensor, by: wl.Tensor, N: wl.const):
    wl.atomic_add(x[wl.ds(0, N)], wl.load(by[wl.ds(0, N)]))


def test_n22_atomic_sums_flush_denormals(device):
    tiny, small = np.float32(np.finfo(np.float32).tiny), np.float32(1e-40)
    x = np.array([small, tiny, 0.0, -small, 1.0, -0.0, tiny], np.float32)
    by = np.array([small, -small, small, -0.0, -1.0, -small, -tiny * 1.5], np.float32)
    out = device.put(x)
    added_in_memory[1](out, device.put(by), N=7)
    same(device.get(out), np.array([0.0, tiny, 0.0, -0.0, 0.0, -0.0, -0.0], np.float32))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f8e4m3", "f8e5m2"])
def test_n23_products(device, dtype):
    kind = BY_NAME[dtype]
    can = product_of(kind, kind)
    rng = np.random.default_rng(22)
    a, b = (rng.standard_normal((64, 16 * can.depth)).astype(kind.numpy) for _ in "ab")
    c = device.empty((64, 64), np.float32)
    in_steps[1](device.put(a), device.put(b), c, BK=can.depth, SUMS=can.sums)
    left, right = as_multiplied(a), as_multiplied(b)
    error = np.abs(device.get(c) - left @ right.T)
    bound = 16 * 2.0 ** (-8 if kind.is_f8 else -20) * (np.abs(left) @ np.abs(right).T)
    assert (error <= bound).all(), f"{(error / bound).max():.3f} of the bound"
    # The last 13 bits of f32 are cut off, those of the others all count.
    a[:], b[:] = 0, 0
    a[:, 0], b[:, 0] = kind.numpy.type(1.75), kind.numpy.type(-1.5)
    if dtype == "f32":
        a[:, 0] += np.float32(2.0**-10 + 2.0**-11 + 2.0**-23)
    in_steps[1](device.put(a), device.put(b), c, BK=can.depth, SUMS=can.sums)
    exact = -1.5 * (1.75 + 2.0**-10) if dtype == "f32" else -1.5 * 1.75
    assert (device.get(c) == exact).all()
