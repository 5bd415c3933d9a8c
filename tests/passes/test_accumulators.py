"""assign_storage and accumulators: one storage from first product to last wait, copies only of what
has retired. What is read later is found by later_uses."""

import pytest

from tests.passes.text import kernel
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel, walk
from warploom.ir.ops.control import Assign, Declare, Duplicate
from warploom.ir.ops.wgmma import Mma, WaitGroup
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import verify_kernel
from warploom.passes.assign_storage import assign_storage
from warploom.passes.later_uses import LaterUses

PARAMS = "%y: tensor<f32, n1, align 16, extent 16>, %n: i32@grid, %p: f32@grid"
HEAD = """
%zero: i32@grid = scalar.const() [number=0, dtype=i32]
%one: i32@grid = scalar.const() [number=1, dtype=i32]
%c: bool@grid = scalar.compare(%n, %one) [kind="lt"]
%w: f32[1x1] = registers.splat(%p) [rank=2]
%o: i32[1x1] = index.lane() [rank=2]
"""
REGS = "f32[2x2]"


def fresh(name: str) -> str:
    return f"%{name}: {REGS} = registers.spread(%w) [extents=(2, 2,)]\n"


def dot(result: str, acc: str) -> str:
    return (
        f"%{result}: {REGS} = wgmma.mma(%{acc}, %zero, %zero) [block=0, n=8, a_dtype=bf16, "
        "b_dtype=bf16, a_swizzle=128, a_lead=16, a_stride=1024, a_transposed=False, "
        "b_swizzle=128, b_lead=16, b_stride=1024, b_transposed=False]\n"
    )


def wait(result: str, acc: str, pending: int = 0) -> str:
    return f"%{result}: {REGS} = wgmma.wait_group(%{acc}) [pending={pending}]\n"


def use(value: str) -> str:
    return f'%_: {REGS} = registers.unary(%{value}) [kind="neg"]\n'


def loop(result: str, init: str, arg: str, body: str, end: str) -> str:
    """Results, inits, arguments and ends are lists of names with spaces."""
    names = [f"%{n}" for n in init.split()]
    results = ", ".join(f"%{n}: {REGS}" for n in result.split())
    args = "".join(f", %{n}: {REGS}" for n in arg.split())
    ends = ", ".join(f"%{n}" for n in end.split())
    return (
        f"{results} = control.for(%zero, %n, %one, [{', '.join(names)}]) [unroll=1] "
        f"(%i: i32@grid{args}) {{\n{body}control.yield([{ends}])\n}}\n"
    )


def branch(result: str, then: str, end: str, orelse: str, other: str) -> str:
    return (
        f"%{result}: {REGS} = control.if(%c) {{\n{then}control.yield([%{end}])\n}} "
        f"{{\n{orelse}control.yield([%{other}])\n}}\n"
    )


def assigned(body: str) -> Kernel:
    made = parse_kernel(kernel(HEAD + body, params=PARAMS))
    verify_kernel(made)
    assign_storage(made, SM_90A)
    verify_kernel(made)
    for op in walk(made.body):
        if isinstance(op, Mma | WaitGroup):
            assert op.acc.storage and op.result.storage == op.acc.storage
    return made


def count(made: Kernel) -> tuple[int, int]:
    """Storages and copies."""
    ops = list(walk(made.body))
    copies = sum(isinstance(op, Assign | Duplicate) for op in ops)
    return sum(isinstance(op, Declare) for op in ops), copies


def test_a_chain_of_products_is_one_storage() -> None:
    made = assigned(fresh("z") + dot("a", "z") + dot("b", "a") + wait("t", "b") + use("t"))
    assert count(made) == (1, 1), "the zeros are copied to it"


def test_a_loop_keeps_its_accumulator() -> None:
    made = assigned(
        fresh("z")
        + loop("r", "z", "acc", dot("a", "acc") + dot("b", "a") + wait("s", "b", 1), "s")
        + wait("t", "r")
        + use("t")
    )
    assert count(made) == (1, 1)


def test_loops_in_loops_and_after_loops_keep_it_too() -> None:
    inner = loop("r", "acc", "acc.1", dot("a", "acc.1"), "a")
    made = assigned(
        fresh("z")
        + loop("r1", "z", "acc", inner, "r")
        + loop("r2", "r1", "acc.2", dot("b", "acc.2"), "b")
        + wait("t", "r2")
        + use("t")
    )
    assert count(made) == (1, 1)


def test_tiles_of_a_persistent_kernel_begin_anew() -> None:
    tile = fresh("z") + loop("r", "z", "acc", dot("a", "acc"), "a") + wait("t", "r") + use("t")
    made = assigned(
        "control.for(%zero, %n, %one, []) [unroll=1] (%j: i32@grid) {\n"
        + tile
        + "control.yield([])\n}\n"
    )
    assert count(made) == (1, 1)


def test_two_accumulators_have_two_storages() -> None:
    body = dot("a1", "acc") + dot("b1", "bcc") + wait("a2", "a1", 1) + wait("b2", "b1", 1)
    made = assigned(
        fresh("z")
        + fresh("v")
        + loop("r s", "z v", "acc bcc", body, "a2 b2")
        + wait("t", "r")
        + wait("u", "s")
        + use("t")
        + use("u")
    )
    assert count(made) == (2, 2)


def test_one_start_of_two_accumulators_is_copied_twice() -> None:
    made = assigned(
        fresh("z")
        + loop("r s", "z z", "acc bcc", dot("a", "acc") + dot("b", "bcc"), "a b")
        + wait("t", "r")
        + wait("u", "s")
        + use("t")
        + use("u")
    )
    assert count(made) == (2, 2)


def test_products_on_one_way_of_a_branch() -> None:
    made = assigned(
        fresh("z")
        + loop("r", "z", "acc", branch("q", dot("a", "acc"), "a", "", "acc"), "q")
        + wait("t", "r")
        + use("t")
    )
    assert count(made) == (1, 1)


def test_products_on_both_ways() -> None:
    then, orelse = dot("a", "acc") + dot("a1", "a"), dot("b", "acc")
    made = assigned(
        fresh("z")
        + loop("r", "z", "acc", branch("q", then, "a1", orelse, "b"), "q")
        + wait("t", "r")
        + use("t")
    )
    assert count(made) == (1, 1)


def test_a_sum_that_begins_anew_in_each_trip() -> None:
    """What was waited for may be overwritten: the new sum is made where it is carried."""
    body = wait("s", "acc") + use("s") + fresh("z1") + dot("a", "z1")
    made = assigned(
        fresh("z") + dot("y0", "z") + loop("r", "y0", "acc", body, "a") + wait("t", "r") + use("t")
    )
    assert count(made) == (1, 2), "zeros before the loop, and zeros in each trip"


def test_what_is_read_later_is_kept() -> None:
    made = assigned(
        fresh("z")
        + dot("a", "z")
        + wait("s", "a")
        + dot("b", "s")
        + wait("t", "b")
        + use("t")
        + use("s")
    )
    assert count(made) == (2, 2), "`s` has retired, and is copied before it is added to"
    made = assigned(
        fresh("z")
        + dot("a", "z")
        + wait("s", "a")
        + use("s")
        + dot("b", "s")
        + wait("t", "b")
        + use("t")
    )
    assert count(made) == (1, 1)


def test_a_view_reads_what_it_shows() -> None:
    view = "%part: f32[2x1] = registers.slice(%s) [axis=1, start=1, size=1]\n"
    late = '%_: f32[2x1] = registers.unary(%part) [kind="neg"]\n'
    head = fresh("z") + dot("a", "z") + wait("s", "a") + view
    tail = dot("b", "s") + wait("t", "b") + use("t")
    assert count(assigned(head + late + tail)) == (1, 1)
    assert count(assigned(head + tail + late)) == (2, 2)


@pytest.mark.parametrize(
    "body",
    [
        # A swap.
        fresh("z") + fresh("v")
        + loop("r s", "z v", "acc bcc", dot("a", "acc") + dot("b", "bcc"), "b a")
        + wait("t", "r") + wait("u", "s") + use("t") + use("u"),
        # A sum begun anew that nobody has waited for.
        fresh("z")
        + loop("r", "z", "acc", fresh("z1") + dot("a", "z1"), "a")
        + wait("t", "r") + use("t"),
        # Two sums that go on from one in flight.
        fresh("z") + dot("a", "z") + dot("b", "a") + dot("c1", "a")
        + wait("t", "b") + wait("u", "c1") + use("t") + use("u"),
        # One in flight on the one way, another on the other.
        fresh("z") + fresh("v") + dot("a", "z") + dot("b", "v")
        + branch("q", "", "a", "", "b") + wait("t", "q") + use("t"),
        # In flight into a loop, and waited for behind it.
        fresh("z") + dot("a", "z")
        + loop("r", "a", "acc", dot("b", "acc"), "b")
        + wait("t", "a") + wait("u", "r") + use("t") + use("u"),
    ],
    ids=["swap", "anew", "fork", "ways", "around"],
)  # fmt: skip
def test_what_is_in_flight_is_not_copied(body: str) -> None:
    with pytest.raises(CompileError) as caught:
        assigned(body)
    assert caught.value.code == "L016"


# ---- later uses ---------------------------------------------------------------------------------


def later(body: str, value: str, at: str, inside: bool = True) -> bool:
    """Whether a named value is read after the operation that makes another one."""
    made = parse_kernel(kernel(HEAD + body, params=PARAMS))
    results = {v.name: (v, op) for op in walk(made.body) for v in op.results}
    args = {a.name: a for op in walk(made.body) for r in op.regions() for a in r.args}
    found = results[value][0] if value in results else args[value]
    return LaterUses(made).after(found, results[at][1], inside=inside)


def neg(result: str, value: str) -> str:
    return f'%{result}: {REGS} = registers.unary(%{value}) [kind="neg"]\n'


def test_later_in_a_block() -> None:
    body = fresh("z") + neg("a", "z") + neg("b", "z") + neg("d", "b")
    assert later(body, "z", "a") and not later(body, "z", "b")
    assert not later(body, "b", "d")


def test_later_over_a_back_edge() -> None:
    body = fresh("z") + loop("r", "z", "acc", neg("a", "acc") + neg("b", "z"), "a")
    assert later(body, "z", "b"), "the next trip reads it again"
    assert later(body, "z", "r"), "inside the loop that it enters"
    assert not later(body, "z", "r", inside=False)
    assert not later(body, "acc", "a"), "the next trip has another one"


def test_later_on_another_way() -> None:
    body = fresh("z") + branch("q", neg("a", "z"), "a", neg("b", "z"), "b")
    assert not later(body, "z", "a")
    assert later(body + neg("e", "z"), "z", "a")
    assert not later(body, "z", "q", inside=False)
