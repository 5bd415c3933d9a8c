"""Products of different sizes in one launch: groups are rows of `a` with a matrix of `b` each, or
pieces of the K axis. Where a group ends is read on the device. Knows no shapes.
"""

import warploom as wl
from warploom.kernels.gemm.epilogue import NOTHING
from warploom.kernels.gemm.kernel import Held, brought, summed, written
from warploom.kernels.schedule import Grid, Groups


@wl.kernel
def grouped_rows(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    offsets: wl.Tensor,
    A_T: wl.const = False,
    B_T: wl.const = False,
    BM: wl.const = 128,
    BN: wl.const = 256,
    BK: wl.const = 64,
    EN: wl.const = 64,
    STAGES: wl.const = 4,
    MATH: wl.const = 2,
    DIRECT: wl.const = False,
):
    """c[m, n] = Σ_k a[m, k]·b[g, k, n] for the rows m from offsets[g] to offsets[g + 1] of each
    group g; sums in f32, one cast at the end.

    The constants are those of `gemm`. The copy engine does not stop where a group ends, and starts
    at multiples of 16 bytes along the contiguous axis: rows of other groups are read and
    multiplied, and a tile that has such rows is written from registers.
    """
    ALIGN = 16 // a.dtype.bytes if A_T else 1
    M = BM // MATH
    tile_a = wl.shared((BK, BM) if A_T else (BM, BK), a.dtype)
    tile_b = wl.shared((BN, BK) if B_T else (BK, BN), b.dtype)
    ring = wl.pipe(STAGES, slots=[tile_a, tile_b])
    out = None if DIRECT else wl.pipe(2, slots=[wl.shared((M, EN), c.dtype)], to=wl.copy_engine)
    K, groups = a.shape[1], Groups(offsets, (c.shape[1] + BN - 1) // BN, BM, ALIGN)
    wl.launch_dependents()
    wl.wait_for_previous()
    with wl.roles():
        with wl.role("load", warps=1):
            for item in wl.tiles(groups):
                group, i, j = groups.place(item)
                lo, _ = groups.rows(group)
                for k in wl.range(0, K, BK):
                    with ring.put() as (sa, sb):
                        brought(a, 0, lo // ALIGN * ALIGN + i * BM, k, sa, A_T, 1)
                        brought(b, group, k, j * BN, sb, B_T, 0)
        with wl.role("math", warps=4, replicas=MATH) as r:
            for item in wl.tiles(groups):
                group, i, j = groups.place(item)
                lo, hi = groups.rows(group)
                sums = Held(summed(ring, 0, K, r, A_T, B_T, M, BN, BK, STAGES))
                top = lo // ALIGN * ALIGN + i * BM
                row, column = top + r * M, j * BN
                if not DIRECT and lo <= top and top + BM <= hi:
                    target = (c, out, EN, False)
                    written(sums, M, BN, NOTHING, (0, row, column), target)
                else:
                    target = (c.rows(lo, hi), None, EN, True)
                    written(sums, M, BN, NOTHING, (0, row - lo, column), target)


@wl.function
def cleared(tile, COUNTS_ROWS, first, end):
    """Make zero of a shared tile what is not among its rows, or columns, from `first` to `end`."""
    ROWS, COLUMNS = tile.shape
    for e in wl.unroll(ROWS // 16):
        part = tile[wl.ds(e * 16, 16), :]
        at = wl.arange(16) + e * 16 if COUNTS_ROWS else wl.arange(COLUMNS)
        kept = (at >= first) & (at < end)
        part.store(wl.where(kept[:, None] if COUNTS_ROWS else kept[None, :], part.load(), 0.0))


@wl.function
def steps(offsets, group, ALIGN):
    """Where along K a group begins and ends, and where the copy engine begins: at a multiple of
    ALIGN; nothing is brought for an empty group."""
    lo, hi = wl.load(offsets[group]), wl.load(offsets[group + 1])
    return lo, hi, wl.where(lo < hi, lo // ALIGN * ALIGN, hi)


@wl.kernel
def grouped_depth(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    offsets: wl.Tensor,
    A_T: wl.const = False,
    B_T: wl.const = False,
    BM: wl.const = 128,
    BN: wl.const = 128,
    BK: wl.const = 64,
    EN: wl.const = 64,
    STAGES: wl.const = 4,
    GROUP: wl.const = 8,
    DIRECT: wl.const = False,
):
    """c[g, m, n] = Σ_k a[m, k]·b[k, n] over k from offsets[g] to offsets[g + 1] of each group g;
    sums in f32, one cast at the end. An empty group gives zeros.

    The copy engine does not stop where a group ends, and starts at multiples of 16 bytes along the
    contiguous axis: what it brings of other groups is made zero in shared memory, by the one
    replica that multiplies.
    """
    ALIGN = 16 // a.dtype.bytes if B_T or not A_T else 1
    tile_a = wl.shared((BK, BM) if A_T else (BM, BK), a.dtype)
    tile_b = wl.shared((BN, BK) if B_T else (BK, BN), b.dtype)
    ring = wl.pipe(STAGES, slots=[tile_a, tile_b])
    out = None if DIRECT else wl.pipe(2, slots=[wl.shared((BM, EN), c.dtype)], to=wl.copy_engine)
    rows, columns = (c.shape[1] + BM - 1) // BM, (c.shape[2] + BN - 1) // BN
    grid = Grid(rows, columns, c.shape[0], GROUP)
    wl.launch_dependents()
    wl.wait_for_previous()
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.tiles(grid):
                group, i, j = grid.place(t)
                _, hi, begin = steps(offsets, group, ALIGN)
                for k in wl.range(begin, hi, BK):
                    with ring.put() as (sa, sb):
                        brought(a, 0, i * BM, k, sa, A_T, 1)
                        brought(b, 0, k, j * BN, sb, B_T, 0)
        with wl.role("math", warps=4):
            for t in wl.tiles(grid):
                group, i, j = grid.place(t)
                lo, hi, begin = steps(offsets, group, ALIGN)
                acc = wl.zeros((BM, BN), wl.f32)
                for k in wl.range(begin, hi, BK):
                    item = ring.take()
                    sa, sb = item
                    if (k < lo) | (k + BK > hi):
                        cleared(sa, A_T, lo - k, hi - k)
                        cleared(sb, not B_T, lo - k, hi - k)
                    acc = wl.dot_async(sa.T if A_T else sa, sb.T if B_T else sb, acc)
                    item.release(after=acc, behind=1 if STAGES > 1 else 0)
                sums, target = Held(acc.wait()), (c, out, EN, DIRECT)
                written(sums, BM, BN, NOTHING, (group, i * BM, j * BN), target)


@grouped_rows.example
def _rows(make):
    """Three groups, one of them empty, that end inside of tiles."""
    a, b = make.randn((150, 72), wl.bf16), make.randn((3, 72, 72), wl.bf16)
    offsets = make.array([0, 70, 70, 150], wl.i32)
    tiles = {"BM": 64, "BN": 64, "EN": 64, "STAGES": 3, "MATH": 1}
    return grouped_rows.launch(3).call(a, b, make.empty((150, 72), wl.bf16), offsets, **tiles)


@grouped_depth.example
def _depth(make):
    """Three groups, one of them empty, that end inside of steps."""
    a, b = make.randn((72, 152), wl.bf16), make.randn((152, 72), wl.bf16)
    offsets = make.array([3, 83, 83, 150], wl.i32)
    tiles = {"BM": 64, "BN": 64, "BK": 32, "EN": 64, "STAGES": 3}
    return grouped_depth.launch(3).call(a, b, make.empty((3, 72, 72), wl.bf16), offsets, **tiles)
