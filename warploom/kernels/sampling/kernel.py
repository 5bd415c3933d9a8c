"""Index of the largest of many numbers, in two steps: each block its piece, then one block a row.
The K largest by the blocks of a cluster.

NaN counts as largest and ties take the lowest index, within a piece and among pieces alike.
"""

import math

import warploom as wl

NEGATIVE_INFINITY = -math.inf
NOWHERE = 2**31 - 1  # no column


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


@wl.function
def next_of(v, column, taken):
    """(largest of what is not taken, its column): NaN is largest, ties take the lowest column;
    NOWHERE where all is taken."""
    best = wl.max(wl.where(taken, NEGATIVE_INFINITY, v), 0, keepdims=True)
    equal = (v == best) | ((v != v) & (best != best))
    found = wl.where(equal & ~taken, column, NOWHERE)
    return best, wl.min(found, 0, keepdims=True)


@wl.kernel
def top_k(x: wl.Tensor, values: wl.Tensor, indices: wl.Tensor, K: wl.const, BN: wl.const):
    """A row a cluster: each block finds the K largest of its BN elements in order and pushes them
    with their columns to rank 0, which takes the K largest of those."""
    wl.launch_dependents()
    wl.wait_for_previous()
    SIZE, rank = wl.cluster_size(), wl.cluster_rank()
    numbers = wl.shared((SIZE * K, 1), wl.f32, swizzle=0)
    columns = wl.shared((SIZE * K, 1), wl.i32, swizzle=0)
    came = wl.barrier()
    t, here = wl.program_id(0) // SIZE, wl.cluster_rank() * BN
    if rank == 0:
        with wl.one_thread():
            came.expect(SIZE * K * 8)
    column = wl.arange(BN)[:, None] + here
    v = wl.load(x[t, wl.ds(here, BN)]).cast(wl.f32)[:, None]
    taken = column >= x.shape[1]
    for i in wl.range(K):
        best, at = next_of(v, column, taken)
        row = wl.ds(rank * K + i, 1)
        wl.store_async(numbers.on(0)[row, :], best, came)
        wl.store_async(columns.on(0)[row, :], at, came)
        taken = taken | (column == at)
    if rank == 0:
        came.wait(0)
        sent, places = numbers.load(), columns.load()
        gone = places == NOWHERE
        for i in wl.range(K):
            _, at = next_of(sent, places, gone)
            chosen = wl.scalar(wl.min(wl.min(at, 1), 0))
            wl.store(indices[t, wl.ds(i, 1)], wl.full((1,), chosen, wl.i32))
            wl.store(values[t, wl.ds(i, 1)], wl.full((1,), wl.load(x[t, chosen]), x.dtype))
            gone = gone | (places == at)


@piece_argmax.example
def _pieces(make):
    logits = make.randn((2, 300), wl.f32)
    values, indices = make.empty((2, 3), wl.f32), make.empty((2, 3), wl.i32)
    return piece_argmax.launch((2, 3)).call(logits, values, indices, BV=128)


@pick_piece.example
def _pick(make):
    values, indices = make.randn((2, 3), wl.f32), make.array([[5, 200, 260], [0, 128, 299]], wl.i32)
    return pick_piece.launch(2).call(values, indices, make.empty((2,), wl.i32), 3, BP=32)


@top_k.example
def _top_k(make):
    x = make.randn((2, 300), wl.bf16)
    values, indices = make.empty((2, 4), wl.bf16), make.empty((2, 4), wl.i32)
    return top_k.launch(8, cluster=4).call(x, values, indices, K=4, BN=80)
