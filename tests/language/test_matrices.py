"""Tiles of an accumulator's layout move to and from shared memory by 8 x 8 matrices."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.target import SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.ir.kernel import walk
from warploom.ir.ops import shared_memory
from warploom.ir.parser import parse_kernel
from warploom.runtime.compile import machine_kernel
from warploom.runtime.nvrtc import compile_cubin
from warploom.testing.devices import SimDevice

BY_MATRICES = (shared_memory.StoreMatrices, shared_memory.LoadMatrices)


@wl.kernel
def passes(
    a: wl.Tensor,
    b: wl.Tensor,
    y: wl.Tensor,
    M: wl.const,
    N: wl.const,
    SWIZZLE: wl.const,
    TURNED: wl.const,
    BACK: wl.const,
):
    """y = (a · bᵀ) cast, by way of shared memory; BACK: it is loaded as it was stored, and doubled
    as an accumulator is, before it goes out."""
    left, right = wl.shared((M, 16), wl.bf16), wl.shared((N, 16), wl.bf16)
    left.store(wl.load(a[wl.ds(0, M), wl.ds(0, 16)]))
    right.store(wl.load(b[wl.ds(0, N), wl.ds(0, 16)]))
    sums = wl.dot_async(left, right.T, wl.zeros((M, N), wl.f32)).wait()
    whole = wl.shared((N, M) if TURNED else (M, N), y.dtype, slots=2, swizzle=SWIZZLE)
    tile = whole[1].T if TURNED else whole[1]
    tile.store(sums.cast(y.dtype))
    if BACK:
        again = tile.load().cast(wl.f32) + sums
        wl.store(y[wl.ds(0, M), wl.ds(0, N)], again.cast(y.dtype))
    else:
        wl.store(y[wl.ds(0, M), wl.ds(0, N)], tile.load())


def call_of(device, m, n, dtype, swizzle, turned, back):
    a, b = (np.random.default_rng(s).integers(-1, 2, (size, 16)) for s, size in ((1, m), (2, n)))
    y = device.empty((m, n), dtype.numpy)
    held = (device.put(x.astype(wl.bf16.numpy)) for x in (a, b))
    options = {"M": m, "N": n, "SWIZZLE": swizzle, "TURNED": turned, "BACK": back}
    return passes.launch(1).call(*held, y, **options), y, (1 + back) * (a @ b.T)


def moved(call) -> int:
    """How many operations move tiles by matrices."""
    return sum(isinstance(op, BY_MATRICES) for op in walk(parse_kernel(call.text("machine")).body))


SHAPES = [
    (64, 64, 128, False), (64, 128, 128, False), (128, 32, 64, False), (64, 16, 32, False),
    (64, 48, 32, False), (64, 32, 0, False), (64, 64, 128, True), (128, 48, 128, True),
    (64, 16, 0, True),
]  # fmt: skip


@pytest.mark.parametrize(("m", "n", "swizzle", "turned"), SHAPES)
@pytest.mark.parametrize("dtype", [wl.bf16, wl.f16], ids=str)
@pytest.mark.parametrize("back", [False, True])
def test_tiles_come_back(device, m, n, swizzle, turned, dtype, back):
    call, y, expected = call_of(device, m, n, dtype, swizzle, turned, back)
    assert moved(call) == 1 + back
    call.run()
    assert np.array_equal(device.get(y).astype(np.float64), expected)


@pytest.mark.parametrize(
    ("m", "n", "dtype"), [(64, 24, wl.bf16), (64, 64, wl.f32), (64, 32, wl.f8e4m3)]
)
def test_other_tiles_go_element_by_element(device, m, n, dtype):
    call, y, expected = call_of(device, m, n, dtype, None, False, True)
    assert moved(call) == 0
    call.run()
    with np.errstate(over="ignore"):
        assert np.array_equal(device.get(y), expected.astype(dtype.numpy))


@pytest.mark.parametrize("turned", [False, True])
def test_checked_mode_sees_the_same(turned):
    call, y, expected = call_of(SimDevice(), 64, 32, wl.bf16, 64, turned, True)
    findings = call.check()
    assert findings.clean, findings.text()
    assert np.array_equal(y.astype(np.float64), expected)


@pytest.mark.parametrize("turned", [False, True])
def test_instructions_are_those_declared(turned):
    call, _, _ = call_of(SimDevice(), 64, 64, wl.bf16, 128, turned, True)
    kernel = machine_kernel(passes.request(call.arguments, 4), SM_90A)
    built = compile_cubin(emit(kernel, SM_90A), SM_90A)
    assert counted(built.ptx) == declared(kernel)
    assert declared(kernel)["stmatrix"] == declared(kernel)["ldmatrix"] == 4
    assert (".x4.trans." in built.ptx) is turned


@wl.kernel
def unwritten(y: wl.Tensor):
    tile = wl.shared((64, 64), wl.bf16)
    right = wl.shared((64, 64), wl.bf16)
    right.store(wl.zeros((64, 64), wl.bf16))
    acc = wl.dot_async(tile.load(), right.T, wl.zeros((64, 64), wl.f32)).wait()
    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], acc)


def test_what_nobody_wrote_is_found():
    call = unwritten.launch(1).call(np.zeros((64, 64), np.float32))
    assert moved(call) == 1
    findings = call.check()
    assert not findings.clean
    assert "M002" in {f.code for f in findings}
