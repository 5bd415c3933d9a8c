"""Expressions: Python computes constants, the language the rest; windows are found by value."""

import math

import numpy as np
import pytest

from warploom.frontend.build import ParamSpec, build
from warploom.ir.kernel import walk
from warploom.ir.ops import tile as tiles
from warploom.ir.types import Tensor, TensorClass


def sizes(source, index, **given):
    """The sizes of the window of a load."""
    body = f"m = wl.program_id(0) * B\nt = wl.load(x[{index}])\nwl.store(x[{index}], t)"
    text = source.body(body, x="f32 1", B=8, **given)
    (line,) = [line for line in text.splitlines() if "tile.load" in line]
    return line.split("sizes=")[1].split(", cache")[0]


@pytest.mark.parametrize(
    "index",
    [
        "m : m + 8",
        "m : 8 + m",
        "m : m + B",
        "wl.program_id(0) * B : (wl.program_id(0) + 1) * B",
        "m + n : n + 8 + m",
        "0:8",
        ":8",
        "2 * n : n + n + 8",
        "x.shape[0] - 8 : x.shape[0]",
        "wl.ds(m, B)",
        "wl.ds(n, 4 + 4)",
    ],
)
def test_windows(source, index):
    assert sizes(source, index) == "(8,)"


@pytest.mark.parametrize("index", ["m : n", "m : m * 2", "0 : x.shape[0]", "n : n * n"])
def test_no_windows(source, index):
    body = f"m = wl.program_id(0) * B\nt = wl.load(x[{index}])"
    (report,) = source.refused_body(body, x="f32 1", B=8).reports
    assert report.code == "T009"


def test_integer_index_drops_the_axis(source):
    text = source.body("wl.store(x[3, 0:4], wl.load(x[n, wl.ds(0, 4)]))", x="f32 n1")
    assert "f32<4> = tile.load" in text and "sizes=(None, 4,)" in text


def test_scalar_load(source):
    text = source.body("a = wl.load(x[n, 2], other=1.0)\nwl.store(x[0, 0], a)", x="f32 n1")
    assert "f32@block = scalar.load" in text and "sizes=(None, None,)" in text


def test_sub_tiles(source, golden):
    body = """
t = wl.load(x[0:8, 0:16])
wl.store(y[0:4], t[2:4, -1][:, None][:, 0][None, 0:2][0][1:2].cast(wl.i32)[:, None][0])
wl.store(y[0:8], t[:, 3].cast(wl.i32))
wl.store(x[0:8, 0:8], t[..., 0:8] if False else t[:, 8:])
"""
    golden(source.body(body.replace("y[0:4]", "y[0:1]"), x="f32 n1", y="i32 1"))


def test_broadcasting(source):
    body = """
row = wl.load(x[0, 0:16])
column = wl.load(x[wl.ds(0, 8), 0])
t = row + column[:, None] * 2
wl.store(x[0:8, 0:16], t - s)
one = wl.max(row)
wl.store(x[0:8, 0:16], t / one)
"""
    assert "f32<8x16> = tile.broadcast" in source.body(body, x="f32 n1")


def test_numbers_take_the_dtype(source):
    body = "t = wl.load(x[0:4])\nwl.store(x[0:4], 2 * t + 1)\na = wl.arange(4) * 3"
    text = source.body(body, x="bf16 1")
    assert "number=2.0, dtype=bf16" in text and "number=3, dtype=i32" in text


def test_signed_zero_is_kept(source):
    text = source.body("wl.store(x[0:4], wl.load(x[0:4], other=-0.0))", x="f32 1")
    assert "number=-0.0" in text


def test_infinity_and_nan(source):
    text = source.body(
        "import_free = float('-inf')\nwl.store(x[0], import_free)\nwl.store(x[1], float('nan'))",
        x="f32 1",
    )
    assert "number=-inf" in text and "number=nan" in text


def test_i32_and_i64_scalars(source, tensor_type):
    wide = tensor_type("f32 1", wide=True)
    text = source.body("wl.store(x[n + x.shape[0]], 1.0)", x=wide)
    assert "scalar.cast(%n) [dtype=i64]" in text


def test_i32_tile_and_i64_scalar(source, tensor_type):
    # A kernel must not break because offsets of one argument need 64 bits.
    body = (
        "at = wl.arange(4) + n\nt = wl.gather(x, (at,), mask=at < x.shape[0])\nwl.store(x[0:4], t)"
    )
    source.body(body, x="f32 1")
    assert "i64<4>" in source.body(body, x=tensor_type("f32 1", wide=True))


def test_every_operator(source, golden):
    body = """
a = wl.load(x[0:4])
b = wl.load(i[0:4])
f = a + 1 - 2 * a / 3
f = -f ** 2
g = (b // 3 % 5 & 7 | 8 ^ 1) << 2 >> 1
h = ~b + +b - (-b)
c = (a < 1) | (a <= 2) & (a == 3) ^ (a != 4)
d = ~(1 > a) & (b >= n)
wl.store(x[0:4], wl.where(c & d, round(f), abs(a)))
wl.store(i[0:4], g + h)
"""
    golden(source.body(body, x="f32 1", i="i32 1"))


def test_functions(source, golden):
    body = """
t = wl.load(x[0:4, 0:8])
t = wl.exp(t) + wl.exp2(t) + wl.log(t) + wl.log2(t) + wl.sqrt(t) + wl.rsqrt(t) + wl.rcp(t)
t = wl.sin(t) + wl.cos(t) + wl.tanh(t) + wl.erf(t) + wl.abs(t)
t = wl.floor(t) + wl.ceil(t) + wl.round(t)
t = wl.maximum(t, 0) + wl.minimum(1, t) + wl.fma(t, s, 1.0)
k = wl.sum(t, axis=0) + wl.max(t, 0) + wl.min(t, axis=-2)
j = wl.argmax(t, axis=1, keepdims=True) + wl.argmin(t, axis=1)[:, None]
b = wl.any(t > 0, axis=1) & wl.all(t < 0, axis=1)
top = wl.scalar(wl.max(k))
wl.store(x[wl.ds(0, 8), 0], wl.cat((k[0:4], k[4:]), axis=0) + top)
wl.store(x[0:4, 0], wl.where(b, j.cast(wl.f32)[:, 0], 0))
wl.store(x[0:8, 0:4], t.T)
"""
    golden(source.body(body, x="f32 n1"))


def test_gather(source, golden):
    body = """
rows = wl.load(i[0:4])
t = wl.gather(x, (rows[:, None], wl.arange(8)))
u = wl.gather(x, (n, wl.arange(8)), mask=wl.arange(8) < n, other=-1.0)
wl.store(x[0:4, 0:8], t + u)
"""
    golden(source.body(body, x="f32 n1", i="i32 1"))


def test_rows(source, golden):
    body = """
lo, hi = wl.load(i[0]), wl.load(i[1])
part = x.rows(lo, hi)
for k in wl.range(0, part.shape[0], 4):
    t = wl.load(part[wl.ds(k, 4), 0:8])
    wl.store(y.rows(lo, hi)[wl.ds(k, 4), 0:8], t)
wl.store(y[0, 0], part.stride(0).cast(wl.f32) + part.shape[1].cast(wl.f32))
"""
    golden(source.body(body, x="f32 n1", y="f32 n1", i="i32 1"))


def test_written_parameters(source):
    kernel = source.build(
        "def kernel(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):\n"
        "    wl.store(c[0], wl.load(a[0]))\n"
        "    wl.store(a.rows(1, 2)[0], 0.0)\n",
        a="f32 1",
        b="f32 1",
        c="f32 1",
    )
    assert kernel.written == (0, 2)


def test_print_and_assert(source, golden):
    body = """
t = wl.load(x[0:4])
print("t is", t, "at", n, 3, wl.f32)
print("n", n, s)
print("n", n, "s", s, "of", t)
print()
assert n > 0, "n counts"
assert t >= 0
assert True, "never seen"
"""
    golden(source.body(body, x="f32 1"))


def test_casts_of_scalars(source):
    text = source.body(
        "a = float(n)\nb = int(s)\nc = wl.i64(n)\nd = wl.f32(1)\nwl.store(x[b], a + d)\n"
        "wl.store(x[c], bool(n).cast(wl.f32))",
        x="f32 1",
    )
    assert text.count("scalar.cast") == 5


def test_python_functions_of_constants(source):
    body = """
size = max(2, min(8, 16)) + len((1, 2)) + abs(-2) + int(3.7) + round(1.2) + sum([1, 2])
wl.store(x[wl.ds(0, size)], float(tuple(range(3))[2]))
"""
    assert f"sizes=({8 + 2 + 2 + 3 + 1 + 3},)" in source.body(body, x="f32 1")


def test_max_of_scalars(source):
    text = source.body("wl.store(x[max(n, 3, wl.program_id(0))], 1.0)", x="f32 1")
    assert text.count('kind="max"') == 2


def test_sum_of_tiles_starts_with_the_first(source):
    text = source.body("wl.store(x[0:4], sum([wl.load(x[0:4]), wl.load(x[4:8])]))", x="f32 1")
    assert text.count("tile.binary") == 1


SCALE = 0.25
NUMPY_SIZE = np.int64(4)
SHAPE = (2, 4)


def test_captures():
    import warploom as wl

    inner = 3

    def kernel(x: wl.Tensor):
        t = wl.zeros(SHAPE, wl.f32) * SCALE + math.pi + inner
        wl.store(x[wl.ds(0, NUMPY_SIZE)], t[0])

    types = [ParamSpec("x", Tensor(wl.f32, 1, TensorClass("1")))]
    kernel_ir = build(kernel, types, {})
    (load,) = [op for op in walk(kernel_ir.body) if isinstance(op, tiles.Store)]
    assert load.sizes == (4,)


def test_augmented_items(source):
    body = "a = [wl.zeros(4, wl.f32), 1]\na[0] += 1\na[1] *= 2\nwl.store(x[wl.ds(a[1], 4)], a[0])"
    assert "tile.binary" in source.body(body, x="f32 1")


def test_starred(source):
    body = "pair = (0, 4)\nt = wl.load(x[wl.ds(*pair)])\nwl.store(x[wl.ds(*pair)], (*[t], 1)[0])"
    assert "tile.load" in source.body(body, x="f32 1")


def test_names_and_places(source):
    kernel = source.build(
        "def kernel(x: wl.Tensor):\n    t = wl.load(x[0:4])\n    wl.store(x[0:4], t * 2)\n",
        x="f32 1",
    )
    (load,) = [op for op in walk(kernel.body) if isinstance(op, tiles.Load)]
    assert load.result.name == "t"
    assert (load.loc.line, load.loc.column, load.loc.end_column) == (4, 9, 24)
    assert load.loc.file.endswith("kernel.py")
    assert kernel.loc.line == 3
    assert kernel.params[0].loc.column == 12


def test_text_in_the_body_is_nothing(source):
    assert "tile" not in source.body('"""What it does."""\n...\n').split("{", 1)[1]
