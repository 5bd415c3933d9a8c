"""Places of buffers: those that live together are apart, others may share."""

import itertools

import pytest

from tests.passes.text import parsed
from warploom.base.errors import CompileError
from warploom.base.target import SM_80, SM_90A, Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.ops.shared_memory import BufferOp
from warploom.passes.plan_shared_memory import plan_shared_memory

HEAD = """
%o: i32[1] = index.lane() [rank=1]
%v: f32[1] = registers.splat(%p) [rank=1]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
"""


def new(name: str, elements: int = 128, dtype: str = "f32") -> str:
    return (
        f"%{name}: buffer<{dtype}, {elements}> = shared_memory.buffer() "
        f"[dtype={dtype}, elements={elements}, at=-1]\n"
    )


def put(name: str) -> str:
    return f"shared_memory.store(%{name}, %v, %o, _) [axis=0, vec=1]\n"


def get(name: str) -> str:
    return f"%_: f32[1] = shared_memory.load(%{name}, %o, _) [axis=0, vec=1]\n"


def loop(body: str) -> str:
    return (
        f"control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {{\n{body}control.yield([])\n}}\n"
    )


def branch(then: str, orelse: str) -> str:
    return f"control.if(%q) {{\n{then}control.yield([])\n}} {{\n{orelse}control.yield([])\n}}\n"


def planned(body: str, target: Target = SM_90A) -> Kernel:
    made = parsed(HEAD + body)
    plan_shared_memory(made, target)
    return made


def places(body: str) -> dict[str, range]:
    made = planned(body)
    found = {
        op.result.name: range(op.at, op.at + op.elements * op.dtype.bytes)
        for op in walk(made.body)
        if isinstance(op, BufferOp)
    }
    assert all(place.start % 16 == 0 for place in found.values())
    assert all(0 <= p.start and p.stop <= made.shared_bytes for p in found.values())
    return found


def apart(found: dict[str, range]) -> set[str]:
    """Pairs of names whose bytes are different ones."""
    return {
        a + b
        for (a, p), (b, q) in itertools.combinations(sorted(found.items()), 2)
        if p.stop <= q.start or q.stop <= p.start
    }


def test_one_after_the_other_share() -> None:
    body = new("a") + put("a") + get("a") + new("b") + put("b") + get("b")
    assert apart(places(body)) == set()
    assert planned(body).shared_bytes == 512


def test_at_the_same_time_do_not() -> None:
    body = new("a") + new("b") + put("a") + put("b") + get("a") + get("b")
    assert apart(places(body)) == {"ab"}
    assert planned(body).shared_bytes == 1024


def test_a_gap_is_filled() -> None:
    body = (
        new("a")
        + put("a")
        + new("b")
        + put("b")
        + get("a")
        + new("c", 64)
        + put("c")
        + get("b")
        + get("c")
    )
    found = places(body)
    assert found["c"].start == found["a"].start
    assert apart(found) == {"ab", "bc"}


def test_a_buffer_made_before_a_loop_lives_through_it() -> None:
    body = new("a") + loop(get("a") + put("a") + new("b") + put("b") + get("b"))
    assert apart(places(body)) == {"ab"}


def test_a_buffer_used_after_a_loop_lives_through_it() -> None:
    body = new("a") + put("a") + loop(new("b") + put("b") + get("b")) + get("a")
    assert apart(places(body)) == {"ab"}


def test_a_buffer_dead_before_a_loop_does_not() -> None:
    body = new("a") + put("a") + get("a") + loop(new("b") + put("b") + get("b"))
    assert apart(places(body)) == set()


def test_buffers_of_one_trip_may_share_and_nested_loops_keep_outer_ones() -> None:
    body = loop(new("a") + put("a") + get("a") + new("b") + put("b") + get("b"))
    assert apart(places(body)) == set()
    body = loop(new("a") + put("a") + loop(new("b") + put("b") + get("b") + get("a")))
    assert apart(places(body)) == {"ab"}


def test_two_ways_of_a_branch_share() -> None:
    body = branch(new("a") + put("a") + get("a"), new("b") + put("b") + get("b"))
    assert apart(places(body)) == set()
    body = new("c") + put("c") + branch(new("a") + put("a"), new("b") + put("b")) + get("c")
    assert apart(places(body)) == {"ac", "bc"}


def test_odd_sizes_are_aligned() -> None:
    body = new("a", 33) + new("b", 7, "bool") + new("c") + put("a") + put("c") + get("a")
    made = planned(body)
    assert made.shared_bytes % 16 == 0


def test_nothing_to_plan() -> None:
    assert planned("").shared_bytes == 0


def test_too_much_is_refused_with_the_numbers() -> None:
    body = new("a", 30_000) + new("b", 40_000) + put("a") + put("b") + get("a") + get("b")
    with pytest.raises(CompileError) as caught:
        planned(body)
    report = caught.value.reports[0]
    assert report.code == "B001"
    assert report.message == "a block needs 280,000 bytes of shared memory, and sm_90a has 232,448"
    assert report.notes == (
        "160,000 bytes: `b`, 40,000 f32, line 0",
        "120,000 bytes: `a`, 30,000 f32, line 0",
        "47,552 bytes too many",
    )
    names = [chr(ord("a") + n) for n in range(8)]
    many = "".join(new(n, 8000) for n in names) + "".join(put(n) + get(n) for n in names)
    body = many + "".join(get(n) for n in names)
    with pytest.raises(CompileError) as caught:
        planned(body)
    assert caught.value.reports[0].notes[-2:] == (
        "64,000 bytes: 2 smaller parts",
        "23,552 bytes too many",
    )
    fits = new("a", 45_000) + put("a")
    assert planned(fits).shared_bytes == 180_000
    with pytest.raises(CompileError, match="sm_80 has 166,912"):
        planned(fits, SM_80)
