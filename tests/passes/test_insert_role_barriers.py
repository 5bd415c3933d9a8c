"""Barriers between accesses to the same bytes, over back edges, branches and aliases."""

import re

import numpy as np
import pytest

import warploom as wl
from tests.passes.text import after
from warploom.passes.insert_role_barriers import insert_role_barriers

HEAD = """
%a: buffer<f32, 128> = shared_memory.buffer() [dtype=f32, elements=128, at=0]
%b: buffer<f32, 128> = shared_memory.buffer() [dtype=f32, elements=128, at=512]
%c: buffer<f32, 128> = shared_memory.buffer() [dtype=f32, elements=128, at=256]
%d: buffer<bf16, 256> = shared_memory.buffer() [dtype=bf16, elements=256, at=0]
%o: i32[1] = index.lane() [rank=1]
%v: f32[1] = registers.splat(%p) [rank=1]
%h: bf16[1] = registers.cast(%v) [dtype=bf16]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
"""


def put(buffer: str) -> str:
    value = "%h" if buffer == "d" else "%v"
    return f"shared_memory.store(%{buffer}, {value}, %o, _) [axis=0, vec=1]\n"


def get(buffer: str) -> str:
    dtype = "bf16" if buffer == "d" else "f32"
    return f"%_: {dtype}[1] = shared_memory.load(%{buffer}, %o, _) [axis=0, vec=1]\n"


def loop(body: str) -> str:
    return (
        f"control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {{\n{body}control.yield([])\n}}\n"
    )


def branch(then: str, orelse: str = "") -> str:
    blocks = (f"{{\n{b}control.yield([])\n}}" for b in (then, orelse))
    return f"control.if(%q) {' '.join(blocks)}\n"


def marks(program: str, warps: int = 4) -> str:
    """What the program does after the pass: w, r, | for a barrier, and the brackets of regions."""
    text = after(insert_role_barriers, HEAD + program, options=f"warps={warps}")
    words = re.findall(
        r"shared_memory\.(store|load)|sync\.(barrier|warp)|control\.(for|if)|\n *(\})( \{)?", text
    )
    shown = {"store": "w", "load": "r", "barrier": "|", "warp": "'", "for": "(", "if": "<"}
    out = ""
    for access, sync, opening, closing, other in words:
        out += shown.get(access or sync or opening, "") or (
            "," if other else ")" if closing else ""
        )
    return out


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (put("a") + get("a"), "w|r"),
        (put("a") + get("b"), "wr"),
        (get("a") + put("a"), "r|w"),
        (put("a") + put("a"), "w|w"),
        (get("a") + get("a"), "rr"),
        # One barrier orders all that came before it.
        (put("a") + put("b") + get("a") + get("b"), "ww|rr"),
        (put("a") + get("a") + put("b") + get("b"), "w|rw|r"),
        # Buffers that share bytes: c lies over the halves of a and b, d has other elements.
        (put("a") + get("c"), "w|r"),
        (get("c") + put("b"), "r|w"),
        (put("d") + get("a"), "w|r"),
        (put("d") + get("b"), "wr"),
    ],
)
def test_straight_lines(program: str, expected: str) -> None:
    assert marks(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # The read of one trip meets the write of the next.
        (loop(put("a") + get("a")), "(|w|r)"),
        (loop(get("a")), "(r)"),
        (loop(put("a")), "(|w)"),
        (put("a") + loop(get("a")), "w(|r)"),
        (loop(put("a")) + get("a"), "(|w)|r"),
        # A loop may make no trip: what was open before it is open after it.
        (put("a") + loop(get("b")) + get("a"), "w(r)|r"),
        (loop(put("a") + get("b")), "(|wr)"),
        (loop(put("a") + put("b") + get("a") + get("b")), "(|ww|rr)"),
        (loop(loop(get("a")) + put("a")), "((|r)|w)"),
        (loop(put("a") + loop(get("b"))) + get("a"), "(|w(r))|r"),
        (loop(loop(put("a") + get("a"))), "((|w|r))"),
        # The last access of the inner loop meets the first of the outer one.
        (loop(put("a") + loop(get("a"))), "(|w(|r))"),
    ],
)
def test_loops(program: str, expected: str) -> None:
    assert marks(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (branch(put("a"), put("a")), "<w,w)"),
        (branch(put("a")) + get("a"), "<w,)|r"),
        (put("a") + branch(get("a")) + get("a"), "w<|r,)|r"),
        # Where both ways met, all met.
        (put("a") + branch(get("a"), get("a")) + get("a"), "w<|r,|r)r"),
        (branch(put("a"), get("a")) + put("a"), "<w,r)|w"),
        (loop(branch(put("a"), get("a"))), "(<|w,|r))"),
        (branch(loop(put("a")), get("a")), "<(|w),r)"),
        (branch(branch(put("a")), "") + get("a"), "<<w,),)|r"),
        (put("a") + branch(branch(get("b"), get("a"))) + put("b"), "w<<r,|r),)|w"),
    ],
)
def test_branches(program: str, expected: str) -> None:
    assert marks(program) == expected


EACH, ALL = "(128; l32:0*1 w4:0*32)", "(32; l32:0*1 w4:_)"


# Every thread its own element, twice; the same of the 128 behind a window of 192; what varies.
OFFSETS = """
%w0: i32[1] = index.warp() [rank=1]
%32: i32@grid = scalar.const() [number=32, dtype=i32]
%w32: i32[1] = registers.splat(%32) [rank=1]
%w1: i32[1] = registers.binary(%w0, %w32) [kind="mul"]
%o1: i32[1] = registers.binary(%w1, %o) [kind="add"]
%o2: i32[1] = registers.binary(%w1, %o) [kind="add"]
%128: i32@grid = scalar.const() [number=128, dtype=i32]
%s128: i32[1] = registers.splat(%128) [rank=1]
%o3: i32[1] = registers.binary(%o1, %s128) [kind="add"]
%p0: i32[1] = registers.cast(%v) [dtype=i32]
%o4: i32[1] = registers.binary(%o1, %p0) [kind="add"]
%0: i32@grid = scalar.const() [number=0, dtype=i32]
%s0: i32[1] = registers.splat(%0) [rank=1]
%first: bool[1] = registers.compare(%o, %s0) [kind="eq"]
%less: bool[1] = registers.compare(%o, %s128) [kind="lt"]
%some: bool[1] = registers.binary(%less, %first) [kind="and"]
"""


def moved(by: int) -> str:
    """Offsets of windows that move by so many elements a trip."""
    return f"""
%c: i32@grid = scalar.const() [number={by}, dtype=i32]
%j: i32@grid = scalar.binary(%i, %c) [kind="mul"]
%s: i32[1] = registers.splat(%j) [rank=1]
%k: i32[1] = registers.binary(%o1, %s) [kind="add"]
"""


def own(buffer: str, layout: str, offset: str = "o1") -> tuple[str, str]:
    """A load and a store of a tile of this layout."""
    dtype = "bf16" if buffer == "d" else "f32"
    load = f"shared_memory.load(%{buffer}, %{offset}, _) [axis=0, vec=1]\n"
    value = f"%own: {dtype}[1] {layout} = registers.cast(%v) [dtype={dtype}]\n"
    store = f"shared_memory.store(%{buffer}, %own, %{offset}, _) [axis=0, vec=1]\n"
    return f"%_: {dtype}[1] {layout} = {load}", value + store


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("".join(own("a", EACH)), "rw"),
        (own("a", EACH)[1] + own("a", EACH)[0], "wr"),
        # Several threads hold an element; other elements; another buffer at the same place.
        ("".join(own("a", ALL)), "r|w"),
        (own("a", EACH)[0] + own("a", EACH, "o4")[1], "r|w"),
        (own("a", EACH)[0] + own("a", EACH, "o2")[1], "rw"),
        (own("a", EACH)[0] + own("d", EACH)[1], "r|w"),
        # The next trip has other offsets under the same name: of these windows or apart.
        (loop(moved(32) + "".join(own("a", EACH, "k"))), "(|rw)"),
        (loop(moved(128) + "".join(own("a", EACH, "k"))), "(rw)"),
        (loop(moved(192) + "".join(own("a", EACH, "k"))), "(rw)"),
        (loop("".join(own("a", EACH))), "(rw)"),
        (loop(moved(256) + own("a", EACH, "k")[1]) + own("a", EACH)[0], "(w)r"),
        (loop(moved(192) + own("a", EACH, "k")[1]) + own("a", EACH, "o3")[0], "(w)|r"),
        # A number that the threads do not share.
        (loop(own("a", EACH, "o4")[1]), "(|w)"),
        ("".join(own("a", EACH)) + get("a"), "rw|r"),
    ],
)
def test_a_thread_that_comes_back_to_its_own_elements(program: str, expected: str) -> None:
    assert marks(OFFSETS + program) == expected


def test_what_one_lane_stores_alone() -> None:
    """Wherever it stores; others who read, or store too, meet with it."""
    shift = "%k: i32[1] = registers.splat(%i) [rank=1]\n"
    one = f"{shift}shared_memory.store(%a, %v, %k, %first) [axis=0, vec=1]\n"
    both = one.replace("%first", "%some")
    assert marks(OFFSETS + loop(one), warps=1) == "(w)"
    assert marks(OFFSETS + loop(both), warps=1) == "(w)"
    assert marks(OFFSETS + loop(one + get("a")), warps=1) == "('w'r)"
    assert marks(OFFSETS + loop(one.replace(", %first", ", _")), warps=1) == "('w)"
    assert marks(OFFSETS + loop(one)) == "(|w)"  # of each warp


def test_one_warp_needs_no_block_barrier() -> None:
    assert marks(put("a") + get("a"), warps=1) == "w'r"


def test_a_barrier_of_the_users_counts() -> None:
    barrier = 'sync.barrier() [threads=128, id=0, why="mine"]\n'
    assert marks(put("a") + barrier + get("a")) == "w|r"
    assert marks(put("a") + 'sync.warp() [why=""]\n' + get("a")) == "w'|r"
    assert marks(put("a") + 'sync.warp() [why=""]\n' + get("a"), warps=1) == "w'r"


def test_a_second_run_adds_nothing() -> None:
    body = HEAD + loop(put("a") + get("a") + put("c") + get("b"))
    once = after(insert_role_barriers, body)
    assert after(insert_role_barriers, once) == once


def test_a_barrier_says_why_and_how_many() -> None:
    text = after(insert_role_barriers, HEAD + put("a") + get("c"), options="warps=3")
    why = "write of a@0, then read of c@256"
    assert f'sync.barrier() [threads=96, id=0, why="{why}", per_replica=False]' in text


@wl.kernel
def follows(flag: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    for i in wl.range(0, ROUNDS):
        wl.wait(flag[0], at_least=i)
        wl.store(y[i, wl.ds(0, 256)], wl.full((256,), i, wl.i32))


def test_a_wait_in_a_loop_lets_all_meet_once_a_trip() -> None:
    flag, y = np.full((1,), 3, np.int32), np.zeros((3, 256), np.int32)
    text = follows.launch(1).call(flag, y, ROUNDS=3).text("machine")
    assert text.count("one thread has waited, for the role") == 1
