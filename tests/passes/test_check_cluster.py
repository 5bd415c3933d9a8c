"""What differs among the blocks of a cluster, by every way it may reach a loop's bounds; reports
stand in tests/frontend/test_clusters.py."""

import pytest

from tests.passes.text import parsed
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.passes.check_cluster import check_cluster

LOOP = (
    "control.for(%{0}, %n, %one, []) [unroll=1] (%i: i32@block) {{\n{1}\n  control.yield([])\n}}\n"
)
HEAD = """
%one: i32@grid = scalar.const() [number=1, dtype=i32]
%two: i32@grid = scalar.const() [number=2, dtype=i32]
%four: i32@grid = scalar.const() [number=4, dtype=i32]
%x0: i32@block = scalar.block_id() [axis=0]
%y0: i32@block = scalar.block_id() [axis=1]
%rank: i32@block = cluster.rank()
%half: i32@block = scalar.binary(%x0, %two) [kind="floordiv"]
%quarter: i32@block = scalar.binary(%x0, %four) [kind="floordiv"]
%whole: i32@block = scalar.binary(%x0, %one) [kind="floordiv"]
%odd: i32@block = scalar.binary(%x0, %two) [kind="mod"]
%sum: i32@block = scalar.binary(%half, %y0) [kind="add"]
%cell: f32@block = scalar.load(%x, [%half, %one], _)
%same: i32@block = scalar.cast(%cell) [dtype=i32]
%own: f32@block = scalar.load(%x, [%x0, %one], _)
%other: i32@block = scalar.cast(%own) [dtype=i32]
%z: f32@block = scalar.load(%y, [%one, %one], _)
%stored: i32@block = scalar.cast(%z) [dtype=i32]
"""
SYNC = '  cluster.sync() [ordered=True, why=""]'


@pytest.mark.parametrize(
    ("bound", "even"),
    [
        *(("n", True), ("half", True), ("quarter", True), ("sum", True), ("same", True)),
        *(("x0", False), ("rank", False), ("whole", False), ("odd", False), ("other", False)),
        ("stored", False),
    ],
)
def test_bounds_of_a_loop(bound, even):
    made = parsed(HEAD + LOOP.format(bound, SYNC), "tile", options="warps=4 cluster=2,1,1")
    made.written = (1,)
    if even:
        check_cluster(made, SM_90A)
    else:
        with pytest.raises(CompileError) as caught:
            check_cluster(made, SM_90A)
        assert caught.value.code == "P037"


def test_a_loop_carries_what_differs():
    """It becomes uneven in the second trip only."""
    body = HEAD + (
        "%a: i32@block, %b: i32@block = control.for(%one, %n, %one, [%one, %one]) [unroll=1] "
        "(%i: i32@block, %p: i32@block, %q: i32@block) {\n"
        "  control.yield([%q, %rank])\n}\n"
    )
    for bound in ("a", "b"):
        made = parsed(body + LOOP.format(bound, SYNC), "tile", options="warps=4 cluster=2,1,1")
        with pytest.raises(CompileError):
            check_cluster(made, SM_90A)
        made.cluster = (1, 1, 1)
        check_cluster(made, SM_90A)


def test_axes_along_which_the_cluster_is_one_block_do_not_differ():
    made = parsed(HEAD + LOOP.format("x0", SYNC), "tile", options="warps=4 cluster=1,2,1")
    check_cluster(made, SM_90A)
    made = parsed(HEAD + LOOP.format("y0", SYNC), "tile", options="warps=4 cluster=1,2,1")
    with pytest.raises(CompileError):
        check_cluster(made, SM_90A)
