"""Products of the matrix unit: descriptors, operands in either order, retirement, fences."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.asynchronous import product
from warploom.base.dtypes import bf16, f16
from warploom.base.errors import CheckError
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.shared import SharedLayout
from warploom.ir.ops import mbarrier, wgmma
from warploom.sim.matrix import Accumulator, Operand, places
from warploom.sim.program import prepare

ORDERS = [(a, b) for a in (False, True) for b in (False, True)]


def operands(dtype: Any, n: int, a_t: bool, b_t: bool) -> tuple[np.ndarray, np.ndarray]:
    """a [64, 64] and b [64, n], stored the other way round where transposed (a) or not (b)."""
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((64, 64), (64, n)))
    stored_a = np.ascontiguousarray(a.T) if a_t else a
    return stored_a, b if b_t else np.ascontiguousarray(b.T)


def run(kernel: Kernel, dtype: Any, n: int, a_t: bool, b_t: bool, **options: Any) -> Any:
    """Result, expected result, findings."""
    a, b = operands(dtype, n, a_t, b_t)
    c = np.zeros((64, n), np.float32)
    result = prepare(kernel).run((1,), [a, b, c], **options)
    left, right = a.astype(np.float64), b.astype(np.float64)
    expected = (left.T if a_t else left) @ (right if b_t else right.T)
    return c, expected, result.findings


@pytest.mark.parametrize(("a_t", "b_t"), ORDERS)
@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
@pytest.mark.parametrize("n", [64, 128, 256])
def test_products_in_every_order(dtype: Any, n: int, a_t: bool, b_t: bool):
    c, expected, found = run(
        product(dtype, n, a_t, b_t), dtype.numpy, n, a_t, b_t, checked=True, seed=n
    )
    assert not found
    assert np.abs(c - expected).max() < 1e-4


@pytest.mark.parametrize("n", [8, 16, 40])
def test_narrow_products(n: int):
    c, expected, _ = run(product(bf16, n), bf16.numpy, n, False, False)
    assert np.abs(c - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("field", "number"),
    [("a_stride", 512), ("b_stride", 512), ("a_swizzle", 64), ("b_transposed", True)],
)
def test_a_wrong_descriptor_gives_wrong_numbers(field: str, number: Any):
    kernel = product()
    for op in walk(kernel.body):
        if isinstance(op, wgmma.Mma):
            setattr(op, field, number)
    c, expected, _ = run(kernel, bf16.numpy, 64, False, False)
    assert not np.abs(c - expected).max() < 1


# ---- descriptors -------------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_rows_along_k_lie_as_the_layout_says(swizzle: int):
    layout = SharedLayout((64, swizzle // 2), 2, swizzle)
    operand = Operand(64, swizzle, 16, 8 * swizzle, transposed=False)
    for k in range(0, swizzle // 2, 16):
        chunks, _ = places(operand, 8192 + 2 * k)
        expected = [
            [(8192 + layout.byte_of(row, k + 8 * half)) // 16 for half in (0, 1)]
            for row in range(64)
        ]
        assert chunks.tolist() == expected


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_rows_along_the_other_axis_lie_as_the_layout_says(swizzle: int):
    layout = SharedLayout((32, 128), 2, swizzle)
    operand = Operand(128, swizzle, layout.panel_bytes, 8 * swizzle, transposed=True)
    for k in (0, 16):
        chunks, last = places(operand, k * swizzle)
        expected = [
            [layout.byte_of(k + row, 8 * group) // 16 for group in range(16)] for row in range(16)
        ]
        assert chunks.tolist() == expected
        assert last <= layout.bytes


def test_without_a_swizzle_core_matrices_are_one_behind_the_other():
    chunks, _ = places(Operand(16, 0, 128, 256, transposed=False), 0)
    assert chunks[:, 0].tolist() == [*range(8), *range(16, 24)]
    assert chunks[:, 1].tolist() == [*range(8, 16), *range(24, 32)]
    turned, _ = places(Operand(16, 0, 256, 128, transposed=True), 0)
    assert turned[:, 0].tolist() == [*range(8), *range(16, 24)]
    assert turned[:, 1].tolist() == [*range(8, 16), *range(24, 32)]


def test_accumulators_are_fragments():
    rows, columns = np.meshgrid(np.arange(128), np.arange(48), indexing="ij")
    for numbers in (rows, columns):
        acc = Accumulator(np.zeros((1, 1, 1, 1, 1), np.float32), (4, 12))
        acc.rows[...] = numbers.reshape(2, 64, 48)
        tile = acc.registers()
        for register, warp, lane in ((0, 0, 0), (1, 2, 5), (3, 3, 31)):
            for pair in (0, 1, 6, 11):
                row = 64 * (register // 2) + 16 * warp + lane // 4 + 8 * (register % 2)
                column = 8 * (pair // 2) + 2 * (lane % 4) + pair % 2
                assert tile[register, pair, 0, warp, lane] == numbers[row, column]
        back = Accumulator(tile, (4, 12))
        assert (back.rows == acc.rows).all()


# ---- order -------------------------------------------------------------------------------------


def changed(drop: type, **fields: Any) -> Kernel:
    """The product without operations of a kind, or with other attributes of them."""
    kernel = product()
    for op in list(kernel.body.ops):
        if isinstance(op, drop):
            if fields:
                for name, value in fields.items():
                    setattr(op, name, value)
            else:
                kernel.body.ops.remove(op)
    return kernel


def code_of(kernel: Kernel) -> str:
    with pytest.raises(CheckError) as caught:
        run(kernel, bf16.numpy, 64, False, False)
    return caught.value.code


def test_an_accumulator_is_valid_when_its_group_has_retired():
    assert code_of(changed(wgmma.WaitGroup, pending=1)) == "M014"
    assert code_of(changed(wgmma.Commit)) == "M014"


def test_a_wait_that_leaves_groups_in_flight_is_followed_by_one_that_does_not():
    c, expected, _ = run(product(waits=(1, 0)), bf16.numpy, 64, False, False)
    assert np.abs(c - expected).max() < 1e-4


def test_a_product_needs_a_fence():
    assert code_of(changed(wgmma.Fence)) == "M015"


def test_operands_that_have_not_arrived_are_found():
    kernel = changed(mbarrier.Wait)
    _, _, found = run(kernel, bf16.numpy, 64, False, False, checked=True)
    assert {f.code for f in found} == {"R101", "M013"}


def test_operands_outside_shared_memory_are_found():
    assert code_of(changed(wgmma.Mma, b_stride=1 << 17)) == "M001"


def test_infinite_operands_are_computed_as_ieee_says():
    a, b = operands(ml_dtypes.bfloat16, 64, False, False)
    a[0, 0], b[0, 0], b[1, 0] = np.inf, 0, 1
    c = np.zeros((64, 64), np.float32)
    prepare(product()).run((1,), [a, b, c])
    assert np.isnan(c[0, 0])
    assert c[0, 1] == np.inf
    assert np.isfinite(c[1:, :1]).all()
