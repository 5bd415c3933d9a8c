"""A role that streams pieces through shared memory, beside one that exchanges a vector with all
blocks."""

import warploom as wl

CHUNK = 512


@wl.kernel
def busy(
    x: wl.Tensor,
    y: wl.Tensor,
    stream: wl.Tensor,
    sums: wl.Tensor,
    rounds: wl.i32,
    chunks: wl.i32,
    SHARE: wl.const = 64,
    N: wl.const = 256,
    STAGES: wl.const = 3,
):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    whole = wl.shared((N,), wl.f32)
    ring = wl.shared((CHUNK // 4,), wl.f32, slots=STAGES)
    full, empty = wl.barrier(STAGES), wl.barrier(STAGES)
    with wl.roles():
        with wl.role("stream", warps=1):
            for i in wl.range(0, chunks):
                s = i % STAGES
                empty[s].wait(i // STAGES % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect(CHUNK)
                    piece = (here + i * blocks) % stream.shape[0]
                    wl.copy_bulk(stream[piece, wl.ds(0, CHUNK // 4)], ring[s], full[s])
        with wl.role("add", warps=1):
            total = wl.zeros((CHUNK // 4,), wl.f32)
            for i in wl.range(0, chunks):
                s = i % STAGES
                full[s].wait(i // STAGES % 2)
                total = total + ring[s].load()
                wl.fence_async()
                empty[s].arrive()
            wl.store(sums[here, wl.ds(0, CHUNK // 4)], total)
        with wl.role("exchange", warps=2):
            share = wl.load(x[wl.ds(here * SHARE, SHARE)])
            for _ in wl.range(0, rounds):
                wl.exchange(share, whole, over=wl.grid)
                at = (wl.arange(SHARE) + (here + 1) * SHARE) % N
                share = whole.gather(at) + 1.0
            wl.store(y[here, wl.ds(0, N)], whole.load())


@busy.example
def _small(make):
    x, y, stream = make.randn((256,)), make.empty((4, 256), wl.f32), make.randn((8, CHUNK // 4))
    launcher = busy.launch(4, cooperative=True)
    return launcher.call(x, y, stream, make.empty((4, CHUNK // 4), wl.f32), 2, 8)
