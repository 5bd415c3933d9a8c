"""Register-wise operations in one loop: what joins, what separates, what is seen outside."""

from tests.passes.text import after, parsed, same
from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.ops.registers import Map
from warploom.passes.group_maps import group_maps

HEAD = """
%z: i32@grid = scalar.const() [number=0, dtype=i32]
%one: f32[1] = registers.splat(%p) [rank=1]
%v: f32[4] = registers.spread(%one) [extents=(4,)]
%w: f32[2] = registers.spread(%one) [extents=(2,)]
%k: i32[4] = index.constants() [rank=1, axis=0, numbers=(0, 1, 2, 3,)]
"""


def test_neighbours_of_one_shape_become_a_map() -> None:
    same(
        after(
            group_maps,
            HEAD
            + """
%a: f32[4] = registers.binary(%v, %one) [kind="add"]
%b: bool[4] = registers.compare(%a, %v) [kind="lt"]
%c: f32[4] = registers.select(%b, %a, %v)
%u: f32[1] = registers.fold(%c) [axis=0, kind="add"]
""",
        ),
        HEAD
        + """
%c: f32[4] = registers.map() [extents=(4,)] {
  %a: f32[4] = registers.binary(%v, %one) [kind="add"]
  %b: bool[4] = registers.compare(%a, %v) [kind="lt"]
  %c.0: f32[4] = registers.select(%b, %a, %v)
  control.yield([%c.0])
}
%u: f32[1] = registers.fold(%c) [axis=0, kind="add"]
""",
    )


def test_values_used_inside_and_outside_are_yielded_once() -> None:
    same(
        after(
            group_maps,
            HEAD
            + """
%a: f32[4] = registers.unary(%v) [kind="neg"]
%b: f32[4] = registers.binary(%a, %a) [kind="add"]
%c: f32[4] = registers.binary(%a, %b) [kind="mul"]
%u: f32[1] = registers.fold(%a) [axis=0, kind="add"]
%t: f32[1] = registers.fold(%c) [axis=0, kind="add"]
%s: f32[1] = registers.fold(%a) [axis=0, kind="max"]
""",
        ),
        HEAD
        + """
%a: f32[4], %c: f32[4] = registers.map() [extents=(4,)] {
  %a.0: f32[4] = registers.unary(%v) [kind="neg"]
  %b: f32[4] = registers.binary(%a.0, %a.0) [kind="add"]
  %c.0: f32[4] = registers.binary(%a.0, %b) [kind="mul"]
  control.yield([%a.0, %c.0])
}
%u: f32[1] = registers.fold(%a) [axis=0, kind="add"]
%t: f32[1] = registers.fold(%c) [axis=0, kind="add"]
%s: f32[1] = registers.fold(%a) [axis=0, kind="max"]
""",
    )


def kinds(body: str) -> str:
    """Operations of the body in order: map(n) for a map of n, else the last word of the opcode."""
    made = parsed(HEAD + body)
    group_maps(made, SM_90A)
    shown = []
    for op in made.body.ops[5:-1]:
        inside = len(op.body.ops) - 1 if isinstance(op, Map) else 0
        shown.append(f"map({inside})" if inside else op.OPCODE.split(".")[1])
    return " ".join(shown)


def neg(name: str, source: str, extent: int = 4) -> str:
    return f'%{name}: f32[{extent}] = registers.unary(%{source}) [kind="neg"]\n'


LOAD = '%t: f32[4] = global_memory.load(%x, %z, %k, _, _) [axis=0, vec=1, cache=""]\n'


def store(value: str) -> str:
    return f'global_memory.store(%y, %{value}, %z, %k, _) [axis=0, vec=1, cache=""]\n'


def test_one_operation_is_no_map() -> None:
    assert kinds(neg("a", "v")) == "unary"


def test_one_register_is_no_map() -> None:
    assert kinds(neg("a", "one", 1) + neg("b", "a", 1)) == "unary unary"


def test_memory_is_never_crossed() -> None:
    assert kinds(neg("a", "v") + LOAD + neg("b", "v")) == "unary load unary"
    assert kinds(neg("a", "v") + store("v") + neg("b", "v")) == "unary store unary"
    assert kinds(
        neg("a", "v") + neg("b", "a") + store("b") + LOAD + neg("c", "t") + store("c")
    ) == ("map(2) store load unary store")
    barrier = 'sync.barrier() [threads=128, id=0, why=""]\n'
    assert kinds(neg("a", "v") + barrier + neg("b", "a")) == "unary barrier unary"


def test_other_shapes_stand_before_where_they_can() -> None:
    # Independent: it may go first. Dependent on the group: the group ends.
    assert kinds(neg("a", "v") + neg("b", "w", 2) + neg("c", "a")) == "unary map(2)"
    fold = '%u: f32[1] = registers.fold(%a) [axis=0, kind="add"]\n'
    assert kinds(neg("a", "v") + fold + neg("c", "a")) == "unary fold unary"


def test_what_the_group_reads_is_there_before_it() -> None:
    text = after(
        group_maps,
        HEAD
        + neg("a", "v")
        + '%q: f32[1] = registers.unary(%one) [kind="abs"]\n'
        + '%b: f32[4] = registers.binary(%a, %q) [kind="add"]\n',
    )
    assert text.index("%q:") < text.index("registers.map")


def test_groups_inside_loops_and_values_from_outside() -> None:
    made = parsed(
        HEAD
        + neg("a", "v")
        + """
%r: f32[4] = control.for(%n, %m, %n, [%a]) [unroll=1] (%i: i32@grid, %c: f32[4]) {
  %d: f32[4] = registers.binary(%c, %a) [kind="add"]
  %e: f32[4] = registers.binary(%d, %v) [kind="mul"]
  control.yield([%e])
}
"""
        + neg("f", "r")
        + neg("g", "f")
    )
    group_maps(made, SM_90A)
    maps = [op for op in walk(made.body) if isinstance(op, Map)]
    assert [len(m.body.ops) for m in maps] == [3, 3]
    assert len(maps[0].results) == 1, "only what the yield takes leaves the map"


def test_a_second_run_changes_nothing() -> None:
    body = HEAD + neg("a", "v") + neg("b", "a") + store("b")
    once = after(group_maps, body)
    assert after(group_maps, once) == once
