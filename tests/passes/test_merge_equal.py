"""What counts as the same computation."""

import pytest

from tests.passes.text import after, same
from warploom.passes.merge_equal import merge_equal


def count(body: str, opcode: str) -> int:
    return after(merge_equal, body).count(opcode)


def test_equal_operations_become_one_and_uses_follow() -> None:
    same(
        after(
            merge_equal,
            """
            %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
            %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
            %c: i32@grid = scalar.binary(%a, %n) [kind="mul"]
            %d: i32@grid = scalar.binary(%b, %n) [kind="mul"]
            debug.print([%c, %d]) [text=""]
            """,
        ),
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %c: i32@grid = scalar.binary(%a, %n) [kind="mul"]
        debug.print([%c, %c]) [text=""]
        """,
    )


def test_a_name_survives() -> None:
    text = after(
        merge_equal,
        """
        %0: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %rows: i32@grid = scalar.binary(%n, %m) [kind="add"]
        debug.print([%rows]) [text=""]
        """,
    )
    assert text.startswith("%rows: i32@grid") and "debug.print([%rows])" in text


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("number=0.0, dtype=f32", "number=0.0, dtype=f32", 1),
        ("number=0.0, dtype=f32", "number=-0.0, dtype=f32", 2),
        ("number=-0.0, dtype=f32", "number=-0.0, dtype=f32", 1),
        ("number=nan, dtype=f32", "number=nan, dtype=f32", 1),
        ("number=inf, dtype=f32", "number=-inf, dtype=f32", 2),
        ("number=1, dtype=i32", "number=1, dtype=i64", 2),
        ("number=1, dtype=bool", "number=True, dtype=bool", 2),
        ("number=1.0, dtype=f32", "number=1.0, dtype=bf16", 2),
        ("number=16777217, dtype=i32", "number=16777216, dtype=i32", 2),
    ],
)
def test_literals(first: str, second: str, kept: int) -> None:
    types = [text.rpartition("=")[2] for text in (first, second)]
    body = "\n".join(
        f"%{name}: {type}@grid = scalar.const() [{text}]"
        for name, type, text in zip("ab", types, (first, second), strict=True)
    )
    assert count(body, "scalar.const") == kept


def test_operands_in_another_order_are_another_operation() -> None:
    body = '%a: i32@grid = scalar.binary(%n, %m) [kind="sub"]\n' + (
        '%b: i32@grid = scalar.binary(%m, %n) [kind="sub"]'
    )
    assert count(body, "scalar.binary") == 2


def test_outer_values_are_seen_inside_and_not_the_other_way() -> None:
    text = after(
        merge_equal,
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
        control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
          %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
          %c: i32@grid = scalar.binary(%n, %m) [kind="mul"]
          debug.print([%b, %c]) [text=""]
          control.yield([])
        }
        %d: i32@grid = scalar.binary(%n, %m) [kind="mul"]
        debug.print([%d]) [text=""]
        """,
    )
    assert text.count('kind="add"') == 1 and "debug.print([%a, %c])" in text
    assert text.count('kind="mul"') == 2 and "debug.print([%d])" in text


def test_sibling_blocks_share_nothing() -> None:
    text = after(
        merge_equal,
        """
        %q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
        %r: i32@grid = control.if(%q) {
          %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
          control.yield([%a])
        } {
          %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
          control.yield([%b])
        }
        """,
    )
    assert "control.yield([%a])" in text and "control.yield([%b])" in text


def test_yields_and_carried_values_follow() -> None:
    text = after(
        merge_equal,
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %r: i32@grid = control.for(%a, %b, %b, [%b]) [unroll=1] (%i: i32@grid, %c: i32@grid) {
          %d: i32@grid = scalar.binary(%n, %m) [kind="add"]
          control.yield([%d])
        }
        """,
    )
    assert "control.for(%a, %a, %a, [%a])" in text and "control.yield([%a])" in text


def test_memory_and_order_are_not_merged() -> None:
    body = """
    %u: f32@block = global_memory.load_scalar(%x, %n, _, _) [read_only=True]
    %w: f32@block = global_memory.load_scalar(%x, %n, _, _) [read_only=True]
    %a: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=-1]
    %b: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=-1]
    sync.barrier() [threads=128, id=0, why=""]
    sync.barrier() [threads=128, id=0, why=""]
    debug.print([%u, %w]) [text=""]
    """
    same(after(merge_equal, body), body)


def test_layouts_tell_values_apart() -> None:
    body = """
    %v: f32[1] = registers.splat(%p) [rank=1]
    %a: f32[2] (64; l32:0*1 w4:_ r2:0*32) = registers.spread(%v) [extents=(2,)]
    %b: f32[2] (64; l32:0*2 w4:_ r2:0*1) = registers.spread(%v) [extents=(2,)]
    %c: f32[2] (64; l32:0*2 w4:_ r2:0*1) = registers.spread(%v) [extents=(2,)]
    """
    assert count(body, "registers.spread") == 2
