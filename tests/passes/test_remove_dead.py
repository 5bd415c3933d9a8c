"""What nobody uses goes, what has an effect stays."""

import pytest

from tests.passes.text import after, same
from warploom.passes.remove_dead import remove_dead


def test_chains_of_unused_values_go() -> None:
    same(
        after(
            remove_dead,
            """
            %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
            %b: i32@grid = scalar.binary(%a, %m) [kind="add"]
            %c: i32@grid = scalar.binary(%a, %n) [kind="mul"]
            %u: f32@block = global_memory.load_scalar(%x, %c, _, _) [read_only=True]
            %s: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=-1]
            debug.print([%b]) [text=""]
            """,
        ),
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %b: i32@grid = scalar.binary(%a, %m) [kind="add"]
        debug.print([%b]) [text=""]
        """,
    )


EFFECTS = [
    'debug.print([]) [text="here"]',
    'sync.barrier() [threads=128, id=0, why="", per_replica=False]',
    'sync.warp() [why=""]',
    'global_memory.store(%y, %v, %n, %o, _) [axis=0, vec=1, cache=""]',
    "shared_memory.store(%s, %v, %o, _) [axis=0, vec=1, gathered=False]",
    'debug.assert(%q, _) [text="must"]',
]
HEAD = """\
%o: i32[1] = index.lane() [rank=1]
%v: f32[1] = registers.splat(%p) [rank=1]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
%s: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=0]
"""


@pytest.mark.parametrize("effect", EFFECTS)
def test_effects_stay_at_any_depth(effect: str) -> None:
    for body in (
        effect,
        f"control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {{\n  {effect}\n"
        "  control.yield([])\n}",
        f"control.if(%q) {{\n  control.yield([])\n}} {{\n  {effect}\n  control.yield([])\n}}",
    ):
        text = after(remove_dead, HEAD + body)
        assert text.endswith(body)
        assert ("%s:" in text) == ("%s" in body)


def test_loops_branches_and_maps_without_effect_go() -> None:
    same(
        after(
            remove_dead,
            HEAD
            + """\
%w: f32[2] = registers.spread(%v) [extents=(2,)]
%g: f32[2] = registers.map() [extents=(2,)] {
  %a: f32[2] = registers.unary(%w) [kind="neg"]
  control.yield([%a])
}
%r: f32[2] = control.for(%n, %m, %n, [%g]) [unroll=1] (%i: i32@grid, %c: f32[2]) {
  %t: f32[1] = shared_memory.load(%s, %o, _) [axis=0, vec=1]
  control.yield([%c])
}
control.if(%q) {
  %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
  control.yield([])
} {
  control.yield([])
}
""",
        ),
        "",
    )


def test_an_unused_result_of_a_loop_that_stays_is_kept_with_what_it_needs() -> None:
    body = """
    %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
    %r: i32@grid = control.for(%n, %m, %n, [%a]) [unroll=1] (%i: i32@grid, %c: i32@grid) {
      %d: i32@grid = scalar.binary(%c, %m) [kind="add"]
      debug.print([]) [text=""]
      control.yield([%d])
    }
    """
    same(after(remove_dead, body), body)


def test_inner_uses_keep_outer_values() -> None:
    body = """
    %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
    control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
      control.for(%n, %m, %n, []) [unroll=1] (%j: i32@grid) {
        debug.print([%a]) [text=""]
        control.yield([])
      }
      control.yield([])
    }
    """
    same(after(remove_dead, body), body)


def test_one_used_result_of_several_keeps_the_operation() -> None:
    body = """
    %q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
    %r: i32@grid, %s: i32@grid = control.if(%q) {
      control.yield([%n, %m])
    } {
      control.yield([%m, %n])
    }
    debug.print([%s]) [text=""]
    """
    same(after(remove_dead, body), body)


def test_tile_stage() -> None:
    same(
        after(
            remove_dead,
            """
            %t: f32<4x8> = tile.load(%x, [%n, %m], _) [sizes=(4, 8,)]
            %u: f32<4> = tile.reduce(%t) [axis=1, kind="add"]
            %w: f32<4x8> = tile.load(%x, [%n, %m], _) [sizes=(4, 8,)]
            tile.store(%y, %w, [%n, %m]) [sizes=(4, 8,)]
            """,
            "tile",
        ),
        """
        %w: f32<4x8> = tile.load(%x, [%n, %m], _) [sizes=(4, 8,)]
        tile.store(%y, %w, [%n, %m]) [sizes=(4, 8,)]
        """,
        "tile",
    )
