"""What the engine of order finds, as reports in the words of the source: roles, buffers, lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.ir.op import Op
from warploom.ir.ops import bulk, descriptor, flagged, flags, remote, tma
from warploom.sim import sync_faults
from warploom.sim.order.history import Does
from warploom.sim.order.problems import Beginning, Kind, Problem

if TYPE_CHECKING:
    from warploom.sim.block_races import Clash
    from warploom.sim.booking import Piece, Site
    from warploom.sim.machine import Batch

_VERBS = {Does.READ: "reads", Does.WRITE: "writes", Does.REDUCE: "adds to"}
_DONE = {Does.READ: "read", Does.WRITE: "written", Does.REDUCE: "added to"}
_FLAGS = {flags.Post: "signalled", flags.Poll: "waited for"}


def tell(problem: Problem, piece: Piece | None) -> None:
    """Report a problem."""
    site = problem.site if problem.site is not None else problem.other
    if site is None:
        return
    _TELLERS[problem.kind](problem, site, piece)


def _name(site: Site) -> str:
    return site.m.actor.name


def _block(site: Site) -> str:
    return sync_faults.block_of(site.m)


def _span(site: Site, label: str) -> Span:
    return Span.at(site.op.loc, label=label, role=site.m.actor.role)


def _make(
    code: str,
    message: str,
    site: Site,
    labels: tuple[str, str],
    other: Site | None,
    notes: tuple[str, ...],
    hint: str,
    more: tuple[Span, ...] = (),
) -> None:
    spans = more
    if other is not None:
        spans = (_span(other, labels[1]), *more)
    found = sync_faults.found
    found(site.m, site.op, code, message, *notes, label=labels[0], hint=hint, other=spans)


# ---- barriers ----------------------------------------------------------------------------------


def _arrival(problem: Problem, site: Site, piece: Piece | None) -> None:
    number = problem.facts["phase"]
    _uncertain(problem, site, f"{_name(site)} does not know that phase {number} has completed")


def _many(problem: Problem, site: Site, piece: Piece | None) -> None:
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
    _uncertain(problem, site, f"{why}; {_name(site)} does not know that it has completed")


def _uncertain(problem: Problem, site: Site, why: str) -> None:
    barrier = problem.object
    name = barrier if isinstance(barrier, str) else barrier.buffer
    waited = site.m.state.booking.waited.get(site.m.actor)
    label = "the last wait before it does not tell"
    _make(
        "U101",
        f"an arrival at {name} may come in one phase or in the next",
        site,
        ("this arrival", "an arrival of the phase before"),
        problem.other,
        (f"{_element(barrier)}: {why}",),
        "count the arrivals of a phase, and wait for it, or for what follows on it, before the "
        "next one",
        () if waited is None else (_span(waited, label),),
    )


def _expect(problem: Problem, site: Site, piece: Piece | None) -> None:
    barrier, number = problem.object, problem.facts["phase"]
    _make(
        "U101",
        f"a phase of {barrier.buffer} may complete before its bytes are announced",
        site,
        ("announced here", "this arrival may be the last one"),
        problem.other,
        (f"{barrier.name}, phase {number}: no arrival of the phase comes after this",),
        "announce bytes and arrive by one operation: `expect`",
    )


def _bytes(problem: Problem, site: Site, piece: Piece | None) -> None:
    barrier, facts = problem.object, problem.facts
    number = facts["phase"]
    if "size" in facts:
        text = (
            f"this copy brings {facts['size']:,} bytes to phase {number}, as far as "
            f"{_name(site)} knows, and that phase may have completed without them"
        )
    else:
        expected, issued = facts["expected"], facts["issued"]
        text = f"phase {number}: {expected:,} bytes were announced, copies bring {issued:,}"
    _make(
        "M012",
        f"{barrier.buffer} gets more bytes than were announced",
        site,
        ("this copy", "announced here" if "expected" in facts else "an arrival of its phase"),
        problem.other,
        (f"{barrier.name}: {text}",),
        "announce the bytes of all copies of a phase: whole boxes, also at the edges",
    )


def _wait(problem: Problem, site: Site, piece: Piece | None) -> None:
    barrier, number = problem.object, problem.facts["phase"]
    meant = f"phase {number}" if number >= 0 else "the phase before the first"
    _make(
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


def _left(problem: Problem, site: Site, piece: Piece | None) -> None:
    barrier, facts = problem.object, problem.facts
    if isinstance(barrier, str):
        what, missing = barrier, f"{facts['came']} of {facts['count']} threads have come"
    else:
        what = barrier.buffer
        missing = f"{barrier.name}: phase {facts['phase']} has got {facts['came']} of "
        missing += f"{facts['count']} arrivals"
        if facts["bytes"]:
            missing += f" and lacks {facts['bytes']:,} bytes"
    _make(
        "U103",
        f"the block ends while {what} is inside a phase",
        site,
        ("the last arrival", "made here"),
        problem.other,
        (missing,),
        "let every role go the same number of rounds",
    )


def _storage(problem: Problem, site: Site, piece: Piece | None) -> None:
    """Data on the bytes of a barrier."""
    what, part = _where(problem, piece)
    does = problem.facts["does"]
    _make(
        "M035",
        f"{_by(site)} {_VERBS[does]} the bytes of a barrier, {what}",
        site,
        (f"{_DONE[does]} here", "the barrier is made here"),
        problem.other,
        (part, "only operations of barriers may touch it"),
        "keep within the buffer: a slot or an element behind its last one lies in another buffer",
    )


def _taken(problem: Problem, site: Site, piece: Piece | None) -> None:
    """An item that two take, or nobody."""
    barrier, number, other = problem.object, problem.facts["phase"], problem.other
    if other is None:
        message, labels = "an item of a pipe is taken by nobody", ("this item", "")
        why = "it is filled, and all skip it"
    else:
        message, labels = "an item of a pipe is taken by two", ("taken here", "and here")
        why = f"it goes to {_name(other)} and to {_name(site)}"
    _make(
        "M034",
        message,
        site,
        labels,
        other,
        (f"{barrier.name}, phase {number}: {why}",),
        'with `deliver="one"` each item belongs to one replica: the others skip it, once each',
    )


def _unmade(problem: Problem, site: Site, piece: Piece | None) -> None:
    barrier = problem.object
    why = "nothing orders the one with the other"
    hint = "let all warps of the block meet after barriers are made"
    if "fence" in problem.facts:
        why = "no fence has published it to copies and to other blocks"
        hint = "whoever makes barriers fences them (fence.mbarrier_init) before all warps meet"
    _make(
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


def _signal(problem: Problem, site: Site, piece: Piece | None) -> None:
    name, target = problem.object.name, problem.facts["target"]
    _make(
        "U105",
        f"a wait for {name} may be over without a signal that it took",
        site,
        ("waits here", "this signal"),
        problem.other,
        (f"other signals may make it {target} first, or this one may not be needed",),
        "wait for the sum of all signals of a round, and let nobody signal for the next round "
        "before it has waited for this one",
    )


def _store(problem: Problem, site: Site, piece: Piece | None) -> None:
    name = problem.object.name
    _make(
        "U106",
        f"a signal at {name} is not ordered with what was signalled or waited for there",
        site,
        ("this signal", "not ordered with this"),
        problem.other,
        (f"{name} may be seen with either value, or never with this one",),
        "let the one who waits answer, and wait for the answer before the next signal",
    )


def _word(problem: Problem, site: Site, piece: Piece | None) -> None:
    name, tag = problem.object.name.name, problem.facts["tag"]
    assert isinstance(site.op, flagged.Put)
    _make(
        "U107",
        f"flagged data of `{site.op.tensor.name}` is sent again before it is known to be received",
        site,
        ("sent again here", "not ordered with this"),
        problem.other,
        (f"{name}: the epoch {tag} may be gone before it is seen",),
        "let two buffers take turns, and receive a round from all before sending the next to the "
        "same words",
    )


# ---- memory ------------------------------------------------------------------------------------


def _by(site: Site, whose: str = "") -> str:
    """The unit that accesses memory for a role, in words; of a block that `whose` names."""
    op, name = site.op, f"{_name(site)}{whose}"
    if op.FAMILY == "wgmma":
        return f"the matrix unit for {name}"
    if op.FAMILY in ("shared_memory", "global_memory", "flags", "flagged", "descriptor"):
        return name
    if isinstance(op, remote.LoadGroups | remote.StoreGroups):
        return name
    if isinstance(op, remote.SendGroups):
        return f"what {name} sends"
    return f"a copy of {name}"


def _done(site: Site, does: Does) -> str:
    """What a site has done to memory, in a word for a label."""
    return _FLAGS.get(type(site.op), _DONE[does])


def _where(problem: Problem, piece: Piece | None) -> tuple[str, str]:
    """The buffer or tensor, and the element, in words."""
    assert piece is not None
    sites = (problem.site, problem.other)
    if any(isinstance(getattr(s, "op", None), descriptor.Write) for s in sites):
        return "a descriptor", f"row {piece.byte(problem.facts['cell']) // 128} of `{piece.name}`"
    if piece.state is None:
        at = piece.byte(problem.facts["cell"])
        return f"`{piece.name}`", f"byte {at:,} of `{piece.name}`"
    byte = problem.facts["cell"] * piece.unit
    return piece.state.buffer_of(byte), piece.state.part_of(byte)


def _trips(problem: Problem, site: Site) -> list[str]:
    """In which trips of their loops two accesses took place, in words."""
    facts, other = problem.facts, problem.other
    told = [
        f"{_done(one, does)} at {', '.join(f'{name} = {at:,}' for name, at in one.trips)}"
        for one, does in ((site, facts["does"]), (other, facts["did"]))
        if one.trips
    ]
    return [", ".join(told)] if told else []


_OWN = "blocks run in any order: let each write elements of its own"
_UNORDERED = "nothing orders these blocks"


def _hint(problem: Problem) -> str:
    before: Site = problem.other
    facts = problem.facts
    if facts["foreign"]:
        return _OWN
    if _in_one_warp(problem):
        return "let the lanes meet between the two: `wl.warp_sync()`"
    if facts["was_generic"]:
        return "let them meet, or hand over by an arrival after the one and a wait before the other"
    if before.op.FAMILY == "wgmma":
        return "wait until the product has retired, then hand the memory back"
    if isinstance(before.op, tma.LoadBox | bulk.LoadBytes | remote.SendGroups | remote.CopyBytes):
        return "wait for the barrier that the copy completes on"
    return "the thread that issued the copy waits for it, and then hands the memory back"


def _in_one_warp(problem: Problem) -> bool:
    """Whether it is lanes that have not met, of a role that is one warp."""
    return problem.facts["lanes"] and problem.site.m.actor.warps == 1


def _race(problem: Problem, site: Site, piece: Piece | None) -> None:
    assert piece is not None
    facts, other = problem.facts, problem.other
    if isinstance(other, Beginning):
        sync_faults.before_its_start(site.m, site.op, other.state)
        return
    what, part = _where(problem, piece)
    still = "be reading" if facts["did"] is Does.READ else "be writing"
    if not facts["was_generic"]:
        still = f"still {still}"
    one, two, same = _by(site), _by(other), " another time" if other.op is site.op else ""
    if site.m.state is not other.m.state:
        one, two, same = _by(site, site.m.state.of_rank), _by(other, other.m.state.of_rank), ""
    notes = [part, "no chain of arrivals and waits leads from the one to the other"]
    if _in_one_warp(problem):
        notes[1] = "different lanes of one warp do the one and the other: nothing lets them meet"
    if facts["foreign"]:
        one, two, same = _block(site), _block(other), ""
        notes[1] = _UNORDERED
    message = f"{one} {_VERBS[facts['does']]} {what} while {two} may {still} it{same}"
    labels = (f"{_done(site, facts['does'])} here", f"{_done(other, facts['did'])} here")
    notes += _trips(problem, site)
    code = "R101" if piece.state is not None else "R102"
    _make(code, message, site, labels, other, tuple(notes), _hint(problem))


def race_of_blocks(m: Batch, op: Op, piece: Piece, does: Does, clash: Clash) -> None:
    """Two blocks at one element where nothing orders blocks at all."""
    one, two = (f"block {m.launch.name_block(b)}" for b in (clash.block, clash.its_block))
    still = "be reading" if clash.did is Does.READ else "be writing"
    byte = piece.byte(clash.cell)
    made = report(
        "R102",
        f"{one} {_VERBS[does]} `{piece.name}` while {two} may {still} it",
        Span.at(op.loc, label=f"{_DONE[does]} here"),
        Span.at(clash.other.loc, label=f"{_DONE[clash.did]} here"),
        notes=(f"byte {byte:,} of `{piece.name}`", _UNORDERED),
        hint=_OWN,
        block=clash.block,
        tensor=piece.name,
    )
    m.launch.find(made, op.loc)


def _scope(problem: Problem, site: Site, piece: Piece | None) -> None:
    """Two atomic accesses of which one does not reach the thread of the other."""
    what, part = _where(problem, piece)
    other: Site = problem.other
    reach = [f'{_block(s)}, {_name(s)}, has scope "{_scope_of(s)}"' for s in (site, other)]
    near = site.m.state.cluster is other.m.state.cluster
    facts = problem.facts
    _make(
        "R103",
        f"two atomic accesses to {what} leave each other out",
        site,
        (f"{_done(site, facts['does'])} here", f"{_done(other, facts['did'])} here"),
        other,
        (part, f"this one: {reach[0]}", f"the other: {reach[1]}"),
        f'give both `scope="{"cluster" if near else "gpu"}"`, or a wider one',
    )


def _scope_of(site: Site) -> str:
    """The scope of an atomic access, in words of the source."""
    return getattr(site.op, "scope", "gpu")


def _fence(problem: Problem, site: Site, piece: Piece | None) -> None:
    facts = problem.facts
    what, part = _where(problem, piece)
    was = "write" if facts["did"] is Does.WRITE else "read"
    _make(
        "M016",
        f"an access to {what} is not ordered with an ordinary {was} before",
        site,
        (f"{_DONE[facts['does']]} here by {_unit(site)}", f"{_DONE[facts['did']]} here"),
        problem.other,
        (part, "no fence stands between", *_trips(problem, site)),
        "`wl.fence_async()` after the ordinary access",
    )


def not_acquired(site: Site, made: Site) -> None:
    """A copy by a descriptor that nobody has acquired since it was made, as far as it knows."""
    _make(
        "M038",
        "a copy may go by what its descriptor was before it was made here",
        site,
        ("this copy", "made here"),
        made,
        ("no `acquire` of the descriptor comes after the one and before the other",),
        "`d.acquire()` by the warp that copies, or leave out `acquire=False`",
    )


def _unit(site: Site) -> str:
    return "the matrix unit" if site.op.FAMILY == "wgmma" else "the copy engine"


def _exit(problem: Problem, site: Site, piece: Piece | None) -> None:
    what, label = "a copy to its shared memory has arrived", "this copy"
    assert piece is not None
    if piece.state is not site.m.state:
        sync_faults.after_its_end(site.m, site.op, piece.state)
        return
    if problem.other is not None:
        what, label = "an arrival at its barrier is over", "this arrival"
    elif site.op.FAMILY == "wgmma":
        what, label = "a product has read its operands", "this product"
    elif problem.facts["did"] is Does.READ:
        what = "a copy has read its shared memory"
    sync_faults.barrier_left(site.m, site.op, what, label)


_TELLERS = {
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
    Kind.SCOPE: _scope,
    Kind.TAKEN: _taken,
    Kind.STORAGE: _storage,
    Kind.RACE: _race,
    Kind.FENCE: _fence,
    Kind.EXIT: _exit,
}


# ---- all findings of a launch ------------------------------------------------------------------

# What is unstable explains races, and both explain a deadlock.
_FIRST = dict.fromkeys(("U", "M011", "M012", "M035", "R103"), 0)
_RANKS = {**_FIRST, "R": 1, "M016": 1, "M": 2, "D": 3, "K": 4}


def in_order(found: list[Report]) -> list[Report]:
    """Findings with those first that explain others. Memory that is read before it is written and
    that a race is reported for counts once."""
    raced = {(s.file, s.line) for f in found if f.code.startswith("R") for s in f.spans}
    kept = [
        f for f in found if f.code != "M002" or not any((s.file, s.line) in raced for s in f.spans)
    ]
    return sorted(kept, key=lambda f: _RANKS.get(f.code, _RANKS[f.code[0]]))
