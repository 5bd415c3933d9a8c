"""Kernels whose waits are watched compute what they compute otherwise, and all their roles end.
(What a watched kernel tells that stands still: tests/runtime/test_watched.)"""

from __future__ import annotations

import numpy as np

from tests.language.test_clusters import passed_on
from tests.ops.flagged import by_word
from tests.ops.trial import Case, Trial, spread
from tests.runtime.test_trace import after_the_other, ring_call
from tests.runtime.watching import machine_of, run
from warploom.ir import watch as words
from warploom.ir.printer import print_kernel
from warploom.runtime.findings import Findings
from warploom.runtime.launch import Call, Launcher

SEED = 5


class Watched:
    """A call that is made as a debug build."""

    def __init__(self, call: Call, name: str) -> None:
        self.call, self.on_gpu = call, name == "gpu"

    def text(self, level: str) -> str:
        return print_kernel(machine_of(self.call, delays=SEED))

    def run(self) -> None:
        launcher = self.call.launcher
        if self.on_gpu:
            kernel = launcher.kernel.options(debug=True, delays=SEED)
            held = (launcher.grid, launcher.warps, None, launcher.cluster, launcher.ways)
            Launcher(kernel, *held)(*self.call.args, **self.call.kwargs)
            return
        ended = run(self.call, delays=SEED)
        assert ended.raised is None and not ended.notes[words.STOPPED]
        assert ended.notes[words.HEAD + words.GONE] == 32 * ended.machine.warps

    def check(self) -> Findings:
        self.run()
        return Findings(self.call.kernel.name)


def ringed(device):
    call, out, x = ring_call(device, 7)
    return Trial(Watched(call, device.name), [(out, np.stack([x, x]))])


def told(device):
    flags = device.put(np.zeros(1, np.int32))
    call = after_the_other.launch(2, cooperative=True).call(flags)
    return Trial(Watched(call, device.name), [(flags, np.ones(1, np.int32))])


def clustered(device):
    x = spread("f32", (2, 128))
    y, z = device.empty((3, 2, 128), x.dtype), device.empty((3, 2, 128), x.dtype)
    call = passed_on.launch(2, cluster=2).call(device.put(x), y, z, 3)
    written = np.stack([x + np.float32(k) for k in range(3)])
    pairs = [(y, written), (z, np.roll(written, 1, 1))]
    return Trial(Watched(call, device.name), pairs)


def worded(device):
    trial = by_word("flagged.take", "f32", 2, "gpu", "f32").make(device)
    return Trial(Watched(trial.call, device.name), trial.pairs)


CASES = [
    *(Case(f"watch.{name}", "", ringed) for name in ("barrier", "arrive", "meet", "end", "delay")),
    Case("watch.flag", "i32", told),
    Case("watch.words", "i64", worded),
    *(Case(f"watch.{name}", "", clustered, "cluster") for name in ("at", "arrive")),
]
