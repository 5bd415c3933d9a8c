"""Checked mode of accesses to the shared memory of peers: addresses must have been written, and
what is stored makes the peer's memory as written as the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.ops import remote
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import shadows
from warploom.sim.rules.remote import Remote
from warploom.sim.shadow_steps import check_addresses, matters, read_state, store_state

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@shadows(remote.LoadGroups)
def load(t: Translator, op: remote.LoadGroups) -> Step:
    access, d = Remote(t, op), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", access.address)
        found = access.place(s, m)
        m.shadow[d] = None
        if found is not None:
            check_addresses(m, op, found[1], access.offset, access.predicate)
            m.shadow[d] = read_state(m, op, found[1])

    return step


@shadows(remote.StoreGroups)
def store(t: Translator, op: remote.StoreGroups) -> Step:
    access, value = Remote(t, op), t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", access.address)
        found = access.place(s, m)
        if found is not None:
            check_addresses(m, op, found[1], access.offset, access.predicate)
            store_state(found[1], m.shadow[value], lambda flags: flags)

    return step


@shadows(remote.SendGroups)
def send(t: Translator, op: remote.SendGroups) -> Step:
    """What is sent is as written as the value once it has come; `rules.remote` sees to it."""
    access, barrier = Remote(t, op), t.slot(op.barrier)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", access.address, barrier)
        found = access.place(s, m)
        if found is not None:
            check_addresses(m, op, found[1], access.offset, access.predicate)

    return step
