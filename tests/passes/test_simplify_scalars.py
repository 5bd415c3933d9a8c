"""Integers that are always the same number become literals; nothing else changes."""

import pytest

from tests.passes.text import after, same
from warploom.passes.simplify_scalars import simplify_scalars


def test_arithmetic_of_constants_is_folded() -> None:
    same(
        after(
            simplify_scalars,
            """
            %a: i32@grid = scalar.const() [number=6, dtype=i32]
            %b: i32@grid = scalar.const() [number=7, dtype=i32]
            %c: i32@grid = scalar.binary(%a, %b) [kind="mul"]
            %d: i64@grid = scalar.cast(%c) [dtype=i64]
            %e: i32@grid = scalar.binary(%c, %n) [kind="add"]
            debug.print([%d, %e]) [text=""]
            """,
        ),
        """
        %a: i32@grid = scalar.const() [number=6, dtype=i32]
        %b: i32@grid = scalar.const() [number=7, dtype=i32]
        %c: i32@grid = scalar.const() [number=42, dtype=i32]
        %d: i64@grid = scalar.const() [number=42, dtype=i64]
        %e: i32@grid = scalar.binary(%c, %n) [kind="add"]
        debug.print([%d, %e]) [text=""]
        """,
    )


def test_a_literal_is_the_same_everywhere() -> None:
    """A number that was computed of a block's own may stand for any equal literal."""
    text = after(
        simplify_scalars,
        """
        %p: i32@block = scalar.block_id() [axis=0]
        %zero: i32@block = scalar.binary(%p, %p) [kind="sub"]
        debug.print([%zero]) [text=""]
        """,
    )
    assert "%zero: i32@grid = scalar.const() [number=0, dtype=i32]" in text


def test_what_cancels_is_folded() -> None:
    text = after(
        simplify_scalars,
        """
        %a: i32@grid = scalar.binary(%n, %m) [kind="add"]
        %b: i32@grid = scalar.binary(%a, %n) [kind="sub"]
        %c: i32@grid = scalar.binary(%b, %m) [kind="sub"]
        debug.print([%c]) [text=""]
        """,
    )
    assert "%c: i32@grid = scalar.const() [number=0, dtype=i32]" in text


def test_uses_inside_of_loops_follow() -> None:
    text = after(
        simplify_scalars,
        """
        %a: i32@grid = scalar.const() [number=6, dtype=i32]
        %b: i32@grid = scalar.binary(%a, %a) [kind="add"]
        %r: i32@grid = control.for(%b, %n, %b, [%b]) [unroll=1] (%i: i32@grid, %c: i32@grid) {
          debug.print([%b]) [text=""]
          %d: i32@grid = scalar.binary(%b, %b) [kind="mul"]
          control.yield([%d])
        }
        """,
    )
    assert "control.for(%b, %n, %b, [%b])" in text and "number=12" in text and "number=144" in text


@pytest.mark.parametrize(
    "body",
    [
        # Carried values and indices vary; floats are rounded by devices; division by zero is
        # what a device makes of it.
        """
        %a: i32@grid = scalar.const() [number=0, dtype=i32]
        %r: i32@grid = control.for(%a, %n, %a, [%a]) [unroll=1] (%i: i32@grid, %c: i32@grid) {
          %d: i32@grid = scalar.binary(%c, %i) [kind="add"]
          control.yield([%d])
        }
        """,
        """
        %a: f32@grid = scalar.const() [number=0.1, dtype=f32]
        %b: f32@grid = scalar.binary(%a, %a) [kind="add"]
        %c: f64@grid = scalar.cast(%a) [dtype=f64]
        """,
        """
        %a: i32@grid = scalar.const() [number=0, dtype=i32]
        %b: i32@grid = scalar.binary(%a, %a) [kind="floordiv"]
        """,
    ],
)
def test_what_is_left_alone(body: str) -> None:
    same(after(simplify_scalars, body), body)


def test_wrapping_constants() -> None:
    text = after(
        simplify_scalars,
        """
        %a: i32@grid = scalar.const() [number=65536, dtype=i32]
        %b: i32@grid = scalar.binary(%a, %a) [kind="mul"]
        %c: i64@grid = scalar.cast(%b) [dtype=i64]
        debug.print([%c]) [text=""]
        """,
    )
    assert "%c: i64@grid = scalar.const() [number=0, dtype=i64]" in text
