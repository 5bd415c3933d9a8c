"""The kernel that measures how fast memory can be read. Knows no suite."""

import warploom as wl


@wl.kernel
def read_all(x: wl.Tensor, sums: wl.Tensor, TILE: wl.const):
    """Adds up `x` [n] (f32) block by block; `sums` [blocks] keeps the reads alive."""
    block = wl.program_id(0)
    acc = wl.zeros((TILE,), wl.f32)
    for start in wl.range(block * TILE, x.shape[0], wl.num_programs(0) * TILE):
        acc = acc + wl.load(x[wl.ds(start, TILE)])
    wl.store(sums[wl.ds(block, 1)], wl.zeros((1,), wl.f32) + wl.sum(acc, axis=0))


@read_all.example
def small(make):
    """Three blocks over a length that no block divides."""
    return read_all.launch(3).call(make.ones(1000), make.empty(3), TILE=128)
