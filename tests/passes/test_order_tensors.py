"""Barriers between accesses of a block to a tensor that it writes, and where none is needed."""

from __future__ import annotations

import re

import pytest

from tests.passes.text import kernel
from warploom.base.target import SM_90A
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.order_tensors import order_tensors

PARAMS = (
    "%x: tensor<f32, n1, align 16, extent 16>, %y: tensor<f32, n1, align 16, extent 16>, "
    "%n: i32@grid, %m: i32@grid, %p: f32@grid, %w: tensor<f32, n1, align 16, extent 16>"
)
ALIASED = PARAMS.replace("extent 16>", "extent 16, aliased>", 2)
HEAD = """
%0: i32@grid = scalar.const() [number=0, dtype=i32]
%4: i32@grid = scalar.const() [number=4, dtype=i32]
%64: i32@grid = scalar.const() [number=64, dtype=i32]
%128: i32@grid = scalar.const() [number=128, dtype=i32]
%n4: i32@grid = scalar.binary(%n, %4) [kind="add"]
%n1: i32@grid = scalar.binary(%n, %1) [kind="add"]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
%v: f32<4x128> = tile.splat(%p) [shape=(4, 128,)]
%row: f32<1x128> = tile.splat(%p) [shape=(1, 128,)]
%one: f32<4x1> = tile.splat(%p) [shape=(4, 1,)]
""".replace("%0:", "%1: i32@grid = scalar.const() [number=1, dtype=i32]\n%0:", 1)


def get(x: str, row: str = "0", column: str = "0", size: str = "4x128") -> str:
    sizes = f"({size.replace('x', ', ')},)"
    return f"%t: f32<{size}> = tile.load(%{x}, [%{row}, %{column}], _) [sizes={sizes}]\n"


def put(x: str, row: str = "0", column: str = "0", value: str = "v") -> str:
    size = "(4, 1,)" if value == "one" else "(4, 128,)"
    return f"tile.store(%{x}, %{value}, [%{row}, %{column}]) [sizes={size}]\n"


def row(number: str, column: str = "0") -> str:
    """A store of a single row."""
    return f"tile.store(%y, %row, [%{number}, %{column}]) [sizes=(1, 128,)]\n"


def loop(body: str, index: str = "i", step: str = "128") -> str:
    return (
        f"control.for(%0, %m, %{step}, []) [unroll=1] (%{index}: i32@grid) "
        f"{{\n{body}control.yield([])\n}}\n"
    )


def branch(then: str, orelse: str = "") -> str:
    blocks = (f"{{\n{b}control.yield([])\n}}" for b in (then, orelse))
    return f"control.if(%q) {' '.join(blocks)}\n"


def order(program: str, params: str = PARAMS, written: str = "1", warps: int = 4) -> str:
    """Accesses and barriers in program order: r, w, s (a scalar), g (a gather), |, brackets."""
    text = kernel(HEAD + program, "tile", f"warps={warps} written={written}", params)
    made = parse_kernel(text)
    assign_layouts(made, SM_90A)
    order_tensors(made, SM_90A)
    verify_kernel(made)
    words = re.findall(
        r"(tile\.load|tile\.store|tile\.gather|scalar\.load|sync\.\w+|control\.for|control\.if)"
        r"|\n *(\})( \{)?",
        print_kernel(made),
    )
    shown = {
        "tile.load": "r",
        "tile.store": "w",
        "tile.gather": "g",
        "scalar.load": "s",
        "sync.barrier": "|",
        "sync.warp": "'",
        "control.for": "(",
        "control.if": "<",
    }
    return "".join(shown.get(word) or ("," if other else ")") for word, _, other in words)[:-1]


SCALAR = "%u: f32@block = scalar.load(%y, [%0, %n], _)\n"
GATHER = "%a: i32<8> = tile.arange() [n=8]\n%g: f32<8> = tile.gather(%y, [%a, %n], _, _)\n"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (get("x") + get("x"), "rr"),
        (get("x") + put("y") + get("x"), "rwr"),
        # Each thread reads back what it wrote itself.
        (put("y") + get("y"), "wr"),
        (get("y") + put("y"), "rw"),
        (put("y") + put("y"), "ww"),
        # Other elements: apart on one axis is enough.
        (put("y") + get("y", "4"), "wr"),
        (put("y", "n") + put("y", "n4"), "ww"),
        (put("y", "n", "64") + put("y", "n4", "64"), "ww"),
        (put("y", "0", "n") + put("y", "4", "m"), "ww"),
        # The same elements, perhaps, by other threads.
        (put("y", "n") + put("y", "n1"), "w|w"),
        (put("y") + get("y", "n"), "w|r"),
        (put("y") + get("y", "0", "64"), "w|r"),
        (get("y", "m") + put("y", "n"), "r|w"),
        # The same window in another layout: a column is dealt to the threads in another way.
        (put("y") + get("y", size="4x1"), "w|r"),
        (put("y", value="one") + put("y"), "w|w"),
        (put("y") + SCALAR, "w|s"),
        (SCALAR + put("y"), "s|w"),
        (put("y", "4") + SCALAR, "ws"),
        (put("y") + GATHER, "w|g"),
        (GATHER + put("y"), "g|w"),
        (GATHER + get("y"), "gr"),
        # Rows of one size: the same one, or another.
        (row("n") + row("m"), "ww"),
        (row("n", "64") + row("m"), "w|w"),
        (row("n", "m") + row("n", "0"), "w|w"),
        (row("n") + put("y"), "w|w"),
        # One barrier orders everything before it.
        (put("y") + put("y", "64") + get("y", "n") + get("y", "m"), "ww|rr"),
    ],
)
def test_straight_lines(program: str, expected: str) -> None:
    assert order(program) == expected


INDEX = '%k: i32@grid = scalar.binary(%i, %64) [kind="add"]\n'
BACK = '%k: i32@grid = scalar.binary(%i, %128) [kind="sub"]\n'
HALF = '%k: i32@grid = scalar.binary(%i, %4) [kind="floordiv"]\n'
ROW = '%k: i32@grid = scalar.binary(%n, %4) [kind="mul"]\n'
SUM = '%k: i32@grid = scalar.binary(%i, %j) [kind="add"]\n'
LOADED = (
    "%l: f32@block = scalar.load(%x, [%0, %i], _)\n%k: i32@block = scalar.cast(%l) [dtype=i32]\n"
)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Windows that move by their own size never meet.
        (loop(put("y", "0", "i")), "(w)"),
        (loop(get("y", "0", "i") + put("y", "0", "i")), "(rw)"),
        (loop(put("y", "0", "i"), step="64"), "(|w)"),
        # What stands still is touched by the same threads in each trip.
        (loop(get("y") + put("y")), "(rw)"),
        (loop(put("y", "n")), "(w)"),
        (loop(ROW + put("y", "k")), "(w)"),
        # The next trip's window lies behind this trip's end, or not.
        (loop(INDEX + put("y", "0", "i") + put("y", "0", "k")), "(|w|w)"),
        (loop(BACK + get("y", "0", "k") + put("y", "0", "i")), "(|rw)"),
        (loop(BACK + put("y", "0", "i") + put("y", "4", "k")), "(ww)"),
        # Nothing is known of these.
        (loop(HALF + put("y", "0", "k")), "(|w)"),
        (loop(LOADED + put("y", "0", "k")), "(s|w)"),
        (loop(put("y", "0", "i"), step="n"), "(|w)"),
        (loop(HALF + row("k")), "(w)"),
        (loop(LOADED + row("k")), "(sw)"),
        (loop(HALF + row("k", "i"), step="64"), "(|w)"),
        # Another axis may save it.
        (loop(HALF + put("y", "k", "i")), "(w)"),
        # After the loop it may have been any trip.
        (loop(put("y", "0", "i")) + get("y"), "(w)|r"),
        (loop(put("y", "0", "i")) + get("y", "4"), "(w)r"),
        (put("y") + loop(get("y", "0", "i")), "w(|r)"),
        # Nested loops: rows outside, columns inside.
        (loop(loop(put("y", "i", "j"), "j"), step="4"), "((w))"),
        (loop(loop(put("y", "i", "j"), "j"), step="1"), "((|w))"),
        (loop(loop(put("y", "0", "j"), "j")), "((|w))"),
        (loop(loop(SUM + put("y", "0", "k"), "j")), "((|w))"),
        (loop(loop(get("y", "0", "i"), "j") + put("y", "0", "i")), "((r)w)"),
    ],
)
def test_loops(program: str, expected: str) -> None:
    assert order(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (branch(put("y"), put("y", "n")), "<w,w)"),
        (branch(put("y")) + get("y", "n"), "<w,)|r"),
        (put("y") + branch(get("y", "n")) + put("y", "m"), "w<|r,)|w"),
        (put("y") + branch(get("y", "n"), get("y", "m")) + get("y", "n4"), "w<|r,|r)r"),
        (loop(branch(put("y", "0", "i"), get("y", "0", "i"))), "(<w,r))"),
        (loop(branch(put("y", "0", "n"), get("y", "0", "i"))), "(<|w,|r))"),
    ],
)
def test_branches(program: str, expected: str) -> None:
    assert order(program) == expected


def test_arguments_that_may_be_the_same_storage() -> None:
    assert order(put("y") + get("x"), ALIASED) == "w|r"
    assert order(get("x") + put("y"), ALIASED) == "r|w"
    assert order(put("y") + get("y"), ALIASED) == "wr"
    # Two read-only views of one array next to an output of its own.
    assert order(get("x") + put("w") + get("y"), ALIASED, written="5") == "rwr"


def test_views_are_compared_where_they_lie() -> None:
    rows = "%r: tensor<f32, n1, align 16, extent 16> = tensor.rows(%y, %4, %m) [axis=0]\n"
    assert order(rows + put("y") + get("r")) == "wr"
    assert order(rows + put("y", "4") + get("r")) == "wr"
    assert order(rows + put("y", "1") + get("r")) == "w|r"
    assert order(rows + put("r", "n") + get("r", "n4")) == "wr"


def test_nothing_is_written() -> None:
    made = parse_kernel(kernel(HEAD + get("x") + get("y"), "tile", params=PARAMS))
    assign_layouts(made, SM_90A)
    text = print_kernel(made)
    order_tensors(made, SM_90A)
    assert print_kernel(made) == text


def test_reads_of_all_replicas_meet_writes_of_the_first() -> None:
    column = get("y", size="4x1").replace("%t:", "%c:")
    assert order(put("y", value="one") + column) == "w|r"
    assert order(put("y", value="one") + put("y", value="one")) == "ww"


def test_one_warp() -> None:
    assert order(put("y") + get("y", "n"), warps=1) == "w'r"


def test_a_barrier_says_why() -> None:
    made = parse_kernel(
        kernel(HEAD + put("y") + get("y", "n"), "tile", "warps=3 written=1", PARAMS)
    )
    assign_layouts(made, SM_90A)
    order_tensors(made, SM_90A)
    why = "write of tensor y, then read of tensor y"
    barrier = f'sync.barrier() [threads=96, id=0, why="{why}", per_replica=False]'
    assert barrier in print_kernel(made)


def test_a_second_run_adds_nothing() -> None:
    body = HEAD + loop(put("y", "0", "i", "v") + get("y", "n"), step="64")
    made = parse_kernel(kernel(body, "tile", "warps=4 written=1", PARAMS))
    assign_layouts(made, SM_90A)
    order_tensors(made, SM_90A)
    once = print_kernel(made)
    order_tensors(made, SM_90A)
    assert print_kernel(made) == once
