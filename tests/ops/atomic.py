"""Atomic operations on global memory: every kind and order, tiles and single elements, edges."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, edges, spread

DTYPES = ("f32", "i32", "i64")
SIZE = 50


@wl.kernel
def adds(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    t = wl.atomic_add(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]))
    wl.store(old[i, wl.ds(3, N)], t)


@wl.kernel
def adds_without_result(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    wl.atomic_add(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]), order="release")
    wl.store(old[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]))


@wl.kernel
def exchanges(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    t = wl.atomic_exchange(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]), order="acq_rel")
    wl.store(old[i, wl.ds(3, N)], t)


@wl.kernel
def larger(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    t = wl.atomic_max(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]), scope="system")
    wl.store(old[i, wl.ds(3, N)], t)


@wl.kernel
def smaller(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    t = wl.atomic_min(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]), order="acquire")
    wl.store(old[i, wl.ds(3, N)], t)


@wl.kernel
def cleared(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    t = wl.atomic_and(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)]), scope="block")
    wl.store(old[i, wl.ds(3, N)], t)


@wl.kernel
def set_bits(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    wl.store(
        old[i, wl.ds(3, N)],
        wl.atomic_or(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)])),
    )


@wl.kernel
def flipped(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    i = wl.program_id(0)
    wl.store(
        old[i, wl.ds(3, N)],
        wl.atomic_xor(x[i, wl.ds(3, N)], wl.load(by[i, wl.ds(3, N)])),
    )


@wl.kernel
def swapped(x: wl.Tensor, by: wl.Tensor, old: wl.Tensor, N: wl.const):
    """Where the first axis of `by` says so, the number 7 goes in."""
    i = wl.program_id(0)
    expected = wl.load(by[i, wl.ds(3, N)])
    t = wl.atomic_cas(x[i, wl.ds(3, N)], expected, wl.zeros((N,), x.dtype) + 7)
    wl.store(old[i, wl.ds(3, N)], t)


def _flushed(x):
    """Denormals as zeros of their sign: what the unit that adds f32 in memory makes of them."""
    small = np.abs(x) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), x), x) if x.dtype.kind == "f" else x


def _add(x, by):
    with np.errstate(all="ignore"):
        return _flushed(_flushed(x) + _flushed(by)).astype(x.dtype)


KINDS = {
    "add": (adds, _add),
    "exchange": (exchanges, lambda x, by: by),
    "max": (larger, np.maximum),
    "min": (smaller, np.minimum),
    "and": (cleared, np.bitwise_and),
    "or": (set_bits, np.bitwise_or),
    "xor": (flipped, np.bitwise_xor),
    "cas": (swapped, lambda x, by: np.where(x == by, x.dtype.type(7), x)),
}


def changed(op, dtype, kind):
    kernel, change = KINDS[kind]

    def make(device):
        # Wider than the window, so that what lies beside it is seen to stay; the end is outside.
        x, by = spread(dtype, (2, SIZE)), spread(dtype, (2, SIZE), seed=1)
        some = edges(dtype)
        x[0, 10 : 10 + len(some)], by[1, 10 : 10 + len(some)] = some, some[::-1]
        by[:, ::2] = np.where(kind == "cas", x, by)[:, ::2]
        out, old = device.put(x), device.put(np.zeros_like(x))
        after, before = x.copy(), np.zeros_like(x)
        after[:, 3:] = change(x[:, 3:], by[:, 3:])
        before[:, 3:] = x[:, 3:]
        call = kernel.launch(2).call(out, device.put(by), old, N=SIZE)
        return Trial(call, [(out, after), (old, before)])

    return Case(op, dtype, make, kind)


def without_result(op, dtype):
    def make(device):
        x, by = spread(dtype, (2, SIZE)), spread(dtype, (2, SIZE), seed=1)
        out, old = device.put(x), device.put(np.zeros_like(x))
        after, copy = x.copy(), np.zeros_like(x)
        after[:, 3:], copy[:, 3:] = _add(x, by)[:, 3:], by[:, 3:]
        call = adds_without_result.launch(2).call(out, device.put(by), old, N=SIZE)
        return Trial(call, [(out, after), (old, copy)])

    return Case(op, dtype, make, "release")


OPS = ("tile.atomic", "global_memory.atomic")
CASES = [
    changed(op, dtype, kind)
    for op in OPS
    for dtype in DTYPES
    for kind in (KINDS if dtype != "f32" else ("add", "exchange"))
]
CASES += [without_result(op, dtype) for op in OPS for dtype in DTYPES]
