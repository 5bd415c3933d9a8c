"""Barriers between accesses to the same bytes, over back edges, branches and aliases."""

import re

import pytest

from tests.passes.text import PARAMS, after, kernel
from warploom.base.target import SM_90A
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
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


# ---- tensors that the kernel writes -------------------------------------------------------------

GLOBAL = """
%z: i32@grid = scalar.const() [number=0, dtype=i32]
%e: i32@grid = scalar.const() [number=8, dtype=i32]
%o: i32[1x1] = index.lane() [rank=2]
%s: i32[1x1] = registers.splat(%e) [rank=2]
%k: i32[1x1] = registers.binary(%o, %s) [kind="mul"]
%v: f32[1x1] = registers.splat(%p) [rank=2]
"""


def read(tensor: str, base: str = "z", offset: str = "o") -> str:
    return (
        f"%t: f32[1x1] = global_memory.load(%{tensor}, %{base}, %{offset}, _, _) "
        '[axis=0, vec=1, read_only=False, cache=""]\n'
    )


def write(tensor: str, base: str = "z", offset: str = "o") -> str:
    return f'global_memory.store(%{tensor}, %v, %{base}, %{offset}, _) [axis=0, vec=1, cache=""]\n'


def order(program: str, params: str = PARAMS, written: str = "1") -> str:
    made = parse_kernel(
        kernel(GLOBAL + program, options=f"warps=4 written={written}", params=params)
    )
    insert_role_barriers(made, SM_90A)
    verify_kernel(made)
    words = re.findall(r"global_memory\.(\w+)|sync\.(barrier)", print_kernel(made))
    shown = {"load": "r", "load_scalar": "s", "store": "w"}
    return "".join("|" if barrier else shown[access] for access, barrier in words)


SCALAR = "%u: f32@block = global_memory.load_scalar(%y, %n, _, _) [read_only=False]\n"
ALIASED = PARAMS.replace("extent 16>", "extent 16, aliased>")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (read("x") + read("x"), "rr"),
        (read("x") + write("y") + read("x"), "rwr"),
        # Each thread reads back what it wrote itself.
        (write("y") + read("y"), "wr"),
        (read("y") + write("y"), "rw"),
        # Another address or another distribution: other threads.
        (write("y") + read("y", base="n"), "w|r"),
        (write("y") + read("y", offset="k"), "w|r"),
        (write("y") + write("y", offset="k"), "w|w"),
        (write("y") + SCALAR, "w|s"),
        (SCALAR + write("y"), "s|w"),
        # In another trip the same text is another address.
        (loop(read("y", base="i") + write("y", base="i")), "|rw"),
    ],
)
def test_what_a_kernel_writes_and_reads_again(program: str, expected: str) -> None:
    assert order(program) == expected


def test_arguments_that_may_be_the_same_storage() -> None:
    assert order(write("y") + read("x"), ALIASED) == "w|r"
    assert order(read("x") + write("y"), ALIASED) == "r|w"
    # Two read-only views of one array next to an output of its own.
    one_output = ALIASED + ", %w: tensor<f32, n1, align 16, extent 16>"
    assert order(read("x") + write("w") + read("y"), one_output, written="5") == "rwr"
