"""Wrong: threads arrive for the first tile, and then begin the second one in the same group."""

# expect: R101 22 28

import warploom as wl


@wl.kernel
def brought(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    one, two = wl.shared((32, 64), x.dtype, slots=2), wl.shared((32, 64), x.dtype, slots=2)
    full, empty = wl.barrier(2, arrivals=64), wl.barrier(2, arrivals=64)
    meeting = wl.named_barrier(64)
    with wl.roles():
        with wl.role("bring", warps=2):
            for s in wl.unroll(2):
                two[s].store(wl.zeros((32, 64), x.dtype))
            for i in wl.range(0, STEPS):
                meeting.sync()
                empty[i % 2].wait(i // 2 % 2 ^ 1)
                wl.copy_by_threads(x[i, wl.ds(0, 32), wl.ds(0, 64)], one[i % 2])
                wl.threads_arrive(full[i % 2])
                wl.copy_by_threads(x[i, wl.ds(32, 32), wl.ds(0, 64)], two[i % 2])
            wl.threads_commit()
            wl.threads_wait()
        with wl.role("add", warps=2):
            for i in wl.range(0, STEPS):
                full[i % 2].wait(i // 2 % 2)
                both = one[i % 2].load() + two[i % 2].load()
                empty[i % 2].arrive(per="thread")
                wl.store(y[i, wl.ds(0, 32), wl.ds(0, 64)], both)


@brought.example
def _small(make):
    return brought.launch(1).call(make.randn((5, 64, 64)), make.zeros((5, 32, 64)), STEPS=5)
