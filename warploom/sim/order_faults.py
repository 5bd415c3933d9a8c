"""What the engine of order finds in memory, as reports in the words of the source: roles, buffers,
lines. What it finds at barriers and flags: `phase_faults.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.ir.op import Op
from warploom.ir.ops import bulk, descriptor, flags, remote, tma
from warploom.sim import phase_faults, sync_faults
from warploom.sim.order.history import Does
from warploom.sim.order.problems import Beginning, Kind, Problem
from warploom.sim.phase_faults import make, name_of

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
    of_phases = phase_faults.TELLERS.get(problem.kind)
    if of_phases is not None:
        of_phases(problem, site)
    else:
        _TELLERS[problem.kind](problem, site, piece)


def _block(site: Site) -> str:
    return sync_faults.block_of(site.m)


# ---- memory ------------------------------------------------------------------------------------


def _by(site: Site, whose: str = "") -> str:
    """The unit that accesses memory for a role, in words; of a block that `whose` names."""
    op, name = site.op, f"{name_of(site)}{whose}"
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
    if before.op.FAMILY == "cp_async":
        return sync_faults.THREADS_WAIT
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
    make(code, message, site, labels, other, tuple(notes), _hint(problem))


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
    reach = [f'{_block(s)}, {name_of(s)}, has scope "{_scope_of(s)}"' for s in (site, other)]
    near = site.m.state.cluster is other.m.state.cluster
    facts = problem.facts
    make(
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
    make(
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
    make(
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


def _storage(problem: Problem, site: Site, piece: Piece | None) -> None:
    """Data on the bytes of a barrier."""
    what, part = _where(problem, piece)
    does = problem.facts["does"]
    make(
        "M035",
        f"{_by(site)} {_VERBS[does]} the bytes of a barrier, {what}",
        site,
        (f"{_DONE[does]} here", "the barrier is made here"),
        problem.other,
        (part, "only operations of barriers may touch it"),
        "keep within the buffer: a slot or an element behind its last one lies in another buffer",
    )


_TELLERS = {
    Kind.SCOPE: _scope,
    Kind.STORAGE: _storage,
    Kind.RACE: _race,
    Kind.FENCE: _fence,
    Kind.EXIT: _exit,
}


# ---- all findings of a launch ------------------------------------------------------------------

# What is unstable explains races, and both explain a deadlock. Bytes of a barrier that are written
# over explain all of them.
_FIRST = dict.fromkeys(("U", "M001", "M011", "M012", "R103"), 0)
_RANKS = {"M035": -1, **_FIRST, "R": 1, "M016": 1, "M": 2, "D": 3, "K": 4}


def in_order(found: list[Report]) -> list[Report]:
    """Findings with those first that explain others. Memory that is read before it is written and
    that a race is reported for counts once."""
    raced = {(s.file, s.line) for f in found if f.code.startswith("R") for s in f.spans}
    kept = [
        f for f in found if f.code != "M002" or not any((s.file, s.line) in raced for s in f.spans)
    ]
    return sorted(kept, key=lambda f: _RANKS.get(f.code, _RANKS[f.code[0]]))
