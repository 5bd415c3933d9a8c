"""What a stopped block looks like: its roles and its barriers as tables, for the prompt. Knows no
single operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.base.diagnostics import shown_path
from warploom.base.table import aligned
from warploom.ir.op import Loc
from warploom.passes.place_roles import IDLE

if TYPE_CHECKING:
    from warploom.sim.actors import Actor
    from warploom.sim.block import BlockState


def roles(state: BlockState | None, here: Actor | None, place: Loc) -> list[str]:
    """A line a replica: where it is, and what it waits for."""
    if state is None or here is None or not here.role:
        return ["no roles run here: all warps of the block do the same"]
    rows = [("role", "replica", "warps", "state")]
    scheduler = state.cluster.scheduler
    actors = [a for a in (*scheduler.actors, *scheduler.ended) if a.block is state]
    for actor in sorted(actors, key=lambda actor: actor.number):
        if actor.role and actor.role != IDLE:
            row = (actor.role, str(actor.replica), str(actor.warps))
            rows.append((*row, _state(actor, state, here, place)))
    return aligned(rows)


def _state(actor: Actor, state: BlockState, here: Actor, place: Loc) -> str:
    if actor is here:
        return f"stopped at {_at(place)}"
    if actor in state.cluster.scheduler.ended:
        return "has ended"
    wait = actor.wait
    if wait is None:
        return "can go on" if actor.begun else "has not begun"
    if wait.ready():
        return f"can go on at {_at(wait.op.loc)}"
    return f"waits at {_at(wait.op.loc)} for {wait.words()}"


def _at(place: Loc) -> str:
    return f"{shown_path(place.file)}:{place.line}"


def barriers(state: BlockState | None) -> list[str]:
    """A line a barrier: mbarriers with what their phase lacks, named barriers that are in use."""
    if state is None or not (state.barriers or state.named):
        return ["no barriers have been made"]
    rows = [("barrier", "phase", "arrivals to come", "bytes to come", "from")]
    for address, held in sorted(state.barriers.items()):
        bytes_to_come = f"{held.bytes:,} of {held.expected:,}" if held.expected else "0"
        if held.bytes < 0:
            bytes_to_come = f"{-held.bytes:,} not announced"
        arrivals = f"{held.pending} of {held.count}"
        roles = " ".join(state.roles_that_signal(address))
        rows.append((held.name.strip("`"), str(held.phase), arrivals, bytes_to_come, roles))
    for number, named in sorted(state.named.items()):
        if named.users:
            missing = f"{named.threads - named.arrived} of {named.threads} threads"
            users = " ".join(user.replace("`", "") for user in sorted(named.users))
            rows.append((f"number {number}", str(named.generation), missing, "", users))
    return aligned(rows)
