"""Flags: blocks that wait for each other, in every form of the operations."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread

BLOCKS, SIZE = 6, 96


@wl.kernel
def totals(x: wl.Tensor, parts: wl.Tensor, out: wl.Tensor, count: wl.Tensor, N: wl.const = SIZE):
    """out[b] = Σ 2·x, by every block from the parts of all, behind a counter."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    wl.store(parts[here, wl.ds(0, N)], wl.load(x[here, wl.ds(0, N)]) * 2)
    wl.signal(count[0], add=1)
    wl.wait(count[0], at_least=blocks)
    total = wl.zeros((N,), wl.i32)
    for b in wl.range(0, blocks):
        total = total + wl.load(parts[b, wl.ds(0, N)])
    wl.store(out[here, wl.ds(0, N)], total)


@wl.kernel
def chained(x: wl.Tensor, out: wl.Tensor, flags: wl.Tensor, first: wl.i32, N: wl.const = SIZE):
    """out[b] = x[0] + … + x[b]: a block takes over from the one before it. One thread waits and
    signals; the flags stand at `first` and pass 2^31 where that is near."""
    here = wl.program_id(0)
    gone = wl.barrier()
    with wl.one_thread():
        wl.wait(flags[here - 1], at_least=first + 1)
        gone.arrive()
    gone.wait(0)
    sums = wl.load(x[here, wl.ds(0, N)])
    if here > 0:
        sums = sums + wl.load(out[here - 1, wl.ds(0, N)])
    wl.store(out[here, wl.ds(0, N)], sums)
    wl.signal(flags[here], first + 1, scope="system")


@wl.kernel
def told(out: wl.Tensor, flags: wl.Tensor):
    """Only numbers are told: every block adds and waits for all, relaxed."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    wl.signal(flags[0], add=1, order="relaxed")
    wl.signal(flags[1 + here], here, order="relaxed", scope="system")
    wl.wait(flags[0], at_least=blocks, order="relaxed")
    wl.store(out[here], here + blocks)


def numbers_only(op: str) -> Case:
    def make(device):
        out, flags = (device.put(np.zeros(n, np.int32)) for n in (BLOCKS, BLOCKS + 1))
        call = told.launch(BLOCKS, cooperative=True).call(out, flags)
        here = np.arange(BLOCKS, dtype=np.int32)
        return Trial(call, [(out, here + BLOCKS), (flags, np.append(np.int32(BLOCKS), here))])

    return Case(op, "", make, "relaxed")


def all_for_all(op: str) -> Case:
    def make(device):
        x = spread("i32", (BLOCKS, SIZE)) // 64
        parts, out = (device.empty(x.shape, x.dtype) for _ in range(2))
        count = device.put(np.zeros(1, np.int32))
        call = totals.launch(BLOCKS, cooperative=True).call(device.put(x), parts, out, count)
        sums = np.broadcast_to((2 * x).sum(0, dtype=np.int32), x.shape)
        return Trial(call, [(out, sums), (count, np.array([BLOCKS], np.int32))])

    return Case(op, "", make, "all")


def one_by_one(op: str, first: int) -> Case:
    def make(device):
        x = spread("i32", (BLOCKS, SIZE)) // 64
        out = device.empty(x.shape, x.dtype)
        flags = device.put(np.full(BLOCKS, first, np.int32))
        launch = chained.launch(BLOCKS, cooperative=True)
        last = np.array(first, np.int32) + np.array(1, np.int32)
        sums = np.cumsum(x, axis=0, dtype=np.int32)
        pairs = [(out, sums), (flags, np.full(BLOCKS, last, np.int32))]
        return Trial(launch.call(device.put(x), out, flags, first), pairs)

    return Case(op, "", make, f"from{first}")


OPS = ("flags.signal", "flags.wait", "flags.post", "flags.poll")
CASES = [all_for_all(op) for op in OPS]
CASES += [numbers_only(op) for op in OPS]
CASES += [one_by_one(op, first) for op in OPS for first in (0, 2**31 - 1)]
