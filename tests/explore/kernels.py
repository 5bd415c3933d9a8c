"""Kernels small enough to explore: rings, hand-overs, flags, meetings, with a constant for each
mistake."""

import warploom as wl


@wl.kernel
def ring_gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BK: wl.const = 64,
    STAGES: wl.const = 2,
    CONSUMERS: wl.const = 2,
):
    """c = a · bᵀ: one producer, consumers that own 64 rows each."""
    ROWS, COLUMNS = 64 * CONSUMERS, 64
    ring = wl.pipe(
        STAGES, slots=[wl.shared((ROWS, BK), a.dtype), wl.shared((COLUMNS, BK), b.dtype)]
    )
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1], BK):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(0, ROWS), wl.ds(k, BK)], sa)
                    wl.copy_async(b[wl.ds(0, COLUMNS), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4, replicas=CONSUMERS) as r:
            acc = wl.zeros((64, COLUMNS), wl.f32)
            for _ in wl.range(0, a.shape[1], BK):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa[wl.ds(r * 64, 64), :], sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(c[wl.ds(r * 64, 64), wl.ds(0, COLUMNS)], acc.wait())


@wl.kernel
def ring_gemm_by_hand(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    STEPS: wl.const,
    S: wl.const = 2,
    CONSUMERS: wl.const = 2,
    COUNT: wl.const = 2,
    BYTES: wl.const = 3 * 64 * 64 * 2,
):
    """The same out of barriers. COUNT: arrivals of a phase of `empty`. BYTES: what is announced."""
    sa = wl.shared((64 * CONSUMERS, 64), a.dtype, slots=S, swizzle=128)
    sb = wl.shared((64, 64), b.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=COUNT)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty[i % S].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[i % S].expect(BYTES)
                    part = wl.ds(i * 64, 64)
                    wl.copy_async(a[wl.ds(0, 64 * CONSUMERS), part], sa[i % S], barrier=full[i % S])
                    wl.copy_async(b[wl.ds(0, 64), part], sb[i % S], barrier=full[i % S])
        with wl.role("math", warps=4, replicas=CONSUMERS) as r:
            acc = wl.zeros((64, 64), wl.f32)
            for i in wl.range(0, STEPS):
                full[i % S].wait(i // S % 2)
                pending = wl.dot_async(sa[i % S][wl.ds(r * 64, 64), :], sb[i % S].T, acc)
                acc = pending.wait()
                with wl.one_thread():
                    empty[i % S].arrive()
            wl.store(c[wl.ds(r * 64, 64), wl.ds(0, 64)], acc)


@wl.kernel
def ring(
    x: wl.Tensor,
    y: wl.Tensor,
    STEPS: wl.const,
    S: wl.const = 2,
    READERS: wl.const = 1,
    COUNT: wl.const = 1,
    FLIP: wl.const = 1,
    WAIT: wl.const = True,
    SKIP: wl.const = 0,
):
    """y = x, tile by tile through a ring. Each reader takes every tile.

    COUNT: arrivals of a phase of `empty`. FLIP: what the producer's parity is xored with. WAIT: the
    readers wait for the copy. SKIP: tiles that the last reader leaves out at the end.
    """
    slots = wl.shared((8, 64), x.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=COUNT)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty[i % S].wait(i // S % 2 ^ FLIP)
                with wl.one_thread():
                    full[i % S].expect(8 * 64 * 2)
                    wl.copy_async(
                        x[wl.ds(i * 8, 8), wl.ds(0, 64)], slots[i % S], barrier=full[i % S]
                    )
        with wl.role("read", warps=1, replicas=READERS) as r:
            for i in wl.range(0, STEPS - SKIP):
                if WAIT:
                    full[i % S].wait(i // S % 2)
                if r == 0:
                    wl.store(y[wl.ds(i * 8, 8), wl.ds(0, 64)], slots[i % S].load())
                wl.fence_async()
                with wl.one_thread():
                    empty[i % S].arrive()


@wl.kernel
def turns_of_readers(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const = 3):
    """y = x through a ring whose slots two readers take in turn: right where S is even."""
    slots = wl.shared((8, 64), x.dtype, slots=S, swizzle=128)
    full, empty = wl.barrier(S, arrivals=1), wl.barrier(S, arrivals=1)
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                empty[i % S].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    full[i % S].expect(8 * 64 * 2)
                    wl.copy_async(
                        x[wl.ds(i * 8, 8), wl.ds(0, 64)], slots[i % S], barrier=full[i % S]
                    )
        with wl.role("read", warps=1, replicas=2) as r:
            for i in wl.range(r, STEPS, 2):
                full[i % S].wait(i // S % 2)
                wl.store(y[wl.ds(i * 8, 8), wl.ds(0, 64)], slots[i % S].load())
                wl.fence_async()
                with wl.one_thread():
                    empty[i % S].arrive()


@wl.kernel
def handed(
    x: wl.Tensor,
    held: wl.Tensor,
    y: wl.Tensor,
    flag: wl.Tensor,
    ROUNDS: wl.const,
    ANSWER: wl.const = True,
    EARLY: wl.const = False,
    AHEAD: wl.const = 0,
):
    """y = x through one buffer from block to block. ANSWER: the first waits for an answer, AHEAD of
    the round that it is for. EARLY: it tells before it has stored."""
    if wl.program_id(0) == 0:
        for i in wl.range(0, ROUNDS):
            if ANSWER:
                wl.wait(flag[1], at_least=i + AHEAD)
            if EARLY:
                wl.signal(flag[0], i + 1)
            wl.store(held[wl.ds(0, 64)], wl.load(x[i, wl.ds(0, 64)]))
            if not EARLY:
                wl.signal(flag[0], i + 1)
    else:
        for i in wl.range(0, ROUNDS):
            wl.wait(flag[0], at_least=i + 1)
            part = wl.load(held[wl.ds(0, 64)])
            wl.signal(flag[1], i + 1)
            wl.store(y[i, wl.ds(0, 64)], part)


@wl.kernel
def all_count(x: wl.Tensor, y: wl.Tensor, counter: wl.Tensor, ROUNDS: wl.const, LOW: wl.const = 0):
    """Blocks meet at a counter in rounds, between which each reads what its neighbour has written.
    LOW: how much too low the target is."""
    me, blocks = wl.program_id(0), wl.num_programs(0)
    for i in wl.range(0, ROUNDS):
        wl.store(y[i, wl.ds(me * 32, 32)], wl.load(x[i, wl.ds(me * 32, 32)]))
        wl.signal(counter[0], add=1)
        wl.wait(counter[0], at_least=(i + 1) * blocks - LOW)
        there = (me + 1) % blocks
        wl.store(x[i, wl.ds(me * 32, 32)], wl.load(y[i, wl.ds(there * 32, 32)]))


@wl.kernel
def met(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const, BACK: wl.const = True):
    """y = x through one tile between two roles that meet at barriers of the hardware. BACK: the
    reader hands the tile back."""
    tile = wl.shared((32, 64), x.dtype)
    filled, emptied = wl.named_barrier(64), wl.named_barrier(64)
    with wl.roles():
        with wl.role("fill", warps=1):
            for i in wl.range(0, STEPS):
                if BACK and i > 0:
                    emptied.sync()
                tile.store(wl.load(x[wl.ds(i * 32, 32), wl.ds(0, 64)]))
                filled.arrive()
        with wl.role("empty", warps=1):
            for i in wl.range(0, STEPS):
                filled.sync()
                part = tile.load()
                if BACK and i < STEPS - 1:
                    emptied.arrive()
                wl.store(y[wl.ds(i * 32, 32), wl.ds(0, 64)], part)


@wl.kernel
def circle(y: wl.Tensor, START: wl.const = True):
    """Three roles that hand a token on: without START nobody begins."""
    passed = wl.barrier(3, arrivals=1)
    with wl.roles(), wl.role("hand", warps=1, replicas=3) as r:
        if START and r == 0:
            with wl.one_thread():
                passed[1].arrive()
            passed[0].wait(0)
        else:
            passed[r].wait(0)
            with wl.one_thread():
                passed[(r + 1) % 3].arrive()
        wl.store(y[r, wl.ds(0, 32)], wl.full((32,), 1, wl.i32))
