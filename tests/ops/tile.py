"""Tile operations: every operation with every dtype that it declares."""

from fractions import Fraction

import numpy as np

import warploom as wl
from tests.ops.trial import (
    DATA,
    F8,
    FLOATS,
    NUMBERS,
    Case,
    Trial,
    choose,
    convert,
    edges,
    spread,
    wide,
)
from warploom.base.dtypes import BY_NAME


def _out(device, shape, dtype):
    return device.empty(shape, BY_NAME[dtype].numpy)


# ---- memory ------------------------------------------------------------------------------------


@wl.kernel
def copy_window(x: wl.Tensor, z: wl.Tensor, i: wl.i32, j: wl.i32, M: wl.const, N: wl.const):
    t = wl.load(x[wl.ds(i, M), wl.ds(j, N)])
    wl.store(z[wl.ds(0, M), wl.ds(0, N)], t)


def window(op, dtype, i, j):
    """A window that hangs over the tensor on some sides; outside reads as zero."""

    def make(device):
        x = spread(dtype, (6, 37))
        out = _out(device, (4, 29), dtype)
        expected = np.zeros((4, 29), x.dtype)
        for a in range(4):
            for b in range(29):
                if 0 <= a + i < 6 and 0 <= b + j < 37:
                    expected[a, b] = x[a + i, b + j]
        call = copy_window.launch(1).call(device.put(x), out, i, j, M=5, N=32)
        return Trial(call, [(out, expected)])

    return Case(op, dtype, make, f"{i},{j}")


CASES = [
    window(op, dtype, i, j)
    for op in ("tile.load", "tile.store")
    for dtype in DATA
    for i, j in ((0, 0), (3, 20), (-2, -7))
]


@wl.kernel
def copy_other(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    wl.store(z[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)], other=1))


def other(dtype):
    def make(device):
        x = spread(dtype, (13,))
        out = _out(device, (20,), dtype)
        expected = np.concatenate([x, np.ones(7, x.dtype)])
        call = copy_other.launch(1).call(device.put(x), out, SIZE=20)
        return Trial(call, [(out, expected)])

    return Case("tile.load", dtype, make, "other")


CASES += [other(dtype) for dtype in NUMBERS]


@wl.kernel
def gather_two(x: wl.Tensor, rows: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    i = wl.load(rows[wl.ds(0, SIZE)])
    j = wl.arange(SIZE)
    wl.store(z[wl.ds(0, SIZE)], wl.gather(x, (i, j), mask=j != 3))


def gather(dtype):
    def make(device):
        x = spread(dtype, (6, 11))
        rows = np.array([0, 5, 2, 1, -1, 6, 3, 3, 0, 5, 1, 2], np.int32)
        out = _out(device, (12,), dtype)
        expected = np.zeros(12, x.dtype)
        for j, i in enumerate(rows):
            if j != 3 and 0 <= i < 6 and j < 11:
                expected[j] = x[i, j]
        call = gather_two.launch(1).call(device.put(x), device.put(rows), out, SIZE=12)
        return Trial(call, [(out, expected)])

    return Case("tile.gather", dtype, make)


CASES += [gather(dtype) for dtype in DATA]


@wl.kernel
def gather_runs(x: wl.Tensor, rows: wl.Tensor, z: wl.Tensor, RUN: wl.const, BEHIND: wl.const):
    """Of each of 8 rows four runs, from multiples of RUN or BEHIND them."""
    i = wl.load(rows[wl.ds(0, 8)])[:, None]
    at = wl.arange(4)[None, :] * RUN + BEHIND
    found = wl.gather(x, (1, i, at), mask=i != 3, other=x.dtype == wl.boolean, run=RUN)
    one = wl.gather(x, (0, wl.load(rows[wl.ds(0, 8)]), RUN), run=RUN)
    wl.store(z[wl.ds(0, 8), wl.ds(0, 4), wl.ds(0, RUN)], found)
    wl.store(z[wl.ds(0, 8), 4, wl.ds(0, RUN)], one)


def runs(dtype, run, behind=0, columns=32):
    """Rows outside of the tensor, and columns: the last run may leave it."""

    def make(device):
        x = spread(dtype, (2, 6, columns))
        rows = np.array([0, 5, 2, 1, -1, 6, 3, 4], np.int32)
        expected = np.zeros((8, 5, run), x.dtype)
        expected[:, :4] = dtype == "bool"
        for n, row in enumerate(rows):
            for k in range(4 * run):
                if 0 <= row < 6 and k + behind < columns and row != 3:
                    expected[n, k // run, k % run] = x[1, row, k + behind]
            if 0 <= row < 6:
                part = x[0, row, run : 2 * run]
                expected[n, 4, : len(part)] = part
        out = _out(device, expected.shape, dtype)
        call = gather_runs.launch(1, warps=2).call(
            device.put(x), device.put(rows), out, RUN=run, BEHIND=behind
        )
        return Trial(call, [(out, expected)])

    return Case("tile.gather", dtype, make, f"runs{run}-{behind}-{columns}")


CASES += [runs(dtype, 8) for dtype in DATA]
CASES += [runs("bf16", 2), runs("bf16", 16, columns=56), runs("f32", 4, 1), runs("i64", 4, 0, 15)]


# ---- making and shaping ------------------------------------------------------------------------


@wl.kernel
def splats(x: wl.Tensor, z: wl.Tensor, M: wl.const, N: wl.const, DTYPE: wl.const):
    t = wl.full((M, N), wl.load(x[wl.program_id(0)]), DTYPE)
    wl.store(z[wl.program_id(0), wl.ds(0, M), wl.ds(0, N)], t)


def splat(dtype):
    def make(device):
        x = edges(dtype)
        out = _out(device, (len(x), 6, 150), dtype)
        expected = np.broadcast_to(x[:, None, None], (len(x), 6, 150))
        call = splats.launch(len(x)).call(device.put(x), out, M=6, N=150, DTYPE=BY_NAME[dtype])
        return Trial(call, [(out, expected)])

    return Case("tile.splat", dtype, make)


CASES += [splat(dtype) for dtype in DATA]


@wl.kernel
def count(z: wl.Tensor, SIZE: wl.const):
    wl.store(z[wl.ds(0, SIZE)], wl.arange(SIZE))


def arange(device):
    out = _out(device, (1000,), "i32")
    return Trial(count.launch(1).call(out, SIZE=1000), [(out, np.arange(1000, dtype=np.int32))])


CASES.append(Case("tile.arange", "i32", arange))


@wl.kernel
def shapes(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, w: wl.Tensor, M: wl.const, N: wl.const):
    column = wl.load(x[wl.ds(0, M)])[:, None]
    row = wl.load(y[wl.ds(0, N)])[None, :]
    wide = wl.where(wl.full((M, N), True, wl.boolean), column, row)
    wl.store(z[wl.ds(0, N), wl.ds(0, M)], wide.T)
    wl.store(w[wl.ds(0, M), wl.ds(0, 3)], wide[:, 2:5])
    wl.store(w[wl.ds(0, M), 3], wide[:, 7])


def shaped(op, dtype):
    def make(device):
        x, y = spread(dtype, (6,)), spread(dtype, (9,), 1)
        z, w = _out(device, (9, 6), dtype), _out(device, (6, 4), dtype)
        expected = np.broadcast_to(x[:, None], (6, 9))
        call = shapes.launch(1).call(device.put(x), device.put(y), z, w, M=6, N=9)
        return Trial(call, [(z, expected.T), (w, expected[:, 2:6])])

    return Case(op, dtype, make)


CASES += [
    shaped(op, dtype)
    for op in (
        "tile.insert_axis",
        "tile.drop_axis",
        "tile.broadcast",
        "tile.permute",
        "tile.slice",
    )
    for dtype in DATA
]


@wl.kernel
def joins(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, M: wl.const, N: wl.const, AXIS: wl.const):
    a = wl.load(x[wl.ds(0, M), wl.ds(0, N)])
    b = wl.load(y[wl.ds(0, M), wl.ds(0, N)])
    t = wl.cat((a, b, a), AXIS)
    wl.store(z[wl.ds(0, t.shape[0]), wl.ds(0, t.shape[1])], t)


def cat(dtype, axis):
    def make(device):
        x, y = spread(dtype, (5, 12)), spread(dtype, (5, 12), 1)
        expected = np.concatenate([x, y, x], axis)
        out = _out(device, expected.shape, dtype)
        call = joins.launch(1).call(device.put(x), device.put(y), out, M=5, N=12, AXIS=axis)
        return Trial(call, [(out, expected)])

    return Case("tile.cat", dtype, make, f"axis{axis}")


CASES += [cat(dtype, axis) for dtype in DATA for axis in (0, 1)]


@wl.kernel
def chooses(c: wl.Tensor, x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    at = wl.ds(0, SIZE)
    wl.store(z[at], wl.where(wl.load(c[at]), wl.load(x[at]), wl.load(y[at])))


def select(dtype):
    def make(device):
        x, y, c = spread(dtype, (50,)), spread(dtype, (50,), 1), spread("bool", (50,), 2)
        out = _out(device, (50,), dtype)
        call = chooses.launch(1).call(device.put(c), device.put(x), device.put(y), out, SIZE=50)
        return Trial(call, [(out, np.where(c, x, y))])

    return Case("tile.select", dtype, make)


CASES += [select(dtype) for dtype in DATA]


@wl.kernel
def converts(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    wl.store(z[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)]).cast(z.dtype))


def cast(source, target):
    def make(device):
        x = np.concatenate([edges(source), spread(source, (40,))])
        out = _out(device, x.shape, target)
        call = converts.launch(1).call(device.put(x), out, SIZE=len(x))
        return Trial(call, [(out, convert(x, target))])

    return Case("tile.cast", target, make, f"from-{source}")


CASES += [cast(a, b) for a in DATA for b in DATA if a != b]


@wl.kernel
def relays(x: wl.Tensor, z: wl.Tensor, N: wl.const):
    """A tile and its transpose need one layout: one of them is exchanged."""
    t = wl.load(x[wl.ds(0, N), wl.ds(0, N)])
    upper = wl.arange(N)[:, None] < wl.arange(N)[None, :]
    wl.store(z[wl.ds(0, N), wl.ds(0, N)], wl.where(upper, t, t.T))


def relay(dtype):
    def make(device):
        x = spread(dtype, (48, 48))
        out = _out(device, (48, 48), dtype)
        upper = np.arange(48)[:, None] < np.arange(48)
        call = relays.launch(1).call(device.put(x), out, N=48)
        return Trial(call, [(out, np.where(upper, x, x.T))])

    return Case("tile.convert", dtype, make)


CASES += [relay(dtype) for dtype in DATA]


# ---- reductions --------------------------------------------------------------------------------


@wl.function
def total(t, axis):
    return wl.sum(t, axis)


@wl.function
def largest(t, axis):
    return wl.max(t, axis)


@wl.function
def smallest(t, axis):
    return wl.min(t, axis)


@wl.function
def where_largest(t, axis):
    return wl.argmax(t, axis)


@wl.function
def where_smallest(t, axis):
    return wl.argmin(t, axis)


REDUCE = {"add": total, "max": largest, "min": smallest}
ARG = {"max": where_largest, "min": where_smallest}


@wl.kernel
def reduces(x: wl.Tensor, z: wl.Tensor, M: wl.const, N: wl.const, AXIS: wl.const, F: wl.const):
    t = wl.load(x[wl.ds(0, M), wl.ds(0, N)])
    r = F(t, AXIS)
    wl.store(z[wl.ds(0, r.shape[0])], r)


def _fold(kind, dtype, x, axis):
    """The exact sum of integers, or the extreme by the contract's order."""
    if kind == "add":
        return x.astype(np.float64).sum(axis).astype(x.dtype)
    columns = np.moveaxis(x, axis, 0)
    if x.dtype.kind in "bi":
        return (columns.max(0) if kind == "max" else columns.min(0)).astype(x.dtype)
    first, *rest = wide(columns).tolist()
    for row in rest:
        first = [choose(kind, a, b) for a, b in zip(first, row, strict=True)]
    return np.array(first).astype(x.dtype)


def _reducible(kind, dtype, shape):
    """Values whose sum is exact in the dtype, or the edge values in all columns."""
    if kind == "add":
        return np.random.default_rng(0).integers(-2, 3, shape).astype(BY_NAME[dtype].numpy)
    values = spread(dtype, shape)
    special = edges(dtype)
    for number, value in enumerate(special):
        values[number % shape[0], number * 3 % shape[1]] = value
    return values


def reduce(kind, dtype, axis, shape):
    def make(device):
        x = _reducible(kind, dtype, shape)
        expected = _fold(kind, dtype, x, axis)
        out = _out(device, expected.shape, dtype)
        m, n = shape
        call = reduces.launch(1).call(device.put(x), out, M=m, N=n, AXIS=axis, F=REDUCE[kind])
        return Trial(call, [(out, expected)])

    return Case("tile.reduce", dtype, make, f"{kind}-axis{axis}-{shape[0]}x{shape[1]}")


CASES += [
    reduce(kind, dtype, axis, shape)
    for kind in REDUCE
    for dtype in NUMBERS
    for axis, shape in ((1, (5, 33)), (0, (17, 20)), (1, (2, 1000)))
]


def arg_reduce(kind, dtype, axis, shape):
    def make(device):
        x = _reducible(kind, dtype, shape)
        if dtype == "i32":
            x = x % 5  # many ties
        rows = np.moveaxis(wide(x), axis, 1)
        f = np.argmax if kind == "max" else np.argmin
        expected = np.array([_first(row, f) for row in rows], np.int32)
        out = _out(device, expected.shape, "i32")
        m, n = shape
        call = reduces.launch(1).call(device.put(x), out, M=m, N=n, AXIS=axis, F=ARG[kind])
        return Trial(call, [(out, expected)])

    return Case("tile.arg_reduce", dtype, make, f"{kind}-axis{axis}-{shape[0]}x{shape[1]}")


def _first(row, f):
    nan = np.isnan(row) if row.dtype.kind == "f" else np.zeros(len(row), bool)
    return nan.argmax() if nan.any() else f(row)


CASES += [
    arg_reduce(kind, dtype, axis, shape)
    for kind in ARG
    for dtype in (*FLOATS, "i32")
    for axis, shape in ((1, (5, 33)), (0, (17, 20)), (1, (2, 1000)))
]


@wl.kernel
def folds_bool(x: wl.Tensor, z: wl.Tensor, M: wl.const, N: wl.const):
    t = wl.load(x[wl.ds(0, M), wl.ds(0, N)])
    wl.store(z[0, wl.ds(0, M)], wl.all(t, 1))
    wl.store(z[1, wl.ds(0, M)], wl.any(t, 1))


def bool_folds(device):
    x = np.zeros((5, 40), bool)
    x[1], x[2, 39], x[3, 1:] = True, True, True
    out = _out(device, (2, 5), "bool")
    call = folds_bool.launch(1).call(device.put(x), out, M=5, N=40)
    return Trial(call, [(out, np.stack([x.all(1), x.any(1)]))])


CASES.append(Case("tile.reduce", "bool", bool_folds))


@wl.kernel
def to_scalars(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    t = wl.load(x[i, wl.ds(0, SIZE)])
    s = wl.scalar(wl.max(t, None))
    wl.store(z[wl.ds(i, 1)], s)


@wl.kernel
def bool_to_scalar(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    s = wl.scalar(wl.any(wl.load(x[i, wl.ds(0, SIZE)]), None))
    wl.store(z[wl.ds(i, 1)], s)


@wl.kernel
def element_to_scalar(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    s = wl.scalar(wl.load(x[i, wl.ds(0, SIZE)])[3])
    wl.store(z[wl.ds(i, 1)], s)


def to_scalar(dtype):
    def make(device):
        x = spread(dtype, (4, 21))
        x[3] = x[3, 0]
        out = _out(device, (4,), dtype)
        kernel = {"bool": bool_to_scalar, **dict.fromkeys(F8, element_to_scalar)}
        call = kernel.get(dtype, to_scalars).launch(4).call(device.put(x), out, SIZE=21)
        expected = x[:, 3] if dtype in F8 else wide(x).max(1)
        return Trial(call, [(out, expected.astype(x.dtype))])

    return Case("tile.to_scalar", dtype, make)


CASES += [to_scalar(dtype) for dtype in DATA]


# ---- fma ---------------------------------------------------------------------------------------


@wl.kernel
def multiplies(x: wl.Tensor, y: wl.Tensor, w: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    at = wl.ds(0, SIZE)
    wl.store(z[at], wl.fma(wl.load(x[at]), wl.load(y[at]), wl.load(w[at])))


def fma(device):
    rng = np.random.default_rng(7)
    x, y, w = (
        (rng.integers(-4096, 4096, 500) * 2.0 ** rng.integers(-70, 10, 500)).astype(np.float32)
        for _ in range(3)
    )
    w[:250] = (-(x[:250].astype(np.float64) * y[:250])).astype(np.float32)
    exact = [
        Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        for a, b, c in zip(x, y, w, strict=True)
    ]
    expected = np.array([nearest(e) for e in exact], np.float32)
    out = _out(device, (500,), "f32")
    call = multiplies.launch(1).call(*(device.put(v) for v in (x, y, w)), out, SIZE=500)
    return Trial(call, [(out, expected)])


def nearest(exact):
    """A fraction rounded to float32, ties to even."""
    guess = np.float32(float(exact))
    around = [np.nextafter(guess, np.float32(s * np.inf)) for s in (1, -1)] + [guess]
    finite = [v for v in around if np.isfinite(v)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


CASES.append(Case("tile.fma", "f32", fma))
