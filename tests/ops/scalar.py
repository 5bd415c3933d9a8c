"""Uniform scalars: literals, geometry, extents, strides, loads, casts, choices."""

import numpy as np

import warploom as wl
from tests.ops.trial import DATA, Case, Trial, convert, edges, spread
from warploom.base.dtypes import BY_NAME


def _out(device, shape, dtype):
    return device.empty(shape, BY_NAME[dtype].numpy)


@wl.kernel
def geometry(x: wl.Tensor, z: wl.Tensor):
    i, j = wl.program_id(0), wl.program_id(1)
    at = j * wl.num_programs(0) + i
    wl.store(z[at, wl.ds(0, 1)], i)
    wl.store(z[at, wl.ds(1, 1)], j)
    wl.store(z[at, wl.ds(2, 1)], wl.num_programs(0))
    wl.store(z[at, wl.ds(3, 1)], x.shape[0])
    wl.store(z[at, wl.ds(4, 1)], x.shape[1])
    wl.store(z[at, wl.ds(5, 1)], x.stride(0))
    wl.store(z[at, wl.ds(6, 1)], -7)


def places(device):
    x = np.zeros((5, 12), np.float32)[:, 2:9]
    out = _out(device, (6, 7), "i32")
    rows = [[i, j, 3, 5, 7, 12, -7] for j in range(2) for i in range(3)]
    call = geometry.launch((3, 2)).call(device.put_strided(x), out)
    return Trial(call, [(out, np.array(rows, np.int32))])


CASES = [
    Case(f"scalar.{name}", "i32", places)
    for name in ("block_id", "grid_dim", "dim", "stride", "const")
]


@wl.kernel
def reads(x: wl.Tensor, z: wl.Tensor):
    i = wl.program_id(0)
    wl.store(z[wl.ds(i, 1)], wl.load(x[i - 2]))


def load(dtype):
    def make(device):
        x = edges(dtype)
        out = _out(device, (len(x) + 4,), dtype)
        zeros = np.zeros(2, x.dtype)
        call = reads.launch(len(x) + 4).call(device.put(x), out)
        return Trial(call, [(out, np.concatenate([zeros, x, zeros]))])

    return Case("scalar.load", dtype, make)


CASES += [load(dtype) for dtype in DATA]


@wl.kernel
def converts(x: wl.Tensor, z: wl.Tensor):
    i = wl.program_id(0)
    wl.store(z[wl.ds(i, 1)], wl.load(x[i]).cast(z.dtype))


def cast(source, target):
    def make(device):
        x = np.concatenate([edges(source), spread(source, (9,))])
        out = _out(device, x.shape, target)
        call = converts.launch(len(x)).call(device.put(x), out)
        return Trial(call, [(out, convert(x, target))])

    return Case("scalar.cast", target, make, f"from-{source}")


CASES += [cast(a, b) for a in DATA for b in DATA if a != b]


@wl.kernel
def chooses(x: wl.Tensor, y: wl.Tensor, c: wl.Tensor, z: wl.Tensor):
    i = wl.program_id(0)
    wl.store(z[wl.ds(i, 1)], wl.where(wl.load(c[i]), wl.load(x[i]), wl.load(y[i])))


def select(dtype):
    def make(device):
        x, y, c = spread(dtype, (9,)), spread(dtype, (9,), 1), spread("bool", (9,), 2)
        out = _out(device, (9,), dtype)
        call = chooses.launch(9).call(device.put(x), device.put(y), device.put(c), out)
        return Trial(call, [(out, np.where(c, x, y))])

    return Case("scalar.select", dtype, make)


CASES += [select(dtype) for dtype in DATA]


@wl.kernel
def parameters(z: wl.Tensor, w: wl.Tensor, i: wl.i32, j: wl.i64, x: wl.f32, y: wl.f64):
    wl.store(z[wl.ds(0, 1)], i)
    wl.store(z[wl.ds(1, 1)], (j // 2**32).cast(wl.i32))
    wl.store(w[wl.ds(0, 1)], x)
    wl.store(w[wl.ds(1, 1)], (y * 3.0).cast(wl.f32))


def given(device):
    z, w = _out(device, (2,), "i32"), _out(device, (2,), "f32")
    call = parameters.launch(1).call(z, w, -(2**31), -(2**40), 1e-40, 0.1)
    expected = np.array([-(2**31), -(2**8)], np.int32)
    return Trial(call, [(z, expected), (w, np.array([1e-40, 0.1 * 3.0], np.float32))])


CASES.append(Case("scalar.binary", "f64", given, "parameters"))
