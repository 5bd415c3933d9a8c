"""RMSNorm of rows that are split over a cluster: replicas take turns, the copy engine brings later
rows, and sums of squares are pushed to all blocks."""

import warploom as wl


@wl.kernel
def rms_norm(
    x: wl.Tensor,
    weight: wl.Tensor,
    out: wl.Tensor,
    BN: wl.const = 32,
    STAGES: wl.const = 2,
    REPLICAS: wl.const = 2,
):
    SIZE, rank, n = wl.cluster_size(), wl.cluster_rank(), x.shape[1]
    here = rank * BN
    slots = wl.shared((REPLICAS * STAGES, BN), x.dtype, swizzle=0)
    full = wl.barrier(REPLICAS * STAGES)
    sums = wl.shared((2 * REPLICAS * SIZE, 1), wl.f32, swizzle=0)
    came, ready = wl.barrier(2 * REPLICAS), wl.barrier()
    factor = wl.shared((1, BN), weight.dtype, swizzle=0)
    with wl.one_thread():
        ready.expect(BN * weight.dtype.bytes)
        wl.copy_bulk(weight[wl.ds(here, BN)], factor, barrier=ready)
    with wl.roles(), wl.role("rows", warps=2, replicas=REPLICAS) as r:
        count = (x.shape[0] - r + REPLICAS - 1) // REPLICAS
        with wl.one_thread():
            for j in wl.unroll(STAGES):
                if j < count:
                    first = r * STAGES + j
                    full[first].expect(BN * x.dtype.bytes)
                    row = x[j * REPLICAS + r, wl.ds(here, BN)]
                    wl.copy_bulk(row, slots[wl.ds(first, 1), :], barrier=full[first])
        ready.wait(0)
        for k in wl.range(count):
            t, which, parity = k * REPLICAS + r, r * 2 + k % 2, k // 2 % 2
            s = r * STAGES + k % STAGES
            full[s].wait(k // STAGES % 2)
            v = slots[wl.ds(s, 1), :].load().cast(wl.f32)
            with wl.one_thread():
                if k + STAGES < count:
                    full[s].expect(BN * x.dtype.bytes)
                    later = x[t + STAGES * REPLICAS, wl.ds(here, BN)]
                    wl.copy_bulk(later, slots[wl.ds(s, 1), :], barrier=full[s])
            with wl.one_thread():
                came[which].expect(SIZE * 4)
            square = wl.sum(v * v, 1, keepdims=True)
            for peer in wl.range(SIZE):
                place = sums.on(peer)[wl.ds(which * SIZE + rank, 1), :]
                wl.store_async(place, square, came[which])
            came[which].wait(parity)
            total = sums[wl.ds(which * SIZE, 1), :].load()
            for q in wl.unroll(1, SIZE):
                total = total + sums[wl.ds(which * SIZE + q, 1), :].load()
            y = v * (1.0 / wl.sqrt(total / n.cast(wl.f32) + 1e-5))
            y = y * factor.load().cast(wl.f32)
            wl.store(out[wl.ds(t, 1), wl.ds(here, BN)], y.cast(out.dtype))


@rms_norm.example
def _small(make):
    x, weight = make.randn((9, 64), wl.f32), make.randn((64,), wl.f32)
    return rms_norm.launch(2, cluster=2).call(x, weight, make.empty((9, 64), wl.f32))
