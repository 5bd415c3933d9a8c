"""touches: which bytes operations concern, for whom, and what has to wait for what."""

from dataclasses import replace

import pytest

from tests.passes.test_order_of_units import (
    ARRIVE,
    HEAD,
    PARAMS,
    box_in,
    box_out,
    dot,
    get,
    one,
    put,
)
from tests.passes.text import kernel
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op
from warploom.ir.ops import mbarrier, shared_memory, tma, wgmma
from warploom.ir.parser import parse_kernel
from warploom.passes.touches import COPY, PRODUCT, Memory, Touch, arrives, buffer_of

READ = Touch("shared", 64, 128, writes=False, what="read")
WRITE = replace(READ, writes=True, what="write")
MINE, OTHERS = ("lane",), ("lane", 1)


def made(body: str) -> Kernel:
    return parse_kernel(kernel(HEAD + body, params=PARAMS))


def first(of: Kernel, kind: type[Op]) -> Op:
    return next(op for op in walk(of.body) if isinstance(op, kind))


# ---- two touches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lo", "hi", "same"),
    [(0, 64, False), (0, 65, True), (127, 200, True), (128, 200, False), (80, 90, True)],
)
def test_bytes_overlap_up_to_the_last(lo: int, hi: int, same: bool):
    other = replace(READ, lo=lo, hi=hi)
    assert WRITE.overlaps(other) is same
    assert other.overlaps(WRITE) is same


def test_one_of_two_must_write():
    assert not READ.overlaps(READ)
    assert READ.overlaps(WRITE)
    assert WRITE.overlaps(READ)
    assert WRITE.overlaps(WRITE)


def test_spaces_lie_apart():
    assert not WRITE.overlaps(replace(WRITE, space="x"))


def test_a_thread_does_not_wait_for_itself():
    mine = replace(WRITE, threads=MINE)
    assert not mine.conflicts(replace(READ, threads=MINE))
    assert mine.conflicts(replace(READ, threads=OTHERS))


def test_unknown_threads_are_others():
    assert WRITE.conflicts(READ)
    assert WRITE.conflicts(replace(READ, threads=MINE))
    assert replace(WRITE, threads=MINE).conflicts(READ)


def test_what_does_not_overlap_does_not_conflict():
    assert not READ.conflicts(READ)
    assert not WRITE.conflicts(replace(WRITE, lo=128, hi=256))


@pytest.mark.parametrize(
    ("earlier", "later", "waits"),
    [
        (COPY, COPY, False),  # one thread begins both, and has waited between
        (COPY, PRODUCT, False),
        (COPY, "", True),  # that thread knows, the others do not
        (PRODUCT, COPY, True),
        (PRODUCT, "", True),
        ("", COPY, True),
        ("", PRODUCT, True),
    ],
)
def test_agents(earlier: str, later: str, waits: bool):
    assert replace(WRITE, agent=earlier).conflicts(replace(READ, agent=later)) is waits


def test_touches_are_sorted_by_place():
    low, wide = replace(WRITE, lo=0, hi=64), replace(READ, hi=256)
    elsewhere = replace(READ, space="x", lo=0)
    ordered = sorted([elsewhere, WRITE, wide, READ, low], key=lambda touch: touch.order)
    assert ordered == [low, READ, WRITE, wide, elsewhere]


# ---- operations --------------------------------------------------------------------------------


def test_threads_touch_the_whole_buffer():
    of = made(put("b") + get("a"))
    memory = Memory(of)
    stored = memory.of_threads(first(of, shared_memory.Store))
    assert stored == Touch("shared", 512, 1024, writes=True, what="write of b@512")
    loaded = memory.of_threads(first(of, shared_memory.Load))
    assert loaded == Touch("shared", 0, 512, writes=False, what="read of a@0")
    assert memory.asynchronous == []


def test_making_a_barrier_writes_it():
    of = made("mbarrier.init(%bar) [arrivals=1]\n")
    touch = Memory(of).of_threads(first(of, mbarrier.Init))
    assert touch == Touch("shared", 1024, 1040, writes=True, what="write of bars@1024")


@pytest.mark.parametrize(
    ("body", "kind", "what", "writes"),
    [
        (box_in("b"), tma.LoadBox, "write of b@512 by the copy engine", True),
        (box_out("b"), tma.StoreBox, "read of b@512 by the copy engine", False),
    ],
    ids=["in", "out"],
)
def test_the_copy_engine_touches_the_buffer_of_its_address(body, kind, what, writes):
    of = made(one(body))
    memory, op = Memory(of), first(of, kind)
    expected = Touch("shared", 512, 1024, writes, what, agent=COPY)
    assert memory.of_agents(op) == [expected]
    assert memory.asynchronous == [expected]  # found inside one_thread, too
    assert memory.of_threads(op) is None


def test_a_product_reads_both_operands():
    of = made(dot("a", "b"))
    memory = Memory(of)
    expected = [
        Touch("shared", 0, 512, writes=False, what="read of a@0 by a product", agent=PRODUCT),
        Touch("shared", 512, 1024, writes=False, what="read of b@512 by a product", agent=PRODUCT),
    ]
    assert memory.of_agents(first(of, wgmma.Mma)) == expected
    assert memory.asynchronous == expected


def test_arithmetic_touches_nothing():
    of = made("")
    memory = Memory(of)
    for op in walk(of.body):
        assert memory.of_threads(op) is None
        assert memory.of_agents(op) == []


def test_accesses_cross_units_on_their_bytes_only():
    memory = Memory(made(one(box_out("b"))))
    inside = replace(READ, lo=1023, hi=1030)
    assert memory.crosses(inside)  # reads, too: a fence is asked of both
    assert not memory.crosses(replace(inside, lo=1024))
    assert not memory.crosses(replace(inside, lo=0, hi=512))
    assert not memory.crosses(replace(inside, space="x"))
    assert not Memory(made("")).crosses(inside)


# ---- addresses ---------------------------------------------------------------------------------


def test_the_buffer_of_an_address_is_found_through_sums():
    of = made(
        '%near: i32@grid = scalar.binary(%at.a, %shift) [kind="add"]\n'
        '%sum: i32@grid = scalar.binary(%shift, %to.b) [kind="add"]\n'
        '%far: i32@grid = scalar.binary(%sum, %n) [kind="add"]\n'
    )
    values = {value.name: value for op in walk(of.body) for value in op.results}
    for address, buffer in (("bar", "bars"), ("near", "a"), ("sum", "b"), ("far", "b")):
        assert buffer_of(values[address]) is values[buffer]


def test_a_number_is_no_address():
    of = made('%sum: i32@grid = scalar.binary(%shift, %n) [kind="add"]\n')
    for op in walk(of.body):
        for value in op.results:
            if value.name in ("shift", "sum"):
                with pytest.raises(ValueError, match="no address in a buffer"):
                    buffer_of(value)


def test_arrivals_are_found_inside_regions():
    assert arrives(made(one(ARRIVE)).body)
    assert not arrives(made(one(box_in("a"))).body)
