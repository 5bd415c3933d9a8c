"""Storages of carried values, and copies that happen at once."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.passes.text import after, parsed, same
from warploom.base.dtypes import f32
from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.op import Op, Value
from warploom.ir.ops.control import Assign, Declare, Duplicate, For, Yield
from warploom.ir.types import Scalar
from warploom.passes.assign_storage import assign_storage, parallel_copy


def test_one_accumulator() -> None:
    same(
        after(
            assign_storage,
            """
            %a: f32[4] = registers.spread(%q) [extents=(4,)]
            %r: f32[4] = control.for(%n, %m, %n, [%a]) [unroll=1] (%i: i32@grid, %r.1: f32[4]) {
              %b: f32[4] = registers.unary(%r.1) [kind="neg"]
              control.yield([%b])
            }
            """.replace("%a:", "%q: f32[1] = registers.splat(%p) [rank=1]\n            %a:", 1),
        ),
        """
        %q: f32[1] = registers.splat(%p) [rank=1]
        %a: f32[4] = registers.spread(%q) [extents=(4,)]
        %r: f32[4] =r_s0 = control.declare() [type=f32[4]]
        control.assign(%a, %r)
        %r.2: f32[4] =r_s0 = control.for(%n, %m, %n, [%a]) [unroll=1] \
(%i: i32@grid, %r.1: f32[4] =r_s0) {
          %b: f32[4] = registers.unary(%r.1) [kind="neg"]
          control.assign(%b, %r)
          control.yield([%b])
        }
        """,
    )


LOOP = """
%r: f32@grid, %s: f32@grid, %t: f32@grid = control.for(%n, %m, %n, [%p, %p, %p]) [unroll=1] \
(%i: i32@grid, %a: f32@grid, %b: f32@grid, %c: f32@grid) {
  control.yield([YIELD])
}
"""


def yielded(*names: str) -> list[str]:
    """The copies at the end of a loop that carries a, b, c and yields `names`."""
    text = after(assign_storage, LOOP.replace("YIELD", ", ".join(f"%{n}" for n in names)))
    inside = text[text.index(") {") :]
    return re.findall(
        r"control.assign\(%([\w.]+), %(\w)[\w.]*\)|(control.duplicate\(%\w+\))", inside
    )


def test_nothing_moves_where_values_stay() -> None:
    assert yielded("a", "b", "c") == []


def test_a_swap_needs_one_copy_more() -> None:
    found = yielded("b", "a", "c")
    assert len(found) == 3
    assert found[0][2] == "control.duplicate(%b)"


def test_one_value_to_several_places() -> None:
    assert [m[:2] for m in yielded("a", "a", "a")] == [("a", "s"), ("a", "t")]


def test_an_outer_value_twice() -> None:
    assert [m[:2] for m in yielded("p", "p", "b")] == [("p", "r"), ("b", "t"), ("p", "s")]


def run(ops: list[Op], held: dict[str, object], current: dict[Value, Value]) -> dict[str, object]:
    """Execute copies on named storages."""
    values: dict[Value, object] = {}

    def read(value: Value) -> object:
        if value in values:
            return values[value]
        place = current.get(value)
        return held[place.storage] if place is not None else value.name

    for op in ops:
        if isinstance(op, Duplicate):
            values[op.result] = read(op.value)
        else:
            assert isinstance(op, Assign)
            held[op.target.storage] = read(op.source)
    return held


def place(name: str) -> Value:
    made = Value(Scalar(f32), name)
    made.storage = name
    return made


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_way_to_fill_storages_from_storages(count: int) -> None:
    targets = [place(f"s{i}") for i in range(count)]
    args = [Value(Scalar(f32), f"a{i}") for i in range(count)]
    current = dict(zip(args, targets, strict=True))
    for arg, target in current.items():
        arg.storage = target.storage
    outer = Value(Scalar(f32), "outer")
    for sources in itertools.product([*args, outer], repeat=count):
        moves = list(zip(sources, targets, strict=True))
        ops = list(parallel_copy(moves, Yield()))
        held = run(ops, {t.storage: f"old {t.storage}" for t in targets}, current)
        for source, target in moves:
            wanted = "outer" if source is outer else f"old {current[source].storage}"
            assert held[target.storage] == wanted, (sources, ops)
        cycles = sum(isinstance(op, Duplicate) for op in ops)
        assert cycles <= count // 2, "one copy more for each cycle"


@given(st.permutations(range(7)))
def test_a_permutation_needs_one_duplicate_a_cycle(order: list[int]) -> None:
    targets = [place(f"s{i}") for i in range(7)]
    args = [Value(Scalar(f32), f"a{i}") for i in range(7)]
    for arg, target in zip(args, targets, strict=True):
        arg.storage = target.storage
    current = dict(zip(args, targets, strict=True))
    moves = [(args[source], target) for source, target in zip(order, targets, strict=True)]
    ops = list(parallel_copy(moves, Yield()))
    held = run(ops, {t.storage: t.storage for t in targets}, current)
    assert [held[t.storage] for t in targets] == [f"s{i}" for i in order]
    assert sum(isinstance(op, Duplicate) for op in ops) == _cycles(order)


def _cycles(order: list[int]) -> int:
    seen: set[int] = set()
    found = 0
    for start in range(len(order)):
        length, at = 0, start
        while at not in seen:
            seen.add(at)
            at, length = order[at], length + 1
        found += length > 1
    return found


def test_branches_assign_in_both_blocks() -> None:
    same(
        after(
            assign_storage,
            """
            %c: bool@grid = scalar.compare(%n, %m) [kind="lt"]
            %r: i32@grid = control.if(%c) {
              control.yield([%n])
            } {
              control.yield([%m])
            }
            """,
        ),
        """
        %c: bool@grid = scalar.compare(%n, %m) [kind="lt"]
        %r: i32@grid =r_s0 = control.declare() [type=i32@grid]
        %r.1: i32@grid =r_s0 = control.if(%c) {
          control.assign(%n, %r)
          control.yield([%n])
        } {
          control.assign(%m, %r)
          control.yield([%m])
        }
        """,
    )


def test_storages_of_nested_loops_are_their_own() -> None:
    made = parsed(
        """
        %r: f32@grid = control.for(%n, %m, %n, [%p]) [unroll=1] (%i: i32@grid, %acc: f32@grid) {
          %q: f32@grid = control.for(%n, %m, %n, [%acc]) [unroll=1] \
(%j: i32@grid, %acc.1: f32@grid) {
            %t: f32@grid = scalar.unary(%acc.1) [kind="neg"]
            control.yield([%t])
          }
          control.yield([%q])
        }
        """
    )
    assign_storage(made, SM_90A)
    outer, inner = (op for op in walk(made.body) if isinstance(op, For))
    assert outer.result.storage == outer.body.args[1].storage != inner.result.storage
    assert inner.result.storage == inner.body.args[1].storage
    declared = [op for op in walk(made.body) if isinstance(op, Declare)]
    assert len({d.result.storage for d in declared}) == 2
    assert not outer.body.args[0].storage, "an index is no carried value"
    # The inner loop starts from the outer carried value in each trip.
    starts = [op for op in outer.body.ops if isinstance(op, Assign)]
    assert [a.source for a in starts] == [outer.body.args[1], inner.result]


def test_a_loop_without_carried_values_is_left_alone() -> None:
    text = """
    control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
      control.yield([])
    }
    """
    same(after(assign_storage, text), text)
