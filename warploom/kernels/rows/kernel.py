"""Long rows, each split over the blocks of a cluster: RMSNorm, LayerNorm, softmax, cross-entropy.

A block holds BN neighbouring elements of a row in the registers of one replica of its role, so a
row is read once and written once. What the blocks find about their parts (a sum, a maximum) they
push to each other, and each adds it up in order of rank. Clusters are persistent: replicas take
turns at rows, so that one computes while another waits for its peers, and the copy engine brings
the rows after the next ones. Knows no shape of a launch; `config` does.
"""

import math

import warploom as wl
from warploom.kernels.norm.kernel import inverse_root

NEGATIVE_INFINITY = -math.inf
RMS_NORM, LAYER_NORM, SOFTMAX, CROSS_ENTROPY = range(4)


@wl.function
def push(values, parts, came, which, parity):
    """Send values of this block to the whole cluster, and wait for those of all. Behind it row
    which · size + q of part i is value i of block q. Two sets of rows in turn: what a push writes
    over, all have read before they sent what this block has waited for since."""
    SIZE = wl.cluster_size()
    with wl.one_thread():
        came[which].expect(SIZE * len(values) * 4)
    row = which * SIZE + wl.cluster_rank()
    for peer in wl.range(SIZE):
        for i in wl.unroll(len(values)):
            wl.store_async(parts[i].on(peer)[wl.ds(row, 1), :], values[i], came[which])
    came[which].wait(parity)


@wl.function
def sent(part, which, q):
    """What block q has sent."""
    return part[wl.ds(which * wl.cluster_size() + q, 1), :].load()


@wl.function
def total(part, which):
    """The sum of what all have sent, in order of rank."""
    found = sent(part, which, 0)
    for q in wl.unroll(1, wl.cluster_size()):
        found = found + sent(part, which, q)
    return found


@wl.function
def spread_of(parts, which, mean, n, BN):
    """Σ (x − mean)² of a row out of the parts' sums and sums of squares around their own means."""
    found = wl.zeros((1, 1), wl.f32)
    for q in wl.unroll(wl.cluster_size()):
        held = wl.minimum(wl.maximum(n - q * BN, 0), BN).cast(wl.f32)
        far = sent(parts[0], which, q) / wl.maximum(held, 1.0) - mean
        found = found + (sent(parts[1], which, q) + held * (far * far))
    return found


@wl.function
def weight_of(top, highest):
    """What sums of e^(x − top) are multiplied by to be sums of e^(x − highest); 0 for a part
    without a finite element, whose sum is 0."""
    return wl.where(top == NEGATIVE_INFINITY, 0.0, wl.exp(top - highest))


@wl.function
def exponents_of(parts, which):
    """(highest element, Σ e^(x − highest)) of a row."""
    highest = sent(parts[0], which, 0)
    for q in wl.unroll(1, wl.cluster_size()):
        highest = wl.maximum(highest, sent(parts[0], which, q))
    found = wl.zeros((1, 1), wl.f32)
    for q in wl.unroll(wl.cluster_size()):
        found = found + sent(parts[1], which, q) * weight_of(sent(parts[0], which, q), highest)
    return highest, found


@wl.function
def begin(x, slots, full, t, s, BN):
    """Begin to copy a block's part of row t to slot s."""
    full[s].expect(BN * x.dtype.bytes)
    part = x[t, wl.ds(wl.cluster_rank() * BN, BN)]
    wl.copy_bulk(part, slots[wl.ds(s, 1), :], barrier=full[s], cache="evict_first")


@wl.function
def begin_later(x, slots, full, t, k, r, count, step, BN, STAGES, REPLICAS, LATER):
    """Begin to copy a later row of this replica to the slot of row k, or of the one before it
    (LATER), once the copy engine has taken that one's result from there."""
    with wl.one_thread():
        if LATER > 0:
            wl.copy_wait(reads=True)
        if k >= LATER and k + STAGES - LATER < count:
            s = r * STAGES + (k + STAGES - LATER) % STAGES
            begin(x, slots, full, t + (STAGES - LATER) * REPLICAS * step, s, BN)


@wl.function
def part_of(x, slots, full, t, k, r, count, step, BN, STAGES, REPLICAS, KIND, WRITTEN):
    """A block's part of row t, the k-th of replica r, in f32."""
    if STAGES > 0:
        s = r * STAGES + k % STAGES
        full[s].wait(k // STAGES % 2)
        v = slots[wl.ds(s, 1), :].load().cast(wl.f32)
        if not WRITTEN:
            begin_later(x, slots, full, t, k, r, count, step, BN, STAGES, REPLICAS, 0)
    else:
        LOWEST = NEGATIVE_INFINITY if KIND >= SOFTMAX else 0.0
        here = wl.cluster_rank() * BN
        v = wl.load(x[wl.ds(t, 1), wl.ds(here, BN)], other=LOWEST).cast(wl.f32)
    return v


@wl.function
def write(y, out, slots, t, s, here, BN, WRITTEN):
    """A block's part of row t of the result: by threads, or (WRITTEN) by the copy engine, which
    takes it from the slot that the row came in."""
    if WRITTEN:
        row = slots[wl.ds(s, 1), :]
        row.store(y.cast(out.dtype))
        with wl.one_thread():
            wl.copy_bulk(row, out[t, wl.ds(here, BN)], cache="evict_first")
            wl.copy_commit()
    else:
        wl.store(out[wl.ds(t, 1), wl.ds(here, BN)], y.cast(out.dtype))


@wl.function
def resident(factors, ready, BN):
    """Begin to copy a block's part of each factor to shared memory, for all rows."""
    here = wl.cluster_rank() * BN
    tiles = [wl.shared((1, BN), factor.dtype, swizzle=0) for factor in factors]
    with wl.one_thread():
        ready.expect(sum([BN * factor.dtype.bytes for factor in factors]))
        for i in wl.unroll(len(factors)):
            wl.copy_bulk(factors[i][wl.ds(here, BN)], tiles[i], barrier=ready)
    return tiles


@wl.function
def factor_of(tensor, tiles, i, window):
    """A block's part of factor i, in f32: out of shared memory where it is held there."""
    held = tiles[i].load() if len(tiles) > 0 else wl.load(tensor[window])[None, :]
    return held.cast(wl.f32)


@wl.kernel
def rows(
    x: wl.Tensor,
    out: wl.Tensor,
    eps: wl.f32,
    KIND: wl.const,
    BN: wl.const,
    STAGES: wl.const,
    RESIDENT: wl.const = False,
    WARPS: wl.const = 8,
    REPLICAS: wl.const = 2,
    WRITTEN: wl.const = False,
    weight: wl.Tensor = None,
    bias: wl.Tensor = None,
    target: wl.Tensor = None,
):
    """out[t] = a row function of x[t]; cross-entropy has one number a row. STAGES: slots of a
    replica that the copy engine fills; 0 where it cannot: threads read the row. RESIDENT: weight
    and bias are held in shared memory. WRITTEN: the copy engine writes the result, which has x's
    dtype, from the slot of its row; of two slots or more, since that is filled a row later."""
    wl.launch_dependents()
    wl.wait_for_previous()
    SIZE, n = wl.cluster_size(), x.shape[1]
    first, step = wl.program_id(0) // SIZE, wl.num_programs(0) // SIZE
    here = wl.cluster_rank() * BN
    COPIED, NAMES = STAGES > 0, 1 if KIND == RMS_NORM else 2
    slots = wl.shared((REPLICAS * max(STAGES, 1), BN), x.dtype, swizzle=0) if COPIED else None
    full = wl.barrier(REPLICAS * max(STAGES, 1))
    parts = [wl.shared((2 * REPLICAS * SIZE, 1), wl.f32, swizzle=0) for _ in range(NAMES)]
    came, ready = wl.barrier(2 * REPLICAS), wl.barrier()
    factors = [factor for factor in (weight, bias) if factor is not None]
    tiles = resident(factors, ready, BN) if RESIDENT else []
    with wl.roles(), wl.role("rows", warps=WARPS, replicas=REPLICAS) as r:
        count = wl.maximum(x.shape[0] - first - r * step + REPLICAS * step - 1, 0)
        count = count // (REPLICAS * step)
        if COPIED:
            with wl.one_thread():
                for j in wl.unroll(STAGES):
                    if j < count:
                        begin(x, slots, full, first + (j * REPLICAS + r) * step, r * STAGES + j, BN)
        if RESIDENT:
            ready.wait(0)
        for k in wl.range(count):
            t, which, parity = first + (k * REPLICAS + r) * step, r * 2 + k % 2, k // 2 % 2
            v = part_of(x, slots, full, t, k, r, count, step, BN, STAGES, REPLICAS, KIND, WRITTEN)
            window = wl.ds(here, BN)
            if KIND == RMS_NORM:
                push((wl.sum(v * v, 1, keepdims=True),), parts, came, which, parity)
                y = v * inverse_root(total(parts[0], which) / n.cast(wl.f32), eps)
                y = y * factor_of(weight, tiles, 0, window)
            elif KIND == LAYER_NORM:
                y = centred(v, parts, came, which, parity, n, here, eps, BN, COPIED)
                y = y * factor_of(weight, tiles, 0, window)
                y = y + factor_of(bias, tiles, 1, window)
            else:
                top = wl.max(v, 1, keepdims=True)
                e = wl.exp(v - wl.where(top == NEGATIVE_INFINITY, 0.0, top))
                push((top, wl.sum(e, 1, keepdims=True)), parts, came, which, parity)
                highest, added = exponents_of(parts, which)
                if KIND == SOFTMAX:
                    y = e * (weight_of(top, highest) * (1.0 / added))
                else:
                    write_loss(x, target, out, t, here, BN, highest + wl.log(added))
            if WRITTEN:
                begin_later(x, slots, full, t, k, r, count, step, BN, STAGES, REPLICAS, 1)
            if KIND != CROSS_ENTROPY:
                write(y, out, slots, t, r * STAGES + k % max(STAGES, 1), here, BN, WRITTEN)
        if WRITTEN:
            with wl.one_thread():
                wl.copy_wait()


@wl.function
def centred(v, parts, came, which, parity, n, here, eps, BN, WHOLE):
    """(v − mean) / √(variance + eps): the mean is taken off before anything is squared."""
    held = wl.minimum(wl.maximum(n - here, 0), BN).cast(wl.f32)
    added = wl.sum(v, 1, keepdims=True)
    d = v - added / wl.maximum(held, 1.0)
    if not WHOLE:
        d = wl.where((wl.arange(BN) + here < n)[None, :], d, 0.0)
    push((added, wl.sum(d * d, 1, keepdims=True)), parts, came, which, parity)
    count = n.cast(wl.f32)
    mean = total(parts[0], which) / count
    return (v - mean) * inverse_root(spread_of(parts, which, mean, n, BN) / count, eps)


@wl.function
def write_loss(x, target, out, t, here, BN, log_sum):
    """log Σ e^x − x[target] by the block that has the target; 0 by the first where none has."""
    at = wl.load(target[t])
    found = wl.sum(log_sum, 1)
    if at < 0:
        if here == 0:
            wl.store(out[wl.ds(t, 1)], wl.zeros((1,), wl.f32))
    elif at >= here and at < here + BN:
        wl.store(out[wl.ds(t, 1)], found - wl.load(x[t, at]).cast(wl.f32))


@rows.example("rms_norm")
def _rms_norm(make):
    x, weight = make.randn((3, 64), wl.bf16), make.randn((64,), wl.f32)
    out = make.empty((3, 64), wl.bf16)
    return rows.launch(4, cluster=2).call(x, out, 1e-5, RMS_NORM, 32, 2, True, weight=weight)


@rows.example("layer_norm")
def _layer_norm(make):
    x, out = make.randn((3, 70), wl.f32), make.empty((3, 70), wl.f32)
    weight, bias = make.randn((70,), wl.f32), make.randn((70,), wl.f32)
    launcher = rows.launch(4, cluster=4)
    return launcher.call(x, out, 1e-5, LAYER_NORM, 20, 0, weight=weight, bias=bias)


@rows.example("softmax")
def _softmax(make):
    x, out = make.randn((5, 128), wl.f16), make.empty((5, 128), wl.f16)
    return rows.launch(4, cluster=4).call(x, out, 0.0, SOFTMAX, 32, 1)


@rows.example("cross_entropy")
def _cross_entropy(make):
    x, out = make.randn((3, 128), wl.bf16), make.empty((3,), wl.f32)
    target = make.integers(-1, 128, (3,), wl.i32)
    launcher = rows.launch(2, cluster=2)
    return launcher.call(x, out, 0.0, CROSS_ENTROPY, 64, 2, target=target)


@rows.example("written")
def _written(make):
    x, weight = make.randn((9, 128), wl.bf16), make.randn((128,), wl.bf16)
    out, launcher = make.empty((9, 128), wl.bf16), rows.launch(4, cluster=2)
    return launcher.call(x, out, 1e-5, RMS_NORM, 64, 2, True, 4, 2, True, weight=weight)


@rows.example("bench")
def _bench(make):
    """RMSNorm of 4096 x 65536 bf16 on all SMs of an H200."""
    x, weight = make.randn((4096, 65_536), wl.bf16), make.randn((65_536,), wl.bf16)
    launcher = rows.launch(124, cluster=4, pdl=True)
    out = make.empty((4096, 65_536), wl.bf16)
    return launcher.call(x, out, 1e-5, RMS_NORM, 16_384, 3, True, weight=weight)
