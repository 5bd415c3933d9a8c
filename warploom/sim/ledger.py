"""Checked mode: who uses which 16-byte chunk of a block's shared memory right now, and which
ordinary writes the copy engine and the matrix unit may not see yet. They access whole chunks, so a
chunk is fine enough. Knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.op import Op
from warploom.sim import sync_faults
from warploom.sim.boxes import CHUNK

if TYPE_CHECKING:
    from warploom.sim.machine import Batch

# What an ordinary write still lacks before an asynchronous access of the same memory.
_FENCE, _MEETING = 1, 2


class Ledger:
    """`reads` counts asynchronous reads that have not taken place, `incoming` copies that have not
    landed, `lacks` holds what ordinary writes lack, `writers` the actors that made them."""

    __slots__ = ("incoming", "lacks", "reads", "writers")

    def __init__(self, pitch: int) -> None:
        chunks = pitch // CHUNK
        self.reads = np.zeros(chunks, np.uint16)
        self.incoming = np.zeros(chunks, np.uint16)
        self.lacks = np.zeros(chunks, np.uint8)
        self.writers = np.zeros(chunks, np.uint8)

    # ---- asynchronous accesses -------------------------------------------------------------

    def begin_read(self, m: Batch, op: Op, places: Any) -> None:
        """An asynchronous read is issued."""
        self._check_order(m, op, places)
        self.reads[places] += 1

    def end_read(self, places: Any) -> None:
        """It has taken place."""
        self.reads[places] -= 1

    def begin_write(self, m: Batch, op: Op, places: Any) -> None:
        """A copy to shared memory is issued."""
        self._check_order(m, op, places)
        self._check_free(m, op, places)
        self.incoming[places] += 1

    def end_write(self, places: Any) -> None:
        """It has landed."""
        self.incoming[places] -= 1

    def _check_order(self, m: Batch, op: Op, places: Any) -> None:
        lacks = self.lacks[places]
        if lacks.any():
            first = int(lacks.argmax())
            fence = bool(lacks.reshape(-1)[first] & _FENCE)
            sync_faults.not_ordered(m, op, _chunk(places, first) * CHUNK, fence)
            self.lacks[places] = 0

    def _check_free(self, m: Batch, op: Op, places: Any) -> None:
        for held, what in ((self.reads, "read"), (self.incoming, "written")):
            busy = held[places] > 0
            if busy.any():
                byte = _chunk(places, int(busy.argmax())) * CHUNK
                sync_faults.in_use(m, op, byte, what)
                return

    # ---- ordinary accesses -----------------------------------------------------------------

    def write(self, m: Batch, op: Op, chunks: np.ndarray) -> None:
        """An actor writes chunks of shared memory."""
        self._check_free(m, op, chunks)
        self.lacks[chunks] = _FENCE | (_MEETING if m.actor.warps > 1 else 0)
        self.writers[chunks] = m.actor.number

    def begin_threads(self, m: Batch, op: Op, chunks: np.ndarray) -> None:
        """Threads begin to copy to chunks of shared memory."""
        self._check_free(m, op, chunks)
        self.incoming[chunks] += 1

    def end_threads(self, m: Batch, op: Op, chunks: np.ndarray) -> None:
        """It has landed, as an ordinary write of theirs."""
        self.incoming[chunks] -= 1
        self.lacks[chunks] = _FENCE | (_MEETING if m.actor.warps > 1 else 0)
        self.writers[chunks] = m.actor.number

    def fence(self, one_thread: bool) -> None:
        """A fence between ordinary and asynchronous accesses. That of one thread covers others'
        writes only where they have met before."""
        if one_thread:
            self.lacks[self.lacks == _FENCE] = 0
        else:
            self.lacks &= _MEETING

    def meet(self, actor: int) -> None:
        """The warps of an actor meet, or each of them signals for itself."""
        self.lacks[self.writers == actor] &= _FENCE


def _chunk(places: Any, first: int) -> int:
    """The chunk number at a flat position of places."""
    if isinstance(places, slice):
        return places.start + first
    return int(places.reshape(-1)[first])
