"""Kernels that measure how fast memory can be read, and the clock. They know no suite."""

import warploom as wl


@wl.kernel
def read_all(x: wl.Tensor, sums: wl.Tensor, TILE: wl.const):
    """Adds up `x` [n] (f32) block by block; `sums` [blocks] keeps the reads alive."""
    block = wl.program_id(0)
    acc = wl.zeros((TILE,), wl.f32)
    for start in wl.range(block * TILE, x.shape[0], wl.num_programs(0) * TILE):
        acc = acc + wl.load(x[wl.ds(start, TILE)])
    wl.store(sums[wl.ds(block, 1)], wl.zeros((1,), wl.f32) + wl.sum(acc, axis=0))


@wl.kernel
def stream_rows(
    x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, sums: wl.Tensor, N: wl.const, STAGES: wl.const
):
    """Bring all of `x`, then `y`, then `z` [rows, multiple of N] to shared memory, N elements a
    copy, each block a run of neighbouring pieces of each. `sums` [blocks] gets the sum of the first
    eight elements of every piece."""
    b, blocks = wl.program_id(0), wl.num_programs(0)
    ring = wl.pipe(stages=STAGES, slots=[wl.shared((N,), x.dtype)])
    with wl.roles():
        with wl.role("stream", warps=1):
            for tensor in (x, y, z):
                wide = tensor.shape[1] // N
                pieces = tensor.shape[0] * wide
                for i in wl.range(pieces * b // blocks, pieces * (b + 1) // blocks):
                    with ring.put() as tile:
                        run = tensor[i // wide, wl.ds(i % wide * N, N)]
                        wl.copy_bulk(run, tile, cache="evict_first")
        with wl.role("take", warps=1):
            total = wl.zeros((8,), wl.f32)
            for tensor in (x, y, z):
                pieces = tensor.shape[0] * (tensor.shape[1] // N)
                for _ in wl.range(pieces * b // blocks, pieces * (b + 1) // blocks):
                    with ring.get() as tile:
                        first = tile.reshape((N // 8, 8))[wl.ds(0, 1), :].load()[0]
                        total = total + first.cast(wl.f32)
            wl.store(sums[wl.ds(b, 1)], wl.sum(total, 0, keepdims=True))


@stream_rows.example
def rows(make):
    """Three blocks, pieces that they do not divide."""
    x, y, z = (make.ones(shape, wl.bf16) for shape in ((5, 512), (3, 256), (1, 128)))
    return stream_rows.launch(3).call(x, y, z, make.empty(3), N=128, STAGES=4)


@wl.kernel
def stamp(at: wl.Tensor):
    """`at` [2] (i64) gets the cycles of an SM until now, and the nanoseconds that all count."""
    wl.store(at[wl.ds(0, 1)], wl.zeros((1,), wl.i64) + wl.clock("cycles"))
    wl.store(at[wl.ds(1, 1)], wl.zeros((1,), wl.i64) + wl.clock("ns"))


@stamp.example
def _stamp(make):
    return stamp.launch(1).call(make.empty(2, wl.i64))


@read_all.example
def small(make):
    """Three blocks over a length that no block divides."""
    return read_all.launch(3).call(make.ones(1000), make.empty(3), TILE=128)
