"""Who could end a wait, as the text of a kernel has it: which roles bring arrivals and bytes to a
barrier, signals to a flag, threads to a named barrier. Knows nothing of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from warploom.ir.addresses import buffer_behind
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op, Value
from warploom.ir.ops import bulk, cluster, cp_async, flagged, flags, mbarrier, remote, sync, tma
from warploom.ir.roles import split_of

ARRIVALS = (mbarrier.Arrive, mbarrier.Expect, cluster.Arrive, cp_async.Arrive)
_TO_PEERS = (remote.SendGroups, remote.CopyBytes)
COPIES = (tma.LoadBox, bulk.LoadBytes, *_TO_PEERS)


class Signaller(NamedTuple):
    """An operation of a role (none: before the roles) that helps to end waits."""

    role: str
    op: Op

    @property
    def far(self) -> bool:
        """Whether it reaches blocks of the cluster besides its own."""
        spread = isinstance(self.op, tma.LoadBox) and self.op.multicast is not None
        return spread or isinstance(self.op, (cluster.Arrive, *_TO_PEERS))


class Signallers:
    """Those of one kernel: by the buffer of mbarriers, the tensor of flags, the number of a named
    barrier."""

    def __init__(self, kernel: Kernel) -> None:
        self.barriers: dict[Value, list[Signaller]] = {}
        self.flags: dict[Value, list[Signaller]] = {}
        self.named: dict[int, list[Signaller]] = {}
        for role, op in _operations(kernel):
            self._enter(Signaller(role, op))

    def _enter(self, made: Signaller) -> None:
        op = made.op
        if isinstance(op, ARRIVALS + COPIES):
            buffer = buffer_behind(op.barrier)
            if buffer is not None:
                self.barriers.setdefault(buffer, []).append(made)
        elif isinstance(op, flags.Post | flagged.Put):
            self.flags.setdefault(op.tensor, []).append(made)
        elif isinstance(op, sync.Barrier | sync.Arrive):
            self.named.setdefault(op.id, []).append(made)


def _operations(kernel: Kernel) -> Iterator[tuple[str, Op]]:
    """All operations, each with its role."""
    split = split_of(kernel)
    bodies = {} if split is None else dict(zip(split.names, split.bodies, strict=True))
    inside = {op: role for role, body in bodies.items() for op in walk(body)}
    for op in walk(kernel.body):
        yield inside.get(op, ""), op
