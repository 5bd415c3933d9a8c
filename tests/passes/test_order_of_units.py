"""insert_role_barriers (by what touches says) and plan_shared_memory with units: fences before them
and barriers around them, over back edges and between roles."""

import re

import pytest

from tests.passes.text import after, kernel
from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.ops import sync
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import verify_kernel
from warploom.passes.insert_role_barriers import insert_role_barriers
from warploom.passes.plan_shared_memory import plan_shared_memory

PARAMS = "%x: tensor<f32, n1, align 16, extent 16>, %n: i32@grid, %m: i32@grid, %p: f32@grid"
HEAD = """
%a: buffer<f32, 128> = shared_memory.buffer() [dtype=f32, elements=128, at=0, align=128]
%b: buffer<f32, 128> = shared_memory.buffer() [dtype=f32, elements=128, at=512, align=128]
%bars: buffer<i64, 2> = shared_memory.buffer() [dtype=i64, elements=2, at=1024, align=16]
%bar: i32@grid = shared_memory.address(%bars)
%shift: i32@grid = scalar.const() [number=128, dtype=i32]
%at.a: i32@grid = shared_memory.address(%a)
%to.a: i32@grid = scalar.binary(%at.a, %shift) [kind="add"]
%at.b: i32@grid = shared_memory.address(%b)
%to.b: i32@grid = scalar.binary(%at.b, %shift) [kind="add"]
%o: i32[1] = index.lane() [rank=1]
%v: f32[1] = registers.splat(%p) [rank=1]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
%one: f32[1x1] = registers.splat(%p) [rank=2]
%acc: f32[2x2] = registers.spread(%one) [extents=(2, 2,)]
"""


FENCE = 'sync.fence_async() [why="mine", space="shared"]\n'


def put(buffer: str) -> str:
    return f"shared_memory.store(%{buffer}, %v, %o, _) [axis=0, vec=1]\n"


def get(buffer: str) -> str:
    return f"%_: f32[1] = shared_memory.load(%{buffer}, %o, _) [axis=0, vec=1]\n"


def one(body: str, per: str = "role") -> str:
    return f'control.one_thread() [per="{per}"] {{\n{body}control.yield([])\n}}\n'


def box_in(buffer: str) -> str:
    return f'tma.load_box(%x, [%n, %m], %to.{buffer}, %bar, _, _, _) [map=0, bytes=64, cache=""]\n'


def box_out(buffer: str) -> str:
    return (
        f'tma.store_box(%x, [%n, %m], %to.{buffer}, _, _) [map=0, bytes=64, reduce="", cache=""]\n'
        "tma.commit()\n"
    )


def waits(pending: int = 0) -> str:
    return f"tma.wait() [pending={pending}, reads=True]\n"


def dot(a: str, b: str = "") -> str:
    return (
        f"%d: f32[2x2] = wgmma.mma(%acc, %to.{a}, %to.{b or a}) [block=0, n=8, "
        "a_dtype=bf16, b_dtype=bf16, a_swizzle=128, a_lead=16, a_stride=1024, "
        "a_transposed=False, b_swizzle=128, b_lead=16, b_stride=1024, b_transposed=False]\n"
    )


def drain(pending: int = 0) -> str:
    return f"wgmma.drain() [pending={pending}]\n"


ARRIVE = "mbarrier.arrive(%bar) [count=1]\n"
WAIT = "mbarrier.wait(%bar, %n)\n"


def loop(body: str) -> str:
    return (
        f"control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {{\n{body}control.yield([])\n}}\n"
    )


def branch(then: str, orelse: str = "") -> str:
    blocks = (f"{{\n{b}control.yield([])\n}}" for b in (then, orelse))
    return f"control.if(%q) {' '.join(blocks)}\n"


MARKS = {
    "shared_memory.store": "w",
    "shared_memory.load": "r",
    "tma.load_box": "I",
    "tma.store_box": "O",
    "tma.wait": "t",
    "wgmma.mma": "M",
    "wgmma.drain": "d",
    "mbarrier.arrive": "A",
    "mbarrier.wait": "W",
    "mbarrier.init": "i",
    "sync.barrier": "|",
    "sync.warp": "'",
    "sync.fence_async": "f",
    "control.for": "(",
    "control.if": "<",
    "control.one_thread": "[",
}
WORDS = re.compile("|".join(re.escape(f"{w}(") for w in MARKS))


def marks(program: str, warps: int = 4) -> str:
    """What the program does after the pass, in order; where regions end is not shown."""
    text = after(insert_role_barriers, HEAD + program, options=f"warps={warps}", params=PARAMS)
    return "".join(MARKS[word[:-1]] for word in WORDS.findall(text))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # What threads wrote, a unit reads: a fence in each thread, then all meet.
        (put("a") + one(box_out("a")), "wf|[O"),
        (put("b") + one(box_out("a")), "w[O"),
        (put("a") + dot("a"), "wf|M"),
        (put("a") + put("b") + dot("a", "b"), "wwf|M"),
        # What threads read, a unit overwrites.
        (get("a") + one(box_in("a")), "rf|[I"),
        (get("a") + one(box_out("a")), "r[O"),
        (get("a") + dot("a"), "rM"),
        # A barrier for something else is no fence.
        (put("a") + put("b") + get("b") + one(box_out("a")), "ww|rf|[O"),
        # A fence of the kernel's own is one; all must still meet.
        (
            put("a") + 'sync.fence_async() [why="mine", space="shared"]\n' + one(box_out("a")),
            "wf|[O",
        ),
        (
            put("a")
            + FENCE
            + 'sync.barrier() [threads=128, id=0, why="mine", per_replica=False]\n'
            + dot("a"),
            "wf|M",
        ),
    ],
)
def test_units_after_threads(program: str, expected: str) -> None:
    assert marks(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # The barrier of a copy says that it is there, to each thread that waits.
        (one(box_in("a")) + WAIT + get("a"), "[IWr"),
        (one(box_in("a")) + WAIT + dot("a"), "[IWM"),
        # One thread knows that its copy has read: the others hear of it.
        (one(box_out("a")) + one(waits()) + put("a"), "[O[t|w"),
        (one(box_out("a") + waits()) + put("a"), "[Ot|w"),
        (one(box_out("a")) + one(waits()) + one(box_in("a")), "[O[t[I"),
        # A barrier before the wait settles nothing.
        (one(box_out("a")) + put("b") + get("b") + one(waits()) + put("a"), "[Ow|r[t|w"),
        # Each warp waits for its own part of a product, and reads all of the operands.
        (dot("a") + drain() + put("a"), "Md|w"),
        (dot("a") + drain() + one(box_in("a")), "Md|[I"),
        (dot("a") + drain() + get("a"), "Mdr"),
        (dot("a") + drain() + put("b"), "Mdw"),
        # Groups that may still be in flight are not done, and the next wait finds them.
        (dot("a") + drain(1) + put("b") + get("b") + drain() + put("a"), "Mdw|rd|w"),
        (
            one(box_out("a")) + one(waits(1)) + put("b") + get("b") + one(waits()) + put("a"),
            "[O[tw|r[t|w",
        ),
    ],
)
def test_threads_after_units(program: str, expected: str) -> None:
    assert marks(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Filled by threads, copied out, again: one buffer.
        (loop(one(waits()) + put("a") + one(box_out("a"))), "([t|wf|[O"),
        # A ring of products: nothing but the barriers of the copies.
        (loop(WAIT + dot("a") + drain(1) + one(ARRIVE, "warp")), "(WMd[A"),
        (loop(one(box_in("a")) + WAIT + get("a")), "(f|[IWr"),
        (loop(branch(put("a")) + one(box_out("a"))), "(<wf|[O"),
        (branch(put("a"), get("b")) + one(box_out("a")), "<wrf|[O"),
        (put("a") + loop(one(box_out("a"))), "w(f|[O"),
        (loop(loop(put("a")) + one(box_out("a"))), "((|wf|[O"),
    ],
)
def test_over_back_edges_and_branches(program: str, expected: str) -> None:
    assert marks(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # What is handed over by an arrival goes through a fence if units come to the same bytes.
        (get("a") + one(ARRIVE, "warp") + one(box_in("a")), "rf[A|[I"),
        (get("b") + one(ARRIVE, "warp") + one(box_in("a")), "r[A[I"),
        (one(box_in("a")) + loop(WAIT + get("a") + one(ARRIVE, "warp")), "[I(Wrf[A"),
        # One thread speaks for all warps: they meet first.
        (get("a") + one(ARRIVE), "r|[A"),
        (get("a") + one(ARRIVE) + one(box_in("a")), "rf|[A[I"),
        (one(ARRIVE), "[A"),
    ],
)
def test_arrivals(program: str, expected: str) -> None:
    assert marks(program) == expected


def test_a_role_that_meets_before_one_thread() -> None:
    program = get("b") + one(ARRIVE).replace('per="role"', 'per="role", meet=True')
    assert marks(program) == "r|[A"
    assert marks(one(ARRIVE).replace('per="role"', 'per="role", meet=True')) == "|[A"
    assert marks(program, warps=1) == "r[A"
    text = after(insert_role_barriers, HEAD + program, params=PARAMS)
    assert after(insert_role_barriers, text, params=PARAMS) == text


def test_one_warp_meets_by_itself() -> None:
    assert marks(put("a") + one(box_out("a")), warps=1) == "wf'[O"
    assert marks(get("a") + one(ARRIVE), warps=1) == "r[A"


def test_barriers_made_over_bytes_that_were_used() -> None:
    init = "mbarrier.init(%bar) [arrivals=1]\n"
    program = put("a") + one(init)
    assert marks(program) == "w[i"
    overlapping = HEAD.replace("at=1024", "at=0") + program
    text = after(insert_role_barriers, overlapping, options="warps=4", params=PARAMS)
    assert text.index("sync.barrier") < text.index("mbarrier.init")


def test_a_second_run_adds_nothing() -> None:
    body = HEAD + loop(
        one(waits(1)) + put("a") + one(box_out("a")) + WAIT + dot("b") + drain() + put("b")
    )
    once = after(insert_role_barriers, body, params=PARAMS)
    assert after(insert_role_barriers, once, params=PARAMS) == once


def split(*bodies: str, replicas: str = "(1, 2,)", barrier: str = "(1, 2,)") -> str:
    blocks = " ".join(f"{{\n{b}control.yield([])\n}}" for b in bodies)
    return (
        f'roles.split() [names=("a", "b",), warps=(2, 4,), replicas={replicas}, '
        f"registers=(0, 0,), first=(0, 4,), barrier={barrier}] {blocks}\n"
    )


def test_roles_meet_at_barriers_of_their_own() -> None:
    text = kernel(
        HEAD + split(put("a") + get("a"), put("b") + get("b")), options="warps=12", params=PARAMS
    )
    made = parse_kernel(text)
    insert_role_barriers(made, SM_90A)
    verify_kernel(made)
    found = [op for op in walk(made.body) if isinstance(op, sync.Barrier)]
    assert [(op.threads, op.id, op.per_replica) for op in found] == [
        (64, 1, False),
        (128, 2, True),
    ]


def test_what_the_block_did_is_settled_before_its_roles() -> None:
    roles = split(one(box_in("a")), get("b"))
    assert marks(put("a") + put("b") + roles, warps=12) == "wwf|[Ir"
    assert marks(put("b") + roles, warps=12) == "w|[Ir"
    assert marks(roles, warps=12) == "[Ir"


# ---- places -------------------------------------------------------------------------------------


def places(body: str) -> dict[str, range]:
    made = parse_kernel(kernel(body, options="warps=12", params=PARAMS))
    plan_shared_memory(made, SM_90A)
    return {
        op.results[0].name: range(op.at, op.at + op.elements * op.dtype.bytes)
        for op in walk(made.body)
        if op.OPCODE == "shared_memory.buffer"
    }


def apart(a: range, b: range) -> bool:
    return a.stop <= b.start or b.stop <= a.start


def new(name: str) -> str:
    return (
        f"%{name}: buffer<f32, 128> = shared_memory.buffer() "
        "[dtype=f32, elements=128, at=-1, align=128]\n"
    )


def test_buffers_of_roles_live_at_the_same_time() -> None:
    found = places(HEAD + split(new("c") + put("c") + get("c"), new("d") + put("d") + get("d")))
    names = ["c", "d"]
    assert apart(found["c"], found["d"]), names


def test_an_address_keeps_its_buffer() -> None:
    """The address of `a` is computed at the top, and used in a role after `c` came and went."""
    roles = split(new("c") + put("c") + get("c"), one(box_in("a")))
    found = places(HEAD + roles)
    assert apart(found["a"], found["c"])
    # And without roles, in program order.
    found = places(HEAD + new("c") + put("c") + get("c") + one(box_in("a")))
    assert apart(found["a"], found["c"])


def test_alignment_is_kept() -> None:
    body = new("c").replace("elements=128", "elements=100").replace("f32, 128>", "f32, 100>")
    big = new("d").replace("align=128", "align=1024")
    use = put("c") + put("d") + get("c") + get("d")
    found = places(HEAD + body + big + use)
    assert found["d"].start % 1024 == 0 and found["c"].start % 128 == 0
    assert apart(found["c"], found["d"])
