"""C = A · B on the matrix unit: one role copies, replicas of another multiply, blocks stay for many
tiles. `plain` takes what the copy engine cannot. Knows nothing of which shape deserves which tile.
"""

import warploom as wl
from warploom.kernels.activation.kernel import gelu_by_erf
from warploom.kernels.gemm.epilogue import finished, part_of
from warploom.kernels.schedule import Grid


@wl.function
def brought(x, batch, row, column, tile, TURNED, AXIS):
    """Copy the tile of x at (row, column), stored TURNED where x is contiguous along its rows.

    The blocks of the cluster along AXIS need the same one: each copies a part of it to all.
    """
    HEIGHT, WIDTH = tile.shape[0] // wl.cluster_size(AXIS), tile.shape[1]
    at = wl.cluster_rank(AXIS) * HEIGHT
    part, all = tile[wl.ds(at, HEIGHT), :], wl.cluster_mask(AXIS)
    if TURNED:
        window = part_of(x, batch, wl.ds(row, WIDTH), wl.ds(column + at, HEIGHT))
        wl.copy_async(window, part.T, multicast=all)
    else:
        window = part_of(x, batch, wl.ds(row + at, HEIGHT), wl.ds(column, WIDTH))
        wl.copy_async(window, part, multicast=all)


@wl.function
def filled(ring, a, b, batch, i, j, lo, hi, A_T, B_T, BM, BN, BK):
    """Put k from lo to hi of a tile's operands into a ring, a step an item. Blocks along axis 0 of
    the cluster have other rows and share b, those along axis 1 have other columns and share a."""
    for k in wl.range(lo, hi, BK):
        with ring.put() as (sa, sb):
            brought(a, batch, i * BM, k, sa, A_T, 1)
            brought(b, batch, k, j * BN, sb, B_T, 0)


@wl.function
def multiplied(item, acc, r, A_T, B_T):
    """Begin acc + the product of rows r·M … of an item."""
    (sa, sb), M = item, acc.shape[0]
    left = (sa.T if A_T else sa)[wl.ds(r * M, M), :]
    return wl.dot_async(left, sb.T if B_T else sb, acc)


@wl.function
def summed(ring, lo, hi, r, A_T, B_T, M, BN, BK, STAGES):
    """The sums of rows r·M … of a tile, k from lo to hi, out of the items of a ring, one product
    behind the last."""
    acc = wl.zeros((M, BN), wl.f32)
    for _ in wl.range(lo, hi, BK):
        item = ring.take()
        acc = multiplied(item, acc, r, A_T, B_T)
        item.release(after=acc, behind=1 if STAGES > 1 else 0)
    return acc.wait()


@wl.function
def promoted(ring, lo, hi, r, A_T, B_T, M, BN, BK, STAGES, PROMOTE):
    """The same where the unit adds up PROMOTE columns at a time, and registers the rest: for
    operands whose sums it rounds. Without PROMOTE it adds up all."""
    if not PROMOTE:
        return summed(ring, lo, hi, r, A_T, B_T, M, BN, BK, STAGES)
    total, BEHIND = wl.zeros((M, BN), wl.f32), 1 if STAGES > 1 and PROMOTE > BK else 0
    for k in wl.range(lo, hi, PROMOTE):
        # The first product of a part takes no sums, so none are set to 0.
        item = ring.take()
        part = multiplied(item, wl.zeros((M, BN), wl.f32), r, A_T, B_T)
        item.release(after=part, behind=BEHIND)
        for _ in wl.range(k + BK, wl.minimum(hi, k + PROMOTE), BK):
            item = ring.take()
            part = multiplied(item, part, r, A_T, B_T)
            item.release(after=part, behind=BEHIND)
        total = total + part.wait()
    return total


@wl.struct
class Held:
    """The sums of a tile in registers."""

    sums: object

    def columns(self, START, WIDTH):
        return self.sums[:, START : START + WIDTH]


@wl.function
def written(sums, M, BN, epilogue, place, target):
    """Write sums (`Held`, or what gives columns as it does) to c in slices of EN columns: by way of
    `out` while the role goes on, or with DIRECT from registers."""
    (batch, row, column), (c, out, EN, DIRECT) = place, target
    SLICES = (BN + EN - 1) // EN
    for e in wl.unroll(SLICES):
        at = column + e * EN
        part = finished(sums.columns(e * EN, EN), epilogue, batch, row, at).cast(c.dtype)
        window = part_of(c, batch, wl.ds(row, M), wl.ds(at, EN))
        if DIRECT:
            wl.store(window, part)
        else:
            with out.put() as slot:
                slot.store(part)
                wl.copy_async(slot, window)


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    bias: wl.Tensor = None,
    residual: wl.Tensor = None,
    alpha: wl.f32 = None,
    beta: wl.f32 = None,
    scale_a: wl.Tensor = None,
    scale_b: wl.Tensor = None,
    ACTIVATION: wl.const = None,
    A_T: wl.const = False,
    B_T: wl.const = False,
    ROW_BIAS: wl.const = False,
    BM: wl.const = 128,
    BN: wl.const = 256,
    BK: wl.const = 64,
    EN: wl.const = 64,
    SLOTS: wl.const = 2,
    STAGES: wl.const = 4,
    MATH: wl.const = 2,
    GROUP: wl.const = 8,
    DIRECT: wl.const = False,
    PINGPONG: wl.const = False,
    STAGGER: wl.const = False,
    PROMOTE: wl.const = 0,
):
    """c[m, n] = ACTIVATION(alpha·scale_a[m]·scale_b[n]·Σ_k a[m, k]·b[k, n] + bias[n]) +
    beta·residual[m, n], all in f32 with one cast at the end. With a `c` of three axes the first one
    counts matrices, and what has no such axis belongs to all of them. ROW_BIAS: it is bias[m].

    A_T, B_T: the operand is contiguous along its first axis. Each of MATH replicas owns BM / MATH
    rows of a tile of BM x BN and writes them in slices of EN columns: through SLOTS slots of shared
    memory by the copy engine, or with DIRECT from registers, for a `c` that the engine cannot
    address. PINGPONG:
    each owns every MATH-th tile instead, and multiplies while the others write. STAGGER: they share
    tiles and write their rows in turn, so that from the second tile on they are as far apart as the
    ring is long, and the unit has work while one of them writes. PROMOTE: so many columns of K at a
    time are added up by the matrix unit, and the rest in registers.
    """
    M = BM if PINGPONG else BM // MATH
    tile_a = wl.shared((BK, BM) if A_T else (BM, BK), a.dtype)
    tile_b = wl.shared((BN, BK) if B_T else (BK, BN), b.dtype)
    deliver = "one" if PINGPONG else "all"
    ring = wl.pipe(STAGES, slots=[tile_a, tile_b], deliver=deliver, cluster=True)
    unit = wl.turns(MATH) if PINGPONG or STAGGER else None
    part = None if DIRECT else wl.shared((M, EN), c.dtype)
    out = None if DIRECT else wl.pipe(SLOTS, slots=[part], to=wl.copy_engine)
    rows, columns = (c.shape[-2] + BM - 1) // BM, (c.shape[-1] + BN - 1) // BN
    grid = Grid(rows, columns, c.shape[0] if len(c.shape) == 3 else None, GROUP)
    wl.launch_dependents()
    wl.wait_for_previous()
    epilogue = (bias, ACTIVATION, residual, alpha, beta, scale_a, scale_b, ROW_BIAS)
    K = a.shape[-1]
    target = (c, out, EN, DIRECT)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.tiles(grid):
                batch, i, j = grid.place(t)
                filled(ring, a, b, batch, i, j, 0, K, A_T, B_T, BM, BN, BK)
        with wl.role("math", warps=4, replicas=MATH) as r:
            whose = 0
            for t in wl.tiles(grid):
                if not PINGPONG or whose == r:
                    batch, i, j = grid.place(t)
                    if PINGPONG:
                        with unit.turn(r):
                            sums = promoted(ring, 0, K, 0, A_T, B_T, M, BN, BK, STAGES, PROMOTE)
                    else:
                        sums = promoted(ring, 0, K, r, A_T, B_T, M, BN, BK, STAGES, PROMOTE)
                    row, column = i * BM + (0 if PINGPONG else r * M), j * BN
                    if STAGGER:
                        with unit.turn(r):
                            written(Held(sums), M, BN, epilogue, (batch, row, column), target)
                    else:
                        written(Held(sums), M, BN, epilogue, (batch, row, column), target)
                else:
                    ring.skip((K + BK - 1) // BK)
                if PINGPONG:
                    whose = (whose + 1) % MATH


@wl.kernel
def plain(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    bias: wl.Tensor = None,
    residual: wl.Tensor = None,
    alpha: wl.f32 = None,
    beta: wl.f32 = None,
    scale_a: wl.Tensor = None,
    scale_b: wl.Tensor = None,
    ACTIVATION: wl.const = None,
    BM: wl.const = 32,
    BN: wl.const = 64,
):
    """The same for any strides without the matrix unit: products and sums in f32, in order of k."""
    height = (c.shape[-2] + BM - 1) // BM
    batch = wl.program_id(0) // height
    row, column = (wl.program_id(0) - batch * height) * BM, wl.program_id(1) * BN
    rows, columns = wl.ds(row, BM), wl.ds(column, BN)
    acc = wl.zeros((BM, BN), wl.f32)
    for k in wl.range(0, a.shape[-1]):
        left = wl.load(part_of(a, batch, rows, k)).cast(wl.f32)
        right = wl.load(part_of(b, batch, k, columns)).cast(wl.f32)
        acc = wl.fma(left[:, None], right[None, :], acc)
    epilogue = (bias, ACTIVATION, residual, alpha, beta, scale_a, scale_b, False)
    made = finished(acc, epilogue, batch, row, column)
    wl.store(part_of(c, batch, rows, columns), made.cast(c.dtype))


@gemm.example
def _small(make):
    """Two blocks over six tiles, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((136, 72), wl.bf16)
    out, bias = make.empty((200, 72), wl.bf16), make.randn((72,), wl.f32)
    return gemm.launch(2).call(a, b, out, bias, B_T=False, BM=128, BN=64, EN=64, STAGES=3, GROUP=2)


@gemm.example("batch")
def _batch(make):
    """Three products of one `b`, each with a residual, tiles wider than the matrix."""
    a, b = make.randn((3, 72, 64), wl.f16), make.randn((64, 72), wl.f16)
    out, residual = make.empty((3, 72, 72), wl.f16), make.randn((3, 72, 72), wl.f16)
    tiles = {"BM": 64, "BN": 128, "EN": 64, "STAGES": 2, "MATH": 1}
    return gemm.launch(2).call(a, b, out, None, residual, 0.5, **tiles)


@gemm.example("pingpong")
def _pingpong(make):
    """Two blocks over eight tiles, each of one replica; one block has an odd number of them."""
    a, b, out = make.randn((200, 136), wl.bf16), make.randn((136, 72), wl.bf16), (200, 72)
    constants = {"B_T": False, "BM": 64, "BN": 64, "EN": 64, "STAGES": 3, "PINGPONG": True}
    return gemm.launch(3).call(a, b, make.empty(out, wl.bf16), **constants)


@gemm.example("scaled")
def _scaled(make):
    """8-bit floats with a factor for each row and one for each column."""
    a, b = make.randn((72, 400), wl.f8e4m3), make.randn((104, 400), wl.f8e5m2)
    rows, columns = make.randn((72,), wl.f32), make.randn((104,), wl.f32)
    tiles = {"BM": 64, "BN": 64, "BK": 128, "EN": 64, "STAGES": 2, "MATH": 1, "PROMOTE": 256}
    out, scales = make.empty((72, 104), wl.bf16), {"scale_a": rows, "scale_b": columns}
    return gemm.launch(2).call(a, b.T, out, B_T=True, **scales, **tiles)


@gemm.example("whole")
def _whole(make):
    """Everything that an epilogue may have, on the largest tile: what takes longest to compile."""
    a, b = make.randn((160, 72), wl.bf16), make.randn((264, 72), wl.bf16)
    out, residual = make.empty((160, 264), wl.bf16), make.randn((160, 264), wl.bf16)
    bias = make.randn((264,), wl.bf16)
    how = {"ACTIVATION": gelu_by_erf, "B_T": True}
    return gemm.launch(2).call(a, b.T, out, bias, residual, 0.5, 2.0, **how)


@gemm.example("cluster")
def _cluster(make):
    """Blocks of two clusters over three pairs of tiles; each pair shares what it reads of b."""
    a, b = make.randn((600, 136), wl.bf16), make.randn((136, 72), wl.bf16)
    tiles = {"BM": 128, "BN": 128, "EN": 64, "STAGES": 3, "GROUP": 2}
    return gemm.launch(4, cluster=2).call(a, b, make.empty((600, 72), wl.bf16), **tiles)


@gemm.example("bench")
def _bench(make):
    a, b = make.randn((4096, 4096), wl.bf16), make.randn((4096, 4096), wl.bf16)
    return gemm.launch(132).call(a, b, make.empty((4096, 4096), wl.bf16), B_T=False)


@plain.example
def _plain(make):
    a, b = make.randn((33, 17), wl.bf16), make.randn((17, 65), wl.bf16)
    return plain.launch((2, 2)).call(a, b, make.empty((33, 65), wl.f32))
