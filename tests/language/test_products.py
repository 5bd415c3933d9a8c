"""Products of every element type on both devices: steps of K, operands in registers, exactness."""

import numpy as np
import pytest

import warploom as wl
from tests.ops.wgmma import as_multiplied, exact
from warploom.base.dtypes import BY_NAME, DType
from warploom.base.errors import CompileError
from warploom.base.target import product_of
from warploom.ir.kernel import walk
from warploom.ir.ops import tile
from warploom.ir.parser import parse_kernel
from warploom.testing.devices import SimDevice

STEPS = {"f16": 16, "bf16": 16, "f32": 8, "f8e4m3": 32, "f8e5m2": 32, "i8": 32, "u8": 32}


@wl.kernel
def in_steps(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, BK: wl.const, SUMS: wl.const):
    """c = a · bᵀ for 64 rows each, BK columns at a time."""
    left, right = wl.shared((64, BK), a.dtype), wl.shared((64, BK), b.dtype)
    acc = wl.zeros((64, 64), SUMS)
    for k in range(0, a.shape[1], BK):
        left.store(wl.load(a[wl.ds(0, 64), wl.ds(k, BK)]))
        right.store(wl.load(b[wl.ds(0, 64), wl.ds(k, BK)]))
        acc = wl.dot_async(left, right.T, acc).wait()
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc)


@pytest.mark.case("C14")
@pytest.mark.parametrize("dtype", STEPS)
@pytest.mark.parametrize("step", [8, 16, 24, 32, 40, 48, 56, 64])
def test_steps_of_k(device, dtype, step):
    """A step that the unit takes leaves out no column; another is refused with what is near."""
    kind = BY_NAME[dtype]
    can = product_of(kind, kind)
    columns = 3 * step
    held = np.zeros((64, columns), kind.numpy)
    held[np.arange(64), np.linspace(0, columns - 1, 64).astype(int)] = 1
    b = exact(dtype, (64, columns), 1)
    c = device.empty((64, 64), can.sums.numpy)

    def call():
        in_steps[1](device.put(held), device.put(b), c, BK=step, SUMS=can.sums)

    if step % STEPS[dtype]:
        with pytest.raises(CompileError, match=f"K = {step} with {dtype}") as refused:
            call()
        text = str(refused.value)
        assert f"multiple of {STEPS[dtype]}" in text
        above = step // STEPS[dtype] * STEPS[dtype] + STEPS[dtype]
        assert str(above) in text.partition("nearest")[2]
    else:
        call()
        expected = as_multiplied(held) @ as_multiplied(b).T
        assert np.array_equal(device.get(c), expected.astype(can.sums.numpy))


@wl.kernel
def chained(a: wl.Tensor, b: wl.Tensor, v: wl.Tensor, c: wl.Tensor, K: wl.const, DTYPE: wl.const):
    """c = (a · bᵀ) cast · v, the first product's sum being A of the second one in registers."""
    left, right = wl.shared((64, K), a.dtype), wl.shared((64, K), b.dtype)
    last = wl.shared((64, 64), v.dtype)
    left.store(wl.load(a[wl.ds(0, 64), wl.ds(0, K)]))
    right.store(wl.load(b[wl.ds(0, 64), wl.ds(0, K)]))
    last.store(wl.load(v[wl.ds(0, 64), wl.ds(0, 64)]))
    between = wl.dot_async(left, right.T, wl.zeros((64, 64), wl.f32)).wait()
    made = wl.dot_async(between.cast(DTYPE), last.T, wl.zeros((64, 64), wl.f32)).wait()
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], made)


def chain(device, dtype: DType):
    rng = np.random.default_rng(5)
    a, b, v = (
        rng.integers(-1, 2, shape).astype(kind.numpy)
        for shape, kind in (((64, 16), wl.bf16), ((64, 16), wl.bf16), ((64, 64), dtype))
    )
    c = device.empty((64, 64), np.float32)
    held = [device.put(x) for x in (a, b, v)]
    call = chained.launch(1).call(*held, c, K=16, DTYPE=dtype)
    numbers = [x.astype(np.float64) for x in (a, b, v)]
    between = (numbers[0] @ numbers[1].T).astype(dtype.numpy)
    return call, c, between.astype(np.float64) @ numbers[2].T


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f8e4m3", "f8e5m2"])
def test_a_sum_is_an_operand(device, dtype):
    call, c, expected = chain(device, BY_NAME[dtype])
    call.run()
    assert np.array_equal(device.get(c), expected)


@pytest.mark.parametrize(("dtype", "converts"), [("bf16", 0), ("f16", 0), ("f8e4m3", 1)])
def test_sixteen_bits_of_a_sum_lie_as_the_unit_reads_them(dtype, converts):
    call, _, _ = chain(SimDevice(), BY_NAME[dtype])
    ops = list(walk(parse_kernel(call.text("roles")).body))
    assert sum(isinstance(op, tile.Convert) for op in ops) == converts


@wl.kernel
def sums_in_a_loop(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, N: wl.const):
    """A in registers changes from trip to trip while the product before it is under way."""
    right = wl.shared((N, 16), b.dtype)
    right.store(wl.load(b[wl.ds(0, N), wl.ds(0, 16)]))
    acc = wl.zeros((64, N), wl.f32)
    for k in range(0, a.shape[1], 16):
        left = wl.load(a[wl.ds(0, 64), wl.ds(k, 16)])
        acc = wl.dot_async(left * 2, right.T, acc)
    wl.store(c[wl.ds(0, 64), wl.ds(0, N)], acc.wait())


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_operands_in_registers_change_while_products_are_under_way(device, steps):
    a, b = exact("f16", (64, 16 * steps), 1), exact("f16", (72, 16), 2)
    c = device.empty((64, 72), np.float32)
    sums_in_a_loop[1](device.put(a), device.put(b), c, N=72)
    wide = 2 * a.reshape(64, steps, 16).astype(np.float64).sum(1) @ b.T.astype(np.float64)
    assert np.array_equal(device.get(c), wide)


@wl.kernel
def overflowing(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):
    left, right = wl.shared((64, 32), a.dtype), wl.shared((8, 32), b.dtype)
    left.store(wl.load(a[wl.ds(0, 64), wl.ds(0, 32)]))
    right.store(wl.load(b[wl.ds(0, 8), wl.ds(0, 32)]))
    acc = wl.load(c[wl.ds(0, 64), wl.ds(0, 8)])
    wl.store(c[wl.ds(0, 64), wl.ds(0, 8)], wl.dot_async(left, right.T, acc).wait())


def test_sums_of_integers_wrap(device):
    a, b = np.full((64, 32), 255, np.uint8), np.full((8, 32), 127, np.int8)
    start = np.full((64, 8), 2**31 - 5, np.int32)
    c = device.put(start)
    overflowing[1](device.put(a), device.put(b), c)
    expected = (2**31 - 5 + 32 * 255 * 127 + 2**31) % 2**32 - 2**31
    assert (device.get(c) == expected).all()


@wl.kernel
def from_start(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, START: wl.const, STEPS: wl.const):
    """Sums that begin anew in each trip of a loop, added up in registers."""
    left, right = wl.shared((128, 32), a.dtype), wl.shared((32, 32), b.dtype)
    left.store(wl.load(a[wl.ds(0, 128), wl.ds(0, 32)]))
    right.store(wl.load(b[wl.ds(0, 32), wl.ds(0, 32)]))
    sums = wl.zeros((128, 32), wl.f32)
    for _ in range(STEPS):
        sums = sums + wl.dot_async(left, right.T, wl.full((128, 32), START, wl.f32)).wait()
    wl.store(c[wl.ds(0, 128), wl.ds(0, 32)], sums)


@pytest.mark.parametrize("start", [0.0, 1.0, -0.0])
@pytest.mark.parametrize("checked", [False, True])
def test_sums_begin_anew(device, start, checked):
    a, b = exact("bf16", (128, 32), 1), exact("bf16", (32, 32), 2)
    c = device.empty((128, 32), np.float32)
    call = from_start.launch(1).call(device.put(a), device.put(b), c, START=start, STEPS=3)
    text = call.text("cuda")
    # Zeros are not written to registers that the unit then need not read.
    assert ("_fresh(&" in text) is (start == 0 and not np.signbit(start))
    if checked and isinstance(device, SimDevice):
        assert call.check().clean
    else:
        call.run()
    expected = 3 * (a.astype(np.float64) @ b.T.astype(np.float64) + start)
    assert np.array_equal(device.get(c), expected)
