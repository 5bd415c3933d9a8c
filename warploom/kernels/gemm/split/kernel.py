"""The matrix product whose K axis is dealt out too: every block does the same number of steps, and
the last of those that share a tile adds up what all of them left. Knows no shapes.
"""

import warploom as wl
from warploom.kernels.gemm.kernel import Held, filled, promoted, written
from warploom.kernels.schedule import Grid, Shares


@wl.struct
class Left:
    """What blocks `first` to `last` left of the sums of a tile, rows from `row` on: added up in the
    order of k, whichever block does it."""

    parts: wl.Tensor
    first: int
    last: int
    row: int
    M: wl.const

    def columns(self, START, WIDTH):
        place = wl.ds(self.row, self.M), wl.ds(START, WIDTH)
        total = wl.load(self.parts[2 * self.first + 1, *place])
        for block in wl.range(self.first + 1, self.last + 1):
            total = total + wl.load(self.parts[2 * block, *place])
        return total


@wl.kernel
def split_gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    bias: wl.Tensor = None,
    residual: wl.Tensor = None,
    parts: wl.Tensor = None,
    counts: wl.Tensor = None,
    alpha: wl.f32 = None,
    beta: wl.f32 = None,
    scale_a: wl.Tensor = None,
    scale_b: wl.Tensor = None,
    ACTIVATION: wl.const = None,
    A_T: wl.const = False,
    B_T: wl.const = False,
    ROW_BIAS: wl.const = False,
    BM: wl.const = 128,
    BN: wl.const = 128,
    BK: wl.const = 64,
    EN: wl.const = 64,
    SLOTS: wl.const = 2,
    STAGES: wl.const = 4,
    MATH: wl.const = 2,
    GROUP: wl.const = 8,
    DIRECT: wl.const = False,
    PROMOTE: wl.const = 0,
):
    """As `gemm` for one matrix. parts [2 · blocks, BM, BN] f32 need no values; counts
    [tiles · MATH] i32 are 0 before and after. A block leaves its sums in parts[2 · block + 1] where
    it began a tile, in parts[2 · block] where it went on with one.
    """
    M = BM // MATH
    tile_a = wl.shared((BK, BM) if A_T else (BM, BK), a.dtype)
    tile_b = wl.shared((BN, BK) if B_T else (BK, BN), b.dtype)
    ring = wl.pipe(STAGES, slots=[tile_a, tile_b], cluster=True)
    part = None if DIRECT else wl.shared((M, EN), c.dtype)
    out = None if DIRECT else wl.pipe(SLOTS, slots=[part], to=wl.copy_engine)
    rows, columns = (c.shape[0] + BM - 1) // BM, (c.shape[1] + BN - 1) // BN
    STEPS = (a.shape[1] + BK - 1) // BK
    grid, shares = Grid(rows, columns, GROUP=GROUP), Shares(rows * columns, STEPS)
    wl.launch_dependents()
    wl.wait_for_previous()
    epilogue = (bias, ACTIVATION, residual, alpha, beta, scale_a, scale_b, ROW_BIAS)
    target = (c, out, EN, DIRECT)
    with wl.roles():
        with wl.role("load", warps=1):
            for at in wl.tiles(shares):
                tile, lo, hi = shares.part(at)
                _, i, j = grid.place(tile)
                filled(ring, a, b, 0, i, j, lo * BK, hi * BK, A_T, B_T, BM, BN, BK)
        with wl.role("math", warps=4, replicas=MATH) as r:
            for at in wl.tiles(shares):
                tile, lo, hi = shares.part(at)
                _, i, j = grid.place(tile)
                sums = promoted(ring, lo * BK, hi * BK, r, A_T, B_T, M, BN, BK, STAGES, PROMOTE)
                place = 0, i * BM + r * M, j * BN
                if hi - lo == STEPS:
                    written(Held(sums), M, BN, epilogue, place, target)
                else:
                    mine = 2 * wl.program_id(0) + (1 if lo == 0 else 0)
                    wl.store(parts[mine, wl.ds(r * M, M), wl.ds(0, BN)], sums)
                    first, last = shares.owners(tile)
                    count = tile * MATH + r
                    if wl.atomic_add(counts[count], 1, order="acq_rel") == last - first:
                        left = Left(parts, first, last, r * M, M)
                        written(left, M, BN, epilogue, place, target)
                        wl.store(counts[count], 0)


@split_gemm.example
def _small(make):
    """Five blocks over four tiles of nine steps, ragged on every side."""
    a, b = make.randn((120, 136), wl.bf16), make.randn((136, 72), wl.bf16)
    out, bias = make.empty((120, 72), wl.bf16), make.randn((72,), wl.f32)
    parts, counts = make.empty((10, 64, 64), wl.f32), make.zeros((4,), wl.i32)
    tiles = {"BM": 64, "BN": 64, "BK": 16, "EN": 32, "STAGES": 3, "MATH": 1}
    return split_gemm.launch(5).call(a, b, out, bias, None, parts, counts, **tiles)
