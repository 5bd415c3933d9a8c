"""What the engine of order finds at barriers, flags and flagged data, as reports in the words of
the source. Knows no access to memory (`order_faults.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Span
from warploom.ir.ops import flagged
from warploom.sim import sync_faults
from warploom.sim.order.problems import Kind, Problem

if TYPE_CHECKING:
    from warploom.sim.booking import Site


def name_of(site: Site) -> str:
    """Who acts at a site."""
    return site.m.actor.name


def span(site: Site, label: str) -> Span:
    """The place of a site, with its role."""
    return Span.at(site.op.loc, label=label, role=site.m.actor.role)


def make(
    code: str,
    message: str,
    site: Site,
    labels: tuple[str, str],
    other: Site | None,
    notes: tuple[str, ...],
    hint: str,
    more: tuple[Span, ...] = (),
) -> None:
    """Report what was found at a site; `other` is the one that it has to do with."""
    spans = more
    if other is not None:
        spans = (span(other, labels[1]), *more)
    found = sync_faults.found
    found(site.m, site.op, code, message, *notes, label=labels[0], hint=hint, other=spans)


# ---- barriers ----------------------------------------------------------------------------------


def _arrival(problem: Problem, site: Site) -> None:
    number = problem.facts["phase"]
    _uncertain(problem, site, f"{name_of(site)} does not know that phase {number} has completed")


def _many(problem: Problem, site: Site) -> None:
    barrier, facts = problem.object, problem.facts
    if isinstance(barrier, str):
        return  # M018 says so
    if facts["more"] > facts["count"]:
        lacks = facts["count"] - facts["came"]
        sync_faults.too_many_arrivals(
            site.m, site.op, barrier, facts["more"], facts["phase"], lacks
        )
        return
    why = f"phase {facts['phase']} takes {facts['count']} and has got {facts['came']}"
    _uncertain(problem, site, f"{why}; {name_of(site)} does not know that it has completed")


def _uncertain(problem: Problem, site: Site, why: str) -> None:
    barrier = problem.object
    name = barrier if isinstance(barrier, str) else barrier.buffer
    waited = site.m.state.booking.waited.get(site.m.actor)
    label = "the last wait before it does not tell"
    make(
        "U101",
        f"an arrival at {name} may come in one phase or in the next",
        site,
        ("this arrival", "an arrival of the phase before"),
        problem.other,
        (f"{_element(barrier)}: {why}",),
        "count the arrivals of a phase, and wait for it, or for what follows on it, before the "
        "next one",
        () if waited is None else (span(waited, label),),
    )


def _expect(problem: Problem, site: Site) -> None:
    barrier, number = problem.object, problem.facts["phase"]
    make(
        "U101",
        f"a phase of {barrier.buffer} may complete before its bytes are announced",
        site,
        ("announced here", "this arrival may be the last one"),
        problem.other,
        (f"{barrier.name}, phase {number}: no arrival of the phase comes after this",),
        "announce bytes and arrive by one operation: `expect`",
    )


def _bytes(problem: Problem, site: Site) -> None:
    barrier, facts = problem.object, problem.facts
    number = facts["phase"]
    if "size" in facts:
        text = (
            f"this copy brings {facts['size']:,} bytes to phase {number}, as far as "
            f"{name_of(site)} knows, and that phase may have completed without them"
        )
    else:
        expected, issued = facts["expected"], facts["issued"]
        text = f"phase {number}: {expected:,} bytes were announced, copies bring {issued:,}"
    make(
        "M012",
        f"{barrier.buffer} gets more bytes than were announced",
        site,
        ("this copy", "announced here" if "expected" in facts else "an arrival of its phase"),
        problem.other,
        (f"{barrier.name}: {text}",),
        "announce the bytes of all copies of a phase: whole boxes, also at the edges",
    )


def _wait(problem: Problem, site: Site) -> None:
    barrier, number = problem.object, problem.facts["phase"]
    meant = f"phase {number}" if number >= 0 else "the phase before the first"
    make(
        "U102",
        f"a wait at {barrier.buffer} may be a lap early or late",
        site,
        ("waits here", "the phase after it completes here"),
        problem.other,
        (
            f"{barrier.name}: it means {meant}, and phase {number + 1} can complete without "
            "anything that comes after the wait",
            "a parity tells a phase from the next one, not from the one after that",
        ),
        "let each who waits also hand the slot back, and count those arrivals",
    )


def _left(problem: Problem, site: Site) -> None:
    barrier, facts = problem.object, problem.facts
    if isinstance(barrier, str):
        what, missing = barrier, f"{facts['came']} of {facts['count']} threads have come"
    else:
        what = barrier.buffer
        missing = f"{barrier.name}: phase {facts['phase']} has got {facts['came']} of "
        missing += f"{facts['count']} arrivals"
        if facts["bytes"]:
            missing += f" and lacks {facts['bytes']:,} bytes"
    make(
        "U103",
        f"the block ends while {what} is inside a phase",
        site,
        ("the last arrival", "made here"),
        problem.other,
        (missing,),
        "let every role go the same number of rounds",
    )


def _taken(problem: Problem, site: Site) -> None:
    """An item that two take, or nobody."""
    barrier, number, other = problem.object, problem.facts["phase"], problem.other
    if other is None:
        message, labels = "an item of a pipe is taken by nobody", ("this item", "")
        why = "it is filled, and all skip it"
    else:
        message, labels = "an item of a pipe is taken by two", ("taken here", "and here")
        why = f"it goes to {name_of(other)} and to {name_of(site)}"
    make(
        "M034",
        message,
        site,
        labels,
        other,
        (f"{barrier.name}, phase {number}: {why}",),
        'with `deliver="one"` each item belongs to one replica: the others skip it, once each',
    )


def _unmade(problem: Problem, site: Site) -> None:
    barrier = problem.object
    why = "nothing orders the one with the other"
    hint = "let all warps of the block meet after barriers are made"
    if "fence" in problem.facts:
        why = "no fence has published it to copies and to other blocks"
        hint = "whoever makes barriers fences them (fence.mbarrier_init) before all warps meet"
    make(
        "U104",
        f"{barrier.buffer} may be used before it has been made",
        site,
        ("used here", "made here"),
        problem.other,
        (f"{barrier.name}: {why}",),
        hint,
    )


def _element(barrier: Any) -> str:
    return barrier if isinstance(barrier, str) else barrier.name


def _signal(problem: Problem, site: Site) -> None:
    name, target = problem.object.name, problem.facts["target"]
    make(
        "U105",
        f"a wait for {name} may be over without a signal that it took",
        site,
        ("waits here", "this signal"),
        problem.other,
        (f"other signals may make it {target} first, or this one may not be needed",),
        "wait for the sum of all signals of a round, and let nobody signal for the next round "
        "before it has waited for this one",
    )


def _store(problem: Problem, site: Site) -> None:
    name = problem.object.name
    make(
        "U106",
        f"a signal at {name} is not ordered with what was signalled or waited for there",
        site,
        ("this signal", "not ordered with this"),
        problem.other,
        (f"{name} may be seen with either value, or never with this one",),
        "let the one who waits answer, and wait for the answer before the next signal",
    )


def _word(problem: Problem, site: Site) -> None:
    name, tag = problem.object.name.name, problem.facts["tag"]
    assert isinstance(site.op, flagged.Put)
    make(
        "U107",
        f"flagged data of `{site.op.tensor.name}` is sent again before it is known to be received",
        site,
        ("sent again here", "not ordered with this"),
        problem.other,
        (f"{name}: the epoch {tag} may be gone before it is seen",),
        "let two buffers take turns, and receive a round from all before sending the next to the "
        "same words",
    )


# Who tells what. All else lies in memory.
TELLERS = {
    Kind.ARRIVAL: _arrival,
    Kind.MANY_ARRIVALS: _many,
    Kind.EXPECT: _expect,
    Kind.BYTES: _bytes,
    Kind.WAIT: _wait,
    Kind.LEFT: _left,
    Kind.UNMADE: _unmade,
    Kind.SIGNAL: _signal,
    Kind.STORE: _store,
    Kind.WORD: _word,
    Kind.TAKEN: _taken,
}
