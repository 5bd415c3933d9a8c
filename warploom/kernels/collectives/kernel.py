"""Chains of collectives: what the suites time and the soak tests repeat. The collectives themselves
are functions of the language."""

import warploom as wl

CHUNK = 16384  # bytes of a copy of the stream
STAGES = 12
WARPS = 8  # that exchange: enough to have all words of a vector under way


@wl.kernel
def all_reduce(
    x: wl.Tensor,
    y: wl.Tensor,
    rounds: wl.i32,
    OP: wl.const,
    OVER: wl.const,
    SCALE: wl.const,
    N: wl.const,
):
    """y[b] is x[b], reduced over the blocks and multiplied by SCALE, `rounds` times, each round on
    what the one before has given."""
    here = wl.program_id(0)
    part = wl.load(x[here, wl.ds(0, N)])
    for _ in wl.range(0, rounds):
        part = wl.all_reduce(part, OP, over=OVER) * SCALE
    wl.store(y[here, wl.ds(0, N)], part)


@all_reduce.example
def _small(make):
    x, y = make.randn((6, 384), wl.f16), make.empty((6, 384), wl.f16)
    return all_reduce.launch(6, cluster=(3, 1, 1)).call(
        x, y, 3, OP="sum", OVER=wl.cluster, SCALE=1.0 / 3, N=384
    )


@all_reduce.example("large")
def _large(make):
    x, y = make.randn((4, 4096), wl.f16), make.empty((4, 4096), wl.f16)
    return all_reduce.launch(4, cluster=(4, 1, 1)).call(
        x, y, 2, OP="sum", OVER=wl.cluster, SCALE=0.25, N=4096
    )


@wl.function
def wait_a_while(seed, most):
    """Up to `most` nanoseconds, drawn by an integer."""
    mixed = seed * 1103515245 + 12345
    mixed = mixed ^ (mixed >> 15)
    pause = ((mixed & 0x7FFFFFFF) % most).cast(wl.i64)
    start = wl.clock("ns")
    while wl.clock("ns") - start < pause:
        pass


@wl.function
def collected(part, WHAT, OP, OVER):
    """One collective of a name, whose root is the last but one of two parties or more."""
    if WHAT == "all_reduce":
        made = wl.all_reduce(part, OP, over=OVER)
    elif WHAT == "reduce":
        made = wl.reduce(part, OP, root=1, over=OVER)
    elif WHAT == "reduce_scatter":
        made = wl.reduce_scatter(part, OP, over=OVER)
    elif WHAT == "all_gather":
        made = wl.all_gather(part, over=OVER)
    else:
        made = wl.broadcast(part, root=1, over=OVER)
    return made


@wl.kernel
def once(
    x: wl.Tensor,
    y: wl.Tensor,
    WHAT: wl.const,
    OP: wl.const,
    OVER: wl.const,
    N: wl.const,
    M: wl.const,
):
    """y[b] [M] is what a collective gives block b, which brings x[b] [N]."""
    here = wl.program_id(0)
    part = wl.load(x[here, wl.ds(0, N)])
    wl.store(y[here, wl.ds(0, M)], collected(part, WHAT, OP, OVER))


@wl.kernel
def soak(
    x: wl.Tensor,
    wanted: wl.Tensor,
    wrong: wl.Tensor,
    rounds: wl.i32,
    most: wl.i32,
    WHAT: wl.const,
    OP: wl.const,
    OVER: wl.const,
    N: wl.const,
    M: wl.const,
):
    """Rounds of a collective with other inputs x[s] [blocks, N] in turn, each block held up at
    random; wrong[b] counts the elements that differ from wanted[s] [blocks, M]."""
    here, seeds = wl.program_id(0), x.shape[0]
    bad = wl.zeros((M,), wl.i32)
    for i in wl.range(0, rounds):
        s = i % seeds
        if most > 0:
            wait_a_while(i * 131 + here, most)
        made = collected(wl.load(x[s, here, wl.ds(0, N)]), WHAT, OP, OVER)
        bad = bad + (made != wl.load(wanted[s, here, wl.ds(0, M)])).cast(wl.i32)
    wl.store(wrong[here], wl.scalar(wl.sum(bad, axis=0)))


@soak.example
def _held_up(make):
    x = make.zeros((2, 4, 64), wl.f32)
    return soak.launch(4, cluster=(2, 1, 1)).call(
        x, x, make.zeros((4,), wl.i32), 4, 20, "all_reduce", "sum", wl.cluster, N=64, M=64
    )


@once.example
def _scattered(make):
    x, y = make.randn((6, 24), wl.f32), make.zeros((6, 8), wl.f32)
    return once.launch(6, cluster=(3, 1, 1)).call(x, y, "reduce_scatter", "max", wl.cluster, 24, 8)


@wl.function
def passed_on(whole, here, SHARE, N):
    """The share of the next block out of the vector, plus 1."""
    at = (wl.arange(SHARE) + (here + 1) * SHARE) % N
    return whole.gather(at) + 1.0


@wl.kernel
def exchange(
    x: wl.Tensor, y: wl.Tensor, rounds: wl.i32, SHARE: wl.const, N: wl.const, WAY: wl.const
):
    """All blocks exchange a vector `rounds` times; each passes on what its successor had, plus 1.
    y[b] is the vector of the last round."""
    here = wl.program_id(0)
    whole = wl.shared((N,), wl.f32)
    share = wl.load(x[wl.ds(here * SHARE, SHARE)])
    for _ in wl.range(0, rounds):
        wl.exchange(share, whole, over=wl.grid, protocol=WAY)
        share = passed_on(whole, here, SHARE, N)
    wl.store(y[here, wl.ds(0, N)], whole.load())


@exchange.example
def _few(make):
    x, y = make.randn((256,)), make.empty((4, 256), wl.f32)
    return exchange.launch(4, cooperative=True).call(x, y, 3, SHARE=64, N=256, WAY="counter")


@exchange.example("flagged")
def _flagged(make):
    x, y = make.randn((256,)), make.empty((4, 256), wl.f32)
    return exchange.launch(4, cooperative=True).call(x, y, 3, SHARE=64, N=256, WAY="flagged")


@wl.kernel
def exchange_busy(
    x: wl.Tensor,
    y: wl.Tensor,
    stream: wl.Tensor,
    times: wl.Tensor,
    rounds: wl.i32,
    chunks: wl.i32,
    SHARE: wl.const,
    N: wl.const,
    WAY: wl.const,
    STAGES: wl.const = STAGES,
    PIECE: wl.const = CHUNK,
):
    """As `exchange`, beside a role that streams `chunks` pieces of `stream` [pieces, PIECE / 4]
    through shared memory, STAGES of them under way. times[b]: nanoseconds of the rounds, and of the
    stream."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    whole = wl.shared((N,), wl.f32)
    ring = wl.shared((PIECE // 4,), wl.f32, slots=STAGES)
    full = wl.barrier(STAGES)
    with wl.roles():
        with wl.role("stream", warps=1):
            began = wl.clock("ns")
            for i in wl.range(0, chunks):
                slot, lap = i % STAGES, i // STAGES
                if lap > 0:
                    full[slot].wait((lap - 1) % 2)
                with wl.one_thread():
                    full[slot].expect(PIECE)
                    piece = (here + i * blocks) % stream.shape[0]
                    part = stream[piece, wl.ds(0, PIECE // 4)]
                    wl.copy_bulk(part, ring[slot], full[slot], cache="evict_first")
            for i in wl.range(wl.maximum(chunks - STAGES, 0), chunks):
                full[i % STAGES].wait(i // STAGES % 2)
            wl.store(times[here, 1], wl.clock("ns") - began)
        with wl.role("exchange", warps=WARPS):
            share = wl.load(x[wl.ds(here * SHARE, SHARE)])
            began = wl.clock("ns")
            for _ in wl.range(0, rounds):
                wl.exchange(share, whole, over=wl.grid, protocol=WAY)
                share = passed_on(whole, here, SHARE, N)
            wl.store(times[here, 0], wl.clock("ns") - began)
            wl.store(y[here, wl.ds(0, N)], whole.load())


@exchange_busy.example
def _busy(make):
    x, y, stream = make.randn((256,)), make.empty((4, 256), wl.f32), make.zeros((8, CHUNK // 4))
    return exchange_busy.launch(4, cooperative=True).call(
        x, y, stream, make.zeros((4, 2), wl.i64), 3, 15, SHARE=64, N=256, WAY="counter"
    )


@wl.kernel
def exchange_soak(
    x: wl.Tensor,
    wanted: wl.Tensor,
    wrong: wl.Tensor,
    rounds: wl.i32,
    most: wl.i32,
    slow: wl.i32,
    SHARE: wl.const,
    N: wl.const,
    WAY: wl.const,
):
    """Rounds of other vectors x[s] [N] in turn, each block held up at random and block 0 by `slow`
    nanoseconds at its start: wrong[b] counts elements that differ."""
    here, seeds = wl.program_id(0), x.shape[0]
    whole = wl.shared((N,), wl.f32)
    bad = wl.zeros((N,), wl.i32)
    if here == 0:
        if slow > 0:
            wait_a_while(here, slow)
    for i in wl.range(0, rounds):
        s = i % seeds
        if most > 0:
            wait_a_while(i * 131 + here, most)
        wl.exchange(wl.load(x[s, wl.ds(here * SHARE, SHARE)]), whole, over=wl.grid, protocol=WAY)
        bad = bad + (whole.load() != wl.load(wanted[s, wl.ds(0, N)])).cast(wl.i32)
    wl.store(wrong[here], wl.scalar(wl.sum(bad, axis=0)))


@exchange_soak.example
def _slow(make):
    x = make.zeros((2, 256))
    return exchange_soak.launch(4, cooperative=True).call(
        x, x, make.zeros((4,), wl.i32), 4, 20, 50, SHARE=64, N=256, WAY="flagged"
    )
