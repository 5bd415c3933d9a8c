"""C = A · B on the matrix unit: one role copies, replicas of another multiply, blocks stay for many
tiles. `plain` takes what the copy engine cannot. Knows nothing of which shape deserves which tile.
"""

import warploom as wl


@wl.function
def place(t, rows, columns, GROUP):
    """Row and column of tile t of a grid: down GROUP rows, then one column on, so that the tiles in
    work at a time share what they read."""
    group = t // (GROUP * columns)
    first = group * GROUP
    height = wl.minimum(rows - first, GROUP)
    inside = t - group * (GROUP * columns)
    return first + inside % height, inside // height


@wl.function
def finished(part, bias, column, WIDTH, ACTIVATION):
    """A slice of the sums with its bias and activation, still f32."""
    if bias is not None:
        part = part + wl.load(bias[wl.ds(column, WIDTH)]).cast(wl.f32)[None, :]
    if ACTIVATION is not None:
        part = ACTIVATION(part)
    return part


@wl.function
def filled(ring, a, b, i, j, K, A_T, B_T, BM, BN, BK):
    """Put the K axis of a tile's operands into a ring, a step an item."""
    for k in wl.range(0, K, BK):
        with ring.put() as (sa, sb):
            wl.copy_async(a[wl.ds(i * BM, BM), wl.ds(k, BK)], sa.T if A_T else sa)
            wl.copy_async(b[wl.ds(k, BK), wl.ds(j * BN, BN)], sb.T if B_T else sb)


@wl.function
def summed(ring, K, r, A_T, B_T, M, BN, BK, STAGES):
    """The sums of rows r·M … of a tile from the items of a ring, one product behind the last."""
    acc = wl.zeros((M, BN), wl.f32)
    for _ in wl.range(0, K, BK):
        item = ring.take()
        sa, sb = item
        left = (sa.T if A_T else sa)[wl.ds(r * M, M), :]
        acc = wl.dot_async(left, sb.T if B_T else sb, acc)
        item.release(after=acc, behind=1 if STAGES > 1 else 0)
    return acc.wait()


@wl.function
def written(sums, c, bias, row, column, out, slot, M, BN, EN, ACTIVATION, DIRECT):
    """Write sums to c in slices of EN columns, by way of two slots of `out` from `slot` on."""
    SLICES = (BN + EN - 1) // EN
    for e in wl.unroll(SLICES):
        at = column + e * EN
        part = finished(sums[:, e * EN : (e + 1) * EN], bias, at, EN, ACTIVATION).cast(c.dtype)
        window = c[wl.ds(row, M), wl.ds(at, EN)]
        if DIRECT:
            wl.store(window, part)
        else:
            stage = out[slot + e % 2]
            with wl.one_thread():
                # After an odd number of slices the last one lies in this slot too.
                wl.copy_wait(pending=0 if e == 0 and SLICES % 2 else 1, reads=True)
            stage.store(part)
            with wl.one_thread():
                wl.copy_async(stage, window)
                wl.copy_commit()


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    bias: wl.Tensor = None,
    ACTIVATION: wl.const = None,
    A_T: wl.const = False,
    B_T: wl.const = False,
    BM: wl.const = 128,
    BN: wl.const = 256,
    BK: wl.const = 64,
    EN: wl.const = 64,
    STAGES: wl.const = 4,
    MATH: wl.const = 2,
    GROUP: wl.const = 8,
    DIRECT: wl.const = False,
):
    """c[m, n] = ACTIVATION(Σ_k a[m, k]·b[k, n] + bias[n]), sums in f32, one cast at the end.

    A_T, B_T: the operand is contiguous along its first axis. Each of MATH replicas owns BM / MATH
    rows of a tile of BM x BN and writes them in slices of EN columns: through shared memory by the
    copy engine, or with DIRECT from registers, for a `c` that the engine cannot address.
    """
    M = BM // MATH
    tile_a = wl.shared((BK, BM) if A_T else (BM, BK), a.dtype)
    tile_b = wl.shared((BN, BK) if B_T else (BK, BN), b.dtype)
    ring = wl.pipe(STAGES, slots=[tile_a, tile_b])
    out = None if DIRECT else wl.shared((M, EN), c.dtype, slots=2 * MATH)
    rows, columns = (c.shape[0] + BM - 1) // BM, (c.shape[1] + BN - 1) // BN
    wl.launch_dependents()
    wl.wait_for_previous()
    first, step, tiles, K = wl.program_id(0), wl.num_programs(0), rows * columns, a.shape[1]
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(first, tiles, step):
                i, j = place(t, rows, columns, GROUP)
                filled(ring, a, b, i, j, K, A_T, B_T, BM, BN, BK)
        with wl.role("math", warps=4, replicas=MATH) as r:
            for t in wl.range(first, tiles, step):
                i, j = place(t, rows, columns, GROUP)
                sums = summed(ring, K, r, A_T, B_T, M, BN, BK, STAGES)
                row, column, slot = i * BM + r * M, j * BN, r * 2
                written(sums, c, bias, row, column, out, slot, M, BN, EN, ACTIVATION, DIRECT)
            if not DIRECT:
                with wl.one_thread():
                    wl.copy_wait()


@wl.kernel
def plain(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    bias: wl.Tensor = None,
    ACTIVATION: wl.const = None,
    BM: wl.const = 32,
    BN: wl.const = 64,
):
    """The same for any strides without the matrix unit: products and sums in f32, in order of k."""
    row, column = wl.program_id(0) * BM, wl.program_id(1) * BN
    acc = wl.zeros((BM, BN), wl.f32)
    for k in wl.range(0, a.shape[1]):
        left = wl.load(a[wl.ds(row, BM), k]).cast(wl.f32)
        right = wl.load(b[k, wl.ds(column, BN)]).cast(wl.f32)
        acc = wl.fma(left[:, None], right[None, :], acc)
    made = finished(acc, bias, column, BN, ACTIVATION)
    wl.store(c[wl.ds(row, BM), wl.ds(column, BN)], made.cast(c.dtype))


@gemm.example
def _small(make):
    """Two blocks over six tiles, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((136, 72), wl.bf16)
    out, bias = make.empty((200, 72), wl.bf16), make.randn((72,), wl.f32)
    return gemm.launch(2).call(a, b, out, bias, B_T=False, BM=128, BN=64, EN=64, STAGES=3, GROUP=2)


@gemm.example("bench")
def _bench(make):
    a, b = make.randn((4096, 4096), wl.bf16), make.randn((4096, 4096), wl.bf16)
    return gemm.launch(132).call(a, b, make.empty((4096, 4096), wl.bf16), B_T=False)


@plain.example
def _plain(make):
    a, b = make.randn((33, 17), wl.bf16), make.randn((17, 65), wl.bf16)
    return plain.launch((2, 2)).call(a, b, make.empty((33, 65), wl.f32))
