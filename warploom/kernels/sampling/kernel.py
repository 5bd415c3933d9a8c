"""Index of the largest of many numbers, in two steps: each block its piece, then one block a row.

NaN counts as largest and ties take the lowest index, within a piece and among pieces alike.
"""

import math

import warploom as wl

NEGATIVE_INFINITY = -math.inf


@wl.kernel
def piece_argmax(logits: wl.Tensor, values: wl.Tensor, indices: wl.Tensor, BV: wl.const):
    """Block (t, j): largest of columns j·BV … of row t, and its column."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t, j = wl.program_id(0), wl.program_id(1)
    v = wl.load(logits[t, wl.ds(j * BV, BV)], other=NEGATIVE_INFINITY).cast(wl.f32)
    wl.store(values[t, wl.ds(j, 1)], wl.max(v, 0, keepdims=True))
    wl.store(indices[t, wl.ds(j, 1)], wl.argmax(v, 0, keepdims=True) + j * BV)


@wl.kernel
def pick_piece(values: wl.Tensor, indices: wl.Tensor, out: wl.Tensor, pieces: wl.i32, BP: wl.const):
    """The index kept by the piece with the largest value, among `pieces` ≤ BP of a row."""
    wl.launch_dependents()
    wl.wait_for_previous()
    t = wl.program_id(0)
    v = wl.load(values.rows(0, pieces, axis=1)[t, wl.ds(0, BP)], other=NEGATIVE_INFINITY)
    best = wl.load(indices[t, wl.scalar(wl.argmax(v, 0))])
    wl.store(out[wl.ds(t, 1)], wl.full((1,), best, wl.i32))


@piece_argmax.example
def _pieces(make):
    logits = make.randn((2, 300), wl.f32)
    values, indices = make.empty((2, 3), wl.f32), make.empty((2, 3), wl.i32)
    return piece_argmax.launch((2, 3)).call(logits, values, indices, BV=128)


@pick_piece.example
def _pick(make):
    values, indices = make.randn((2, 3), wl.f32), make.array([[5, 200, 260], [0, 128, 299]], wl.i32)
    return pick_piece.launch(2).call(values, indices, make.empty((2,), wl.i32), 3, BP=32)
