"""Layouts that a kernel pins and asserts: the same numbers on both devices, converts where needed,
and reports."""

import numpy as np
import pytest

import warploom as wl

LAYOUTS = {
    "columns": "l32:1*1 w4:0*1 r8:0*4 r2:1*32",
    "rows": "l32:0*1 w4:1*1 r16:1*4",
    "wide": "l16:1*4 l2:0*1 w4:0*2 r4:1*1 r4:0*8",
    "matrix": "l4:1*2 l8:0*1 w2:0*16 w2:1*32 r2:0*8 r2:1*1 r4:1*8",
    "repeated": "l8:1*8 l4:_ w4:0*8 r8:0*1 r8:1*1",
    "padded": "l32:0*1 w4:1*32 r32:1*1",
}


@wl.kernel
def moved(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, FIRST: wl.const, SECOND: wl.const):
    """y = 2 x + 1 and z its row sums, in two layouts."""
    rows, columns = wl.ds(0, 32), wl.ds(0, 64)
    t = wl.pin(wl.load(x[rows, columns]), FIRST)
    wl.assert_layout(t + t, FIRST)
    u = wl.pin(t + t, SECOND) + 1
    wl.assert_layout(u, SECOND)
    back = wl.pin(u, t)
    wl.assert_layout(back, FIRST)
    wl.assert_layout(back, t)
    wl.store(y[rows, columns], back)
    wl.store(z[rows], wl.sum(u, axis=1))


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_the_same_numbers_in_every_layout(device, first: str, second: str, dtype):
    x = np.random.default_rng(0).integers(-30, 30, (32, 64)).astype(dtype)
    y, z = device.empty((32, 64), dtype), device.empty((32,), dtype)
    call = moved.launch(1).call(device.put(x), y, z, FIRST=LAYOUTS[first], SECOND=LAYOUTS[second])
    if device.name == "sim":
        assert call.check().clean
    else:
        call.run()
    assert np.array_equal(device.get(y), 2 * x + 1)
    assert np.array_equal(device.get(z), (2 * x + 1).sum(axis=1).astype(dtype))


def converts(call) -> int:
    return call.text("roles").count("tile.convert(")


def test_a_load_is_made_in_the_layout_and_a_change_is_one_convert():
    x, y, z = np.zeros((32, 64), np.int32), np.zeros((32, 64), np.int32), np.zeros(32, np.int32)
    same = moved.launch(1).call(x, y, z, FIRST=LAYOUTS["wide"], SECOND=LAYOUTS["wide"])
    other = moved.launch(1).call(x, y, z, FIRST=LAYOUTS["wide"], SECOND=LAYOUTS["rows"])
    assert converts(same) == 0
    assert converts(other) == 2


@wl.kernel
def of_a_product(a: wl.Tensor, b: wl.Tensor, y: wl.Tensor, LAYOUT: wl.const, INSIDE: wl.const):
    """y = a · b + a, the sum pinned; INSIDE: what is added to it."""
    at = wl.ds(0, 64)
    left, right = wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)
    left.store(wl.load(a[at, at]))
    right.store(wl.load(b[at, at]))
    acc = wl.dot_async(left, right, wl.zeros((64, 64), wl.f32)).wait()
    more = wl.load(a[at, at]).cast(wl.f32)
    if INSIDE:
        more = wl.pin(more, LAYOUT)
    else:
        acc = wl.pin(acc, LAYOUT)
    wl.store(y[at, at], acc + more)


WIDE = "l16:1*4 l2:0*1 w4:0*2 r4:1*1 r8:0*8"


def product_call(device, inside: bool):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 3, (64, 64)).astype(np.float16) for _ in range(2))
    y = device.empty((64, 64), np.float32)
    call = of_a_product.launch(1).call(device.put(a), device.put(b), y, WIDE, inside)
    return call, y, (a @ b + a).astype(np.float32)


def test_a_sum_of_products_is_moved_to_its_pin(device):
    call, y, expected = product_call(device, inside=False)
    call.run()
    assert np.array_equal(device.get(y), expected)
    assert converts(call) == 1


def test_the_matrix_unit_decides_before_a_pin(device):
    call, _, _ = product_call(device, inside=True)
    with pytest.raises(wl.CompileError) as caught:
        call.run()
    assert caught.value.code == "L026"


REFUSED = {
    "L026 conflict": "wl.pin(t, A) + wl.pin(wl.load(x[rows, columns]), B)",
    "L026 lanes": "wl.pin(t, 'l16:1*1 w4:0*1 r8:0*4 r4:1*16')",
    "L026 words": "wl.pin(t, 'l32:1*1 x4:0*1')",
    "L026 warps": "wl.pin(t, 'l32:1*1 w2:0*1 r16:0*2 r2:1*32')",
    "L026 holes": "wl.pin(t, 'l32:1*1 w4:0*1 r4:0*4 r2:1*32')",
    "L026 twice": "wl.pin(t, 'l32:1*1 w4:0*1 r16:0*2 r2:1*32')",
    "L026 axis": "wl.pin(t, 'l32:2*1 w4:0*1 r8:0*4 r2:1*32')",
    "L027": "assert_it(wl.pin(t, A), B)",
    "L027 other": "assert_it(wl.pin(t, A), wl.pin(t, B))",
    "T005 shape": "wl.pin(t, wl.zeros((64, 32), wl.f32))",
    "T015 kind": "wl.pin(t, 32)",
}

SOURCE = """
import warploom as wl

A, B = {a!r}, {b!r}


@wl.function
def assert_it(t, layout):
    wl.assert_layout(t, layout)
    return t


@wl.kernel
def kernel(x: wl.Tensor, y: wl.Tensor):
    rows, columns = wl.ds(0, 32), wl.ds(0, 64)
    t = wl.load(x[rows, columns])
    wl.store(y[rows, columns], {body})
"""


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path, golden, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE.format(a=LAYOUTS["wide"], b=LAYOUTS["rows"], body=REFUSED[name]))
    names: dict = {"__name__": "kernel"}
    exec(compile(path.read_text(), "kernel.py", "exec"), names)
    x, y = np.zeros((32, 64), np.float32), np.zeros((32, 64), np.float32)
    with pytest.raises(wl.Error) as caught:
        names["kernel"][1](x, y)
    assert caught.value.code == name.split()[0]
    golden(str(caught.value), name)
