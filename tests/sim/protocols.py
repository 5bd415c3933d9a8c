"""Rings made by hand out of barriers, copies and products, with a constant for each mistake."""

import warploom as wl


@wl.kernel
def ring(
    x: wl.Tensor,
    y: wl.Tensor,
    STEPS: wl.const,
    S: wl.const = 2,
    BYTES: wl.const = 64 * 64 * 2,
    FLIP: wl.const = 1,
    ARRIVE: wl.const = 1,
    WAIT: wl.const = True,
):
    """y = x in tiles of 64 rows: one role copies them to a ring of S slots, another writes them.

    FLIP: what the producer's parity is xored with. ARRIVE: arrivals of each warp that has read.
    WAIT: the consumer waits for the copy.
    """
    slots = wl.shared((64, 64), x.dtype, slots=S, swizzle=128)
    full = wl.barrier(S, arrivals=1)
    empty = wl.barrier(S, arrivals=4)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty[i % S].wait(i // S % 2 ^ FLIP)
                with wl.one_thread():
                    full[i % S].expect(BYTES)
                    window = x[wl.ds(i * 64, 64), wl.ds(0, 64)]
                    wl.copy_async(window, slots[i % S], barrier=full[i % S])
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                if WAIT:
                    full[i % S].wait(i // S % 2)
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], slots[i % S].load())
                wl.fence_async()
                if ARRIVE:
                    with wl.one_thread(per="warp"):
                        empty[i % S].arrive(ARRIVE)


@wl.kernel
def early(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, RETIRE: wl.const = True):
    """c = a · bᵀ over one slot. Without RETIRE the slot is handed back before its product has
    retired."""
    sa, sb = wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)
    full, empty = wl.barrier(1, arrivals=1), wl.barrier(1, arrivals=1)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty.wait(i % 2 ^ 1)
                with wl.one_thread():
                    full.expect(2 * 64 * 64 * 2)
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(i * 64, 64)], sa, barrier=full)
                    wl.copy_async(b[wl.ds(0, 64), wl.ds(i * 64, 64)], sb, barrier=full)
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for i in wl.range(0, STEPS):
                full.wait(i % 2)
                acc = wl.dot_async(sa, sb.T, acc)
                if RETIRE:
                    acc = acc.wait()
                with wl.one_thread():
                    empty.arrive()
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc if RETIRE else acc.wait())


@wl.kernel
def through_shared(x: wl.Tensor, y: wl.Tensor, WAIT: wl.const = True, READS: wl.const = True):
    """y = 2·x in two tiles through one shared tile that the copy engine writes out.

    WAIT: at the end. READS: before the tile is written again.
    """
    tile = wl.shared((32, 64), x.dtype)
    for i in wl.unroll(2):
        if READS:
            with wl.one_thread():
                wl.copy_wait(pending=0, reads=True)
        part = wl.load(x[wl.ds(i * 32, 32), wl.ds(0, 64)])
        tile.store(part + part)
        with wl.one_thread():
            wl.copy_async(tile, y[wl.ds(i * 32, 32), wl.ds(0, 64)])
            wl.copy_commit()
    if WAIT:
        with wl.one_thread():
            wl.copy_wait()


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor):
    """Two replicas of a role that takes registers: each writes a square of x turned to y."""
    with wl.roles():
        with wl.role("keep", warps=4, registers=40):
            pass
        with wl.role("turn", warps=4, replicas=2, registers=160) as r:
            t = wl.load(x[wl.ds(r * 32, 32), wl.ds(0, 32)])
            wl.store(y[wl.ds(r * 32, 32), wl.ds(0, 32)], t + t.T)
