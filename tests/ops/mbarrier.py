"""mbarriers: arrivals, announced bytes, waits and polls; who one thread is."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread
from tests.sim.protocols import ring


def copied(op: str, stages: int) -> Case:
    """Tiles through a ring that two roles share."""

    def make(device):
        x = spread("bf16", (64 * 7, 64))
        y = device.empty(x.shape, x.dtype)
        call = ring.launch(1).call(device.put(x), y, STEPS=7, S=stages)
        return Trial(call, [(y, x)])

    return Case(op, "", make, f"stages{stages}")


@wl.kernel
def polls(y: wl.Tensor):
    """1 where a poll says that the phase has completed: before, and after one arrival."""
    done = wl.barrier(1, arrivals=1)
    before = wl.where(done.test(0), 1, 0)
    with wl.one_thread():
        done.arrive()
    done.wait(0)
    after = wl.where(done.test(0), 1, 0)
    i = wl.arange(32)
    wl.store(y[0, wl.ds(0, 32)], i * 0 + before)
    wl.store(y[1, wl.ds(0, 32)], i * 0 + after)


def polled(op: str) -> Case:
    def make(device):
        y = device.empty((2, 32), np.int32)
        expected = np.repeat(np.array([[0], [1]], np.int32), 32, 1)
        return Trial(polls.launch(1).call(y), [(y, expected)])

    return Case(op, "", make, "poll")


@wl.kernel
def agrees(y: wl.Tensor, WARPS: wl.const):
    """What a role hears of a channel before anything was sent there, and after."""
    asked, first = wl.channel((1,), wl.i32), wl.channel((1,), wl.i32)
    second = wl.channel((1,), wl.i32)
    with wl.roles():
        with wl.role("ask", warps=WARPS):
            early = first.ready()
            asked.send(wl.zeros((1,), wl.i32))
            t = second.receive()
            late = first.ready()
            t = t + first.receive()
            wl.store(y[wl.ds(0, 1)], t + wl.where(early, 100, 0) + wl.where(late, 10, 0))
        with wl.role("say", warps=1):
            t = asked.receive()
            first.send(t + 1)
            second.send(t + 2)


def agreed(warps: int) -> Case:
    def make(device):
        y = device.empty(1, np.int32)
        return Trial(agrees.launch(1).call(y, WARPS=warps), [(y, np.array([13], np.int32))])

    return Case("sync.agree", "", make, f"warps{warps}")


NAMES = ("alloc", "at", "init", "arrive", "expect", "wait")
CASES = [copied(f"mbarrier.{name}", stages) for name in NAMES for stages in (1, 3)]
CASES += [
    copied(op, 2)
    for op in (
        "control.one_thread",
        "roles.split",
        "roles.set_registers",
        "shared_memory.address",
        "sync.fence_barrier_init",
        "tma.load",
        "tma.load_box",
    )
]
CASES.append(polled("mbarrier.test"))
CASES += [agreed(warps) for warps in (1, 4)]
