"""The verifier names what is broken. Kernels are given as text, right but for one thing."""

import pytest

from warploom.ir.op import Block
from warploom.ir.ops.control import Yield
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import VerifyError, verify_kernel

PARAMS = "%x: tensor<f32, n1, align 16, extent 16>, %n: i32@grid, %p: f32@grid, %w: i32@warp"


def kernel(body: str, stage: str = "tile", warps: int = 4) -> str:
    return f"kernel @k({PARAMS}) stage={stage} warps={warps} {{\n{body}\n control.yield([])\n}}\n"


def check(body: str, stage: str = "tile") -> None:
    verify_kernel(parse_kernel(kernel(body, stage)))


TILE = "%t: f32<4x8> = tile.load(%x, [%n, %n], _) [sizes=(4, 8,)]\n"
REGS = "%one: f32[1x1] = registers.splat(%p) [rank=2]\n"
CONDITION = '%c: bool@block = scalar.compare(%b, %n) [kind="lt"]\n'
BLOCK = "%b: i32@block = scalar.block_id() [axis=0]\n"


@pytest.mark.parametrize(
    ("body", "stage"),
    [
        (TILE, "tile"),
        (REGS + "%r: f32[4x2] = registers.spread(%one) [extents=(4, 2,)]", "machine"),
        (
            TILE + "%r: f32<4x8> = control.for(%n, %n, %n, [%t]) [unroll=1] "
            "(%i: i32@grid, %a: f32<4x8>) {\n control.yield([%a])\n}",
            "tile",
        ),
        (
            BLOCK + CONDITION + "%r: i32@block = control.if(%c) {\n control.yield([%n])\n} "
            "{\n control.yield([%b])\n}",
            "tile",
        ),
        (
            REGS + "%r: f32[1x1] = registers.map() [extents=(2, 1,)] {\n"
            '%a: f32[1x1] = registers.unary(%one) [kind="neg"]\n control.yield([%a])\n}',
            "machine",
        ),
    ],
)
def test_right_ones(body: str, stage: str) -> None:
    check(body, stage)


@pytest.mark.parametrize(
    ("body", "stage", "message"),
    [
        (TILE, "machine", "tile.load at .*: not legal at stage MACHINE"),
        (REGS, "tile", "registers.splat at .*: not legal at stage TILE"),
        ("%a: i32@grid = scalar.const() [number=1, dtype=i64]", "tile", "i64@grid is inferred"),
        ("%a: i32@grid = scalar.block_id() [axis=0]", "tile", "i32@block is inferred"),
        ("%a: i32@block = scalar.block_id() [axis=3]", "tile", "grid axis 3"),
        ('%a: i32@grid = scalar.binary(%n, %p) [kind="add"]', "tile", "add of i32 and f32"),
        ('%a: f32@grid = scalar.binary(%p, %p) [kind="shl"]', "tile", "shl of f32"),
        ('%a: i32@grid = scalar.binary(%n, %n) [kind="pow"]', "tile", "unknown arithmetic pow"),
        ("%a: f32<4> = tile.load(%x, [%n], _) [sizes=(4,)]", "tile", "window of 1 axes, rank 2"),
        ("scalar.dim(%x) [axis=0]", "tile", "0 results where 1 are inferred"),
        ("control.yield([])", "tile", "a block ends with its only terminator"),
        (
            TILE + "%r: f32<4x8> = control.for(%n, %n, %n, [%t]) [unroll=1] "
            "(%i: i32@grid, %a: f32<4x8>) {\n control.yield([])\n}",
            "tile",
            "the yield gives another number of carried values",
        ),
        (
            TILE + "control.for(%n, %n, %n, [%t]) [unroll=1] (%i: i32@grid) "
            "{\n control.yield([])\n}",
            "tile",
            "one body argument a carried value",
        ),
        (
            TILE + "%r: f32<4> = control.for(%n, %n, %n, [%t]) [unroll=1] "
            "(%i: i32@grid, %a: f32<4>) {\n control.yield([%a])\n}",
            "tile",
            "carried .*4x8.* enters as",
        ),
        (
            BLOCK + "%r: i32@grid = control.for(%n, %b, %n, [%n]) [unroll=1] "
            "(%i: i32@block, %a: i32@grid) {\n control.yield([%a])\n}",
            "tile",
            "uniform by block only",
        ),
        (
            BLOCK + "%r: i32@grid = control.for(%n, %n, %n, [%n]) [unroll=1] "
            "(%i: i32@grid, %a: i32@grid) {\n control.yield([%b])\n}",
            "tile",
            "uniform by block only",
        ),
        (
            BLOCK + "control.for(%n, %n, %b, []) [unroll=1] (%i: i32@grid) "
            "{\n control.yield([])\n}",
            "tile",
            "uniform by block only",
        ),
        (
            BLOCK + CONDITION + "%r: i32@grid = control.if(%c) {\n control.yield([%n])\n} "
            "{\n control.yield([%n])\n}",
            "tile",
            "i32@block is inferred",
        ),
        (
            '%c: bool@grid = scalar.compare(%n, %n) [kind="lt"]\n' + BLOCK + "%r: i32@grid = "
            "control.if(%c) {\n control.yield([%n])\n} {\n control.yield([%b])\n}",
            "tile",
            "i32@block is inferred",
        ),
        (
            BLOCK + CONDITION + "%r: i32@block = control.if(%c) {\n control.yield([%n])\n} "
            "{\n control.yield([])\n}",
            "tile",
            "branches yield different numbers of values",
        ),
        ("control.if(%n) {\n control.yield([])\n} {\n control.yield([])\n}", "tile", "not bool"),
        (
            '%c: bool@warp = scalar.compare(%w, %n) [kind="lt"]\ncontrol.if(%c) {\n'
            ' sync.barrier() [threads=128, id=0, why=""]\n control.yield([])\n} '
            "{\n control.yield([])\n}",
            "machine",
            "a barrier that not all warps may come to",
        ),
        (
            "control.for(%n, %w, %n, []) [unroll=1] (%i: i32@warp) {\n"
            ' sync.barrier() [threads=128, id=0, why=""]\n control.yield([])\n}',
            "machine",
            "a barrier that not all warps may come to",
        ),
        ('sync.barrier() [threads=100, id=0, why=""]', "machine", "not whole warps"),
        ('sync.barrier() [threads=128, id=16, why=""]', "machine", "barrier 16"),
        (
            REGS + "%r: f32[4x2] = registers.spread(%one) [extents=(4,)]",
            "machine",
            "does not spread",
        ),
        (
            REGS + "%m: f32[1x1] = registers.map() [extents=(2, 2,)] {\n"
            "%a: f32[1x1] = lanes.shuffle_xor(%one) [mask=1]\n control.yield([%a])\n}",
            "machine",
            "lanes.shuffle_xor inside a map",
        ),
        (
            REGS + "%m: f32[3x1] = registers.map() [extents=(2, 2,)] {\n"
            "%a: f32[3x1] = registers.spread(%one) [extents=(3, 1,)]\n control.yield([%a])\n}",
            "machine",
            r"inside a map of \(2, 2\)",
        ),
        (
            'roles.split() [names=("both",), warps=(2,), replicas=(2,), registers=(0,), '
            "first=(0,), "
            "barrier=(1,)] {\n%m: buffer<i32, 4> = shared_memory.buffer() [dtype=i32, elements=4, "
            "at=0, align=16, copies=1]\n control.yield([])\n}",
            "machine",
            "1 copies of a buffer that 2 replicas make",
        ),
        (
            "control.assign(%n, %n)",
            "machine",
            "the target is not a declared storage",
        ),
        (
            "%a: f32<64> (64; l32:0*1 w4:0*32) = tile.splat(%p) [shape=(64,)]",
            "tile",
            None,
        ),
        (
            "%a: f32<64> (60; l32:0*1 w4:0*32) = tile.splat(%p) [shape=(64,)]",
            "tile",
            "under layout",
        ),
        (
            REGS + "%a: f32[3x1] (64x2; l32:0*1 w4:0*32 r2:1*1) = registers.spread(%one) "
            "[extents=(3, 1,)]",
            "machine",
            "under layout",
        ),
    ],
)
def test_wrong_ones(body: str, stage: str, message: str | None) -> None:
    if message is None:
        check(body, stage)
        return
    with pytest.raises(VerifyError, match=message):
        check(body, stage)


def test_a_value_of_a_sibling_block_is_not_visible() -> None:
    text = kernel(
        BLOCK
        + CONDITION
        + "control.if(%c) {\n %q: i32@grid = scalar.const() [number=1, dtype=i32]\n"
        + " control.yield([])\n} {\n control.yield([])\n}\n"
        + '%z: i32@grid = scalar.binary(%q, %q) [kind="add"]'
    )
    with pytest.raises(VerifyError, match="is not defined before"):
        verify_kernel(parse_kernel(text))


def test_an_operation_before_its_operand() -> None:
    made = parse_kernel(kernel(BLOCK + CONDITION))
    made.body.ops[0], made.body.ops[1] = made.body.ops[1], made.body.ops[0]
    with pytest.raises(
        VerifyError, match=r"scalar\.compare at .*: operand .* is not defined before"
    ):
        verify_kernel(made)


def test_one_operation_twice() -> None:
    made = parse_kernel(kernel(BLOCK))
    made.body.ops.insert(0, made.body.ops[0])
    with pytest.raises(VerifyError, match="is defined twice"):
        verify_kernel(made)


def test_a_result_that_another_operation_claims() -> None:
    made = parse_kernel(kernel(BLOCK))
    made.body.ops[0].result.owner = Yield()
    with pytest.raises(VerifyError, match="belongs to another operation"):
        verify_kernel(made)


def test_an_argument_that_another_block_claims() -> None:
    made = parse_kernel(
        kernel("control.for(%n, %n, %n, []) [unroll=1] (%i: i32@grid) {\n control.yield([])\n}")
    )
    made.body.ops[0].regions()[0].args[0].owner = Block()
    with pytest.raises(VerifyError, match="belongs to another block"):
        verify_kernel(made)


def test_empty_blocks() -> None:
    made = parse_kernel(kernel(""))
    made.body.ops.clear()
    with pytest.raises(VerifyError, match="a block without a yield"):
        verify_kernel(made)
    made = parse_kernel(
        kernel("control.for(%n, %n, %n, []) [unroll=1] (%i: i32@grid) {\n control.yield([])\n}")
    )
    made.body.ops[0].regions()[0].ops.clear()
    with pytest.raises(VerifyError, match="a block without a yield"):
        verify_kernel(made)


def test_the_head() -> None:
    made = parse_kernel(kernel(""))
    made.written = (1,)
    with pytest.raises(VerifyError, match="written parameters"):
        verify_kernel(made)
    made.written, made.warps = (), 0
    with pytest.raises(VerifyError, match="0 warps"):
        verify_kernel(made)
    wrong = parse_kernel(kernel("").replace("%p: f32@grid", "%p: f32<4>"))
    with pytest.raises(VerifyError, match="is no argument"):
        verify_kernel(wrong)


def test_a_layout_of_another_number_of_warps() -> None:
    made = parse_kernel(kernel("%a: f32<64> (64; l32:0*1 w4:0*32) = tile.splat(%p) [shape=(64,)]"))
    made.warps = 8
    with pytest.raises(VerifyError, match="of 4 warps"):
        verify_kernel(made)
