"""Positions in rings through loops, branches and tiles: the scalars are executed here and held
against plain counting."""

import re
from textwrap import dedent

import pytest

from tests.passes.text import body_of, kernel
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import mbarrier, roles, scalar, wgmma
from warploom.ir.ops.control import For, If, OneThread, Yield
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import verify_kernel
from warploom.passes.thread_positions import thread_positions

PARAMS = "%n: i32@grid, %m: i32@grid"
_KINDS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "xor": lambda a, b: a ^ b,
    "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b,
    "and": lambda a, b: a & b,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "gt": lambda a, b: a > b,
}


def take(ring: int = 1, stages: int = 3, name: str = "s") -> str:
    """An item of a ring, whose position is seen at a wait."""
    return (
        f"%{name}: i32@role, %{name}.p: i32@role = roles.position() "
        f"[ring={ring}, stages={stages}]\n"
        f"%{name}.b: barriers<1> = mbarrier.at(%full, %{name})\n"
        f"mbarrier.wait(%{name}.b, %{name}.p)\n"
    )


def back(behind: int, name: str = "s") -> str:
    """Hand back the item `behind` before the one taken."""
    return f"roles.hand_back(%empty, %{name}) [ring=1, stages=3, behind={behind}]\n"


def loop(body: str, count: str = "%n") -> str:
    return (
        f"control.for(%zero, {count}, %one, []) [unroll=1] (%i: i32@grid) {{\n{body}"
        "control.yield([])\n}\n"
    )


def branch(then: str, orelse: str = "") -> str:
    """Every other trip."""
    blocks = " ".join(f"{{\n{b}control.yield([])\n}}" for b in (then, orelse))
    return (
        '%odd: i32@grid = scalar.binary(%i, %two) [kind="mod"]\n'
        '%first: bool@grid = scalar.compare(%odd, %zero) [kind="eq"]\n'
        f"control.if(%first) {blocks}\n"
    )


def threaded(*bodies: str) -> Kernel:
    """The kernel of roles with these bodies after the pass."""
    count = len(bodies)
    minus = "(" + "-1, " * count + ")"
    names = "(" + "".join(f'"r{i}", ' for i in range(count)) + ")"
    ones = "(" + "1, " * count + ")"
    zeros = "(" + "0, " * count + ")"
    blocks = " ".join(f"{{\n{dedent(b)}control.yield([])\n}}" for b in bodies)
    text = f"""
%zero: i32@grid = scalar.const() [number=0, dtype=i32]
%one: i32@grid = scalar.const() [number=1, dtype=i32]
%two: i32@grid = scalar.const() [number=2, dtype=i32]
%full: barriers<3> = mbarrier.alloc() [count=3, arrivals=1]
%empty: barriers<3> = mbarrier.alloc() [count=3, arrivals=1]
roles.split() [names={names}, warps={ones}, replicas={ones}, registers={zeros}, first={minus}, \
barrier={minus}] {blocks}
"""
    made = parse_kernel(kernel(text, "tile", params=PARAMS))
    verify_kernel(made)
    thread_positions(made, SM_90A)
    verify_kernel(made)
    assert not any(isinstance(op, roles.Position | roles.HandBack) for op in walk(made.body))
    return made


class Machine:
    """Executes the scalars of a role, and writes down waits (slot, phase) and arrivals (slot)."""

    def __init__(self, made: Kernel, role: int, **given: int) -> None:
        self.values: dict[Value, int] = {p: given[p.name] for p in made.params if p.name in given}
        self.events: list[tuple[object, ...]] = []
        split = next(op for op in made.body.ops if isinstance(op, roles.Split))
        for op in made.body.ops:
            if isinstance(op, scalar.Const):
                self.execute(op)
        self.block(split.bodies[role])

    def block(self, block: Block) -> tuple[int, ...]:
        for op in block.ops:
            if isinstance(op, Yield):
                return tuple(self.values[v] for v in op.values)
            self.execute(op)
        raise AssertionError("a block without an end")

    def execute(self, op: Op) -> None:
        v = self.values
        match op:
            case scalar.Const():
                v[op.result] = int(op.number)
            case scalar.Binary() | scalar.Compare():
                v[op.result] = int(_KINDS[op.kind](v[op.lhs], v[op.rhs]))
            case scalar.Select():
                v[op.result] = v[op.yes] if v[op.condition] else v[op.no]
            case mbarrier.At():
                v[op.result] = v[op.index]
            case mbarrier.Wait():
                self.events.append(("take", v[op.barrier], v[op.parity]))
            case mbarrier.Arrive():
                self.events.append(("back", v[op.barrier]))
            case wgmma.Drain():
                self.events.append(("drain", op.pending))
            case OneThread():
                assert op.per == "warp"
                self.block(op.body)
            case For():
                self.loop(op)
            case If():
                ends = self.block(op.then if v[op.condition] else op.orelse)
                v.update(zip(op.results, ends, strict=True))
            case _:
                raise AssertionError(op.OPCODE)

    def loop(self, op: For) -> None:
        carried = tuple(self.values[v] for v in op.inits)
        for number in range(self.values[op.lo], self.values[op.hi], self.values[op.step]):
            self.values.update(zip(op.body.args, (number, *carried), strict=True))
            carried = self.block(op.body)
        self.values.update(zip(op.results, carried, strict=True))


def events(body: str, role: int = 0, **given: int) -> list[tuple[object, ...]]:
    return Machine(threaded(body), role, **given).events


def takes(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [e[1:] for e in found if e[0] == "take"]


def counted(items: int, stages: int = 3) -> list[tuple[int, int]]:
    """Slot and phase of the first items of a ring."""
    return [(i % stages, i // stages % 2) for i in range(items)]


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 12])
def test_a_loop(n: int, stages: int) -> None:
    assert takes(events(loop(take(stages=stages)), n=n)) == counted(n, stages)


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (3, 2), (2, 5), (4, 4)])
def test_nothing_is_reset_between_tiles(m: int, n: int) -> None:
    assert takes(events(loop(loop(take()), "%m"), n=n, m=m)) == counted(m * n)


def test_what_stands_around_loops_counts_too() -> None:
    body = take() + loop(take(), "%m") + take() + loop(take())
    assert takes(events(body, n=2, m=4)) == counted(1 + 4 + 1 + 2)


@pytest.mark.parametrize("n", range(6))
def test_branches_that_take_unequal_numbers(n: int) -> None:
    found = takes(events(loop(branch(take() + take(), take())), n=n))
    assert found == counted(sum(2 - i % 2 for i in range(n)))
    found = takes(events(loop(branch(take()) + loop(branch("", take()), "%m")), n=n, m=3))
    assert found == counted((n + 1) // 2 + n)


def test_rings_and_roles_count_for_themselves() -> None:
    both = loop(take(1) + branch(take(2, 2)))
    made = threaded(both, take(1) + take(1))
    first = takes(Machine(made, 0, n=4).events)
    assert first == [(0, 0), (0, 0), (1, 0), (2, 0), (1, 0), (0, 1)]
    assert takes(Machine(made, 1, n=4).events) == counted(2)


@pytest.mark.parametrize("behind", [1, 2])
@pytest.mark.parametrize("n", range(8))
def test_items_go_back_some_later_and_all_at_the_end(n: int, behind: int) -> None:
    found = events(loop(take() + back(behind)), n=n)
    handed = [e[1] for e in found if e[0] == "back"]
    assert sorted(handed) == sorted(i % 3 for i in range(n)), "each once"
    at = [k for k, e in enumerate(found) if e[0] == "drain"]
    assert len(at) == 1, "one wait for all products at the end of the loop"
    before = [e for e in found[: at[0]] if e[0] == "back"]
    assert [e[1] for e in before] == [i % 3 for i in range(max(0, n - behind))]
    # Item i goes back right after item i + behind was taken.
    for k, event in enumerate(found[: at[0]]):
        if event[0] == "back":
            taken = len(takes(found[:k]))
            done = len([e for e in found[:k] if e[0] == "back"])
            assert taken == done + behind + 1


@pytest.mark.parametrize(("m", "n"), [(3, 0), (3, 1), (2, 4), (0, 4)])
def test_each_loop_hands_back_what_it_holds(m: int, n: int) -> None:
    found = events(loop(loop(take() + back(2)), "%m"), n=n, m=m)
    assert sorted(e[1] for e in found if e[0] == "back") == sorted(i % 3 for i in range(m * n))
    assert sum(e[0] == "drain" for e in found) == m
    held = 0
    for event in found:
        held += {"take": 1, "back": -1, "drain": 0}[event[0]]
        assert held <= 3
        if event[0] == "drain":
            assert held <= 2


def carried(text: str) -> list[int]:
    """How many scalars each loop carries, outer ones first."""
    return [len(op.inits) for op in walk(threaded(text).body) if isinstance(op, For)]


def test_what_is_held_is_carried_only_where_it_is_more_than_nothing() -> None:
    """A slot and a phase always; the items held where a trip may begin or end with one."""
    inner = loop(take() + back(1))
    assert carried(inner) == [3]
    assert carried(loop(inner, "%m")) == [2, 3]
    assert carried(loop(loop(inner, "%m"), "%m")) == [2, 2, 3]
    # An item ahead of the inner loop goes back behind it at the latest, one behind it does not.
    first, after = take(name="t") + back(1, "t"), take(name="u") + back(1, "u")
    assert carried(loop(first + inner, "%m")) == [2, 3]
    assert carried(loop(inner + after, "%m")) == [3, 3]
    assert carried(loop(branch(after), "%m")) == [3]
    assert carried(loop(branch(after) + inner, "%m")) == [2, 3]


@pytest.mark.parametrize("m", range(4))
@pytest.mark.parametrize("n", range(4))
def test_items_ahead_of_an_inner_loop_go_back_once(m: int, n: int) -> None:
    ahead = take(name="t") + back(1, "t")
    found = events(loop(ahead + loop(take() + back(1)), "%m"), n=n, m=m)
    assert takes(found) == counted(m * (n + 1))
    kinds = [event[0] for event in found]
    assert kinds.count("back") == kinds.count("take") == m * (n + 1)


def test_several_items_a_trip_go_back_in_order() -> None:
    found = events(loop(take() + back(1) + take(name="t") + back(1, name="t")), n=3)
    assert [e[1] for e in found if e[0] == "back"] == [i % 3 for i in range(6)]
    held = [1 if e[0] == "take" else -1 for e in found if e[0] != "drain"]
    assert max(sum(held[:k]) for k in range(len(held))) == 2


def test_a_role_hands_back_what_it_holds_outside_loops() -> None:
    found = events(take() + back(1))
    assert found == [("take", 0, 0), ("drain", 0), ("back", 0)]


@pytest.mark.parametrize("n", range(6))
def test_items_held_in_a_branch(n: int) -> None:
    found = events(loop(branch(take() + back(1))), n=n)
    assert [e[1] for e in found if e[0] == "back"] == [i % 3 for i in range((n + 1) // 2)]


def skip(count: str, visits: bool, stages: int = 3) -> str:
    """Pass items of the ring by."""
    return f"roles.skip(%full, %empty, {count}) [ring=1, stages={stages}, visits={visits}]\n"


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("n", range(8))
def test_a_bare_skip_moves_the_position(n: int, stages: int) -> None:
    body = loop(skip("%n", False, stages) + take(stages=stages), "%m")
    found = takes(events(body, n=n, m=4))
    places = [n + i * (n + 1) for i in range(4)]
    assert found == [(at % stages, at // stages % 2) for at in places]


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("n", range(5))
def test_a_skip_that_looks_waits_for_each_item_and_hands_it_back(n: int, stages: int) -> None:
    found = events(loop(skip("%n", True, stages) + take(stages=stages), "%m"), n=n, m=3)
    assert takes(found) == counted(3 * (n + 1), stages)
    handed = [e[1] for e in found if e[0] == "back"]
    skipped = [i for i in range(3 * (n + 1)) if i % (n + 1) != n]
    assert handed == [i % stages for i in skipped]


@pytest.mark.parametrize("visits", [False, True])
def test_a_skip_hands_back_what_is_held_first(visits: bool) -> None:
    found = events(
        loop(take() + back(2) + take(name="t") + back(2, "t") + skip("%m", visits)), n=2, m=1
    )
    assert [e for e in found[:5] if e[0] != "take"] == [("drain", 0), ("back", 1), ("back", 0)]
    handed = sorted(e[1] for e in found if e[0] == "back")
    assert handed == sorted(i % 3 for i in ((0, 1, 2, 3, 4, 5) if visits else (0, 1, 3, 4)))


def test_a_ring_of_one_stage_has_no_slot_to_count() -> None:
    text = body_of(threaded(loop(take(stages=1))))
    assert not re.search(r'kind="add"', text)


def round_of(ring: int = 2, name: str = "r", advances: bool = True) -> str:
    """A round, whose number is seen at a wait."""
    return (
        f"%{name}: i32@role = roles.round() [ring={ring}, advances={advances}]\n"
        f"%{name}.b: barriers<1> = mbarrier.at(%full, %{name})\n"
        f"mbarrier.wait(%{name}.b, %zero)\n"
    )


@pytest.mark.parametrize("n", [0, 1, 4])
def test_rounds_count_on_through_loops_and_branches(n: int) -> None:
    body = round_of() + loop(round_of() + branch(round_of(), round_of() + round_of())) + round_of()
    last = 1 + n + sum(1 if i % 2 == 0 else 2 for i in range(n))
    numbers = [slot for slot, _ in takes(events(body, n=n))]
    assert numbers == list(range(last + 1))


def test_looking_at_a_round_does_not_make_one() -> None:
    body = round_of(advances=False) + round_of() + round_of(advances=False) + round_of()
    assert [slot for slot, _ in takes(events(body))] == [0, 0, 1, 1]
