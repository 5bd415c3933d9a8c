"""Runs of a launch that leave tapes. A wait that nothing can end is let go, so that each warp's
tape is whole: what a warp does next does not depend on when it could go on.

Knows no single operation and not how tapes are explored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Report
from warploom.sim.actors import Actor
from warploom.sim.booking import Booking
from warploom.sim.explore.tape import Event, Tape, What
from warploom.sim.machine import Launch

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.cluster import Cluster


class Recording:
    """The tapes of a launch, one for each group of blocks that were resident together. `sure`: what
    had been found when a wait was first let go; None where none was."""

    def __init__(self, ordered: bool) -> None:
        self.ordered = ordered  # whether atomic operations keep the order of the run
        self.tapes: list[Tape] = []
        self.sure: list[Report] | None = None

    def booking(self, launch: Launch, unit: int, reached: bool) -> TapedBooking:
        """The booking of blocks that begin together."""
        made = TapedBooking(launch.outside, unit, reached)
        made.recording, made.launch = self, launch
        tape = made.engine
        assert isinstance(tape, Tape)
        tape.ordered = self.ordered
        self.tapes.append(tape)
        return made


class TapedBooking(Booking):
    """A booking whose engine keeps a tape."""

    ENGINE = Tape
    recording: Recording
    launch: Launch

    @property
    def tape(self) -> Tape:
        """The engine as what it is."""
        assert isinstance(self.engine, Tape)
        return self.engine

    def let_go(self, waiting: Sequence[Actor]) -> bool:
        """Nothing can move: one that waits goes on all the same."""
        if self.recording.sure is None:
            self.recording.sure = list(self.launch.findings)
        waiting[0].wait = None
        return True

    def enter(self, state: BlockState, actor: Actor) -> None:
        super().enter(state, actor)
        self._belongs(actor)

    def split(self, parent: Actor, child: Actor, first: int) -> None:
        super().split(parent, child, first)
        self._belongs(child)

    def _belongs(self, actor: Actor) -> None:
        for warp in self.tape.warps_of(self.warps(actor).lanes):
            self.tape.actors[warp] = actor

    def come(self, actor: Actor, opening: tuple[Cluster, int], ordered: bool, site: Any) -> None:
        super().come(actor, opening, ordered, site)
        tape, (cluster, _) = self.tape, opening
        members = tuple(w for w, block in enumerate(tape.blocks) if block.cluster is cluster)
        tape.gather(self.warps(actor), cluster, members, site)

    def close(self) -> None:
        super().close()
        self.finish()

    def finish(self) -> None:
        """All have ended."""
        for events in self.tape.events:
            events.append(Event(What.END, 0, 0, None))
