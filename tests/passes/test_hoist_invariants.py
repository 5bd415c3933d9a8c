"""What leaves a loop, what stays in it."""

from tests.passes.text import after, same
from warploom.passes.hoist_invariants import hoist_invariants


def test_pure_operations_leave_all_loops() -> None:
    same(
        after(
            hoist_invariants,
            """
            control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
              control.for(%n, %m, %n, []) [unroll=1] (%j: i32@grid) {
                %a: i32@grid = scalar.binary(%n, %m) [kind="floordiv"]
                %b: i32@grid = scalar.binary(%a, %i) [kind="add"]
                %c: i32@grid = scalar.binary(%b, %j) [kind="add"]
                control.yield([])
              }
              control.yield([])
            }
            """,
        ),
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="floordiv"]
        control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
          %b: i32@grid = scalar.binary(%a, %i) [kind="add"]
          control.for(%n, %m, %n, []) [unroll=1] (%j: i32@grid) {
            %c: i32@grid = scalar.binary(%b, %j) [kind="add"]
            control.yield([])
          }
          control.yield([])
        }
        """,
    )


STAYS = """
%z: i32@grid = scalar.const() [number=0, dtype=i32]
%o: i32[1x1] = index.lane() [rank=2]
%v: f32[1x1] = registers.splat(%p) [rank=2]
%r: f32[1x1] = control.for(%n, %m, %n, [%v]) [unroll=1] (%i: i32@grid, %acc: f32[1x1]) {
  %b: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=0]
  %t: f32[1x1] = global_memory.load(%x, %z, %o, _, _) \
[axis=0, vec=1, read_only=False, cache=""]
  global_memory.store(%y, %t, %z, %o, _) [axis=0, vec=1, cache=""]
  %u: f32@block = global_memory.load_scalar(%y, %z, _, _) [read_only=False]
  sync.barrier() [threads=128, id=0, why=""]
  debug.print([%u]) [text="u"]
  %w: f32[1x1] = registers.unary(%acc) [kind="neg"]
  control.yield([%w])
}
"""


def test_effects_and_what_depends_on_the_loop_stay_in_order() -> None:
    same(after(hoist_invariants, STAYS), STAYS)


def test_what_uses_a_load_stays_behind_it() -> None:
    text = """
    %z: i32@grid = scalar.const() [number=0, dtype=i32]
    control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
      %u: f32@block = global_memory.load_scalar(%x, %z, _, _) [read_only=True]
      %w: f32@block = scalar.unary(%u) [kind="neg"]
      control.yield([])
    }
    """
    same(after(hoist_invariants, text), text)


def test_branches_keep_their_operations_and_loops_in_them_hoist_to_the_branch() -> None:
    same(
        after(
            hoist_invariants,
            """
            %q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
            control.if(%q) {
              control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
                %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
                control.yield([])
              }
              control.yield([])
            } {
              control.yield([])
            }
            """,
        ),
        """
        %q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
        control.if(%q) {
          %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
          control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {
            control.yield([])
          }
          control.yield([])
        } {
          control.yield([])
        }
        """,
    )


def test_a_yielded_invariant_leaves_and_is_still_yielded() -> None:
    text = after(
        hoist_invariants,
        """
        %r: i32@grid = control.for(%n, %m, %n, [%n]) [unroll=1] (%i: i32@grid, %a: i32@grid) {
          %b: i32@grid = scalar.binary(%n, %m) [kind="add"]
          control.yield([%b])
        }
        """,
    )
    assert text.startswith("%b: i32@grid") and "control.yield([%b])" in text
