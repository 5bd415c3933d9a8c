"""Text that is not IR is refused, with the line and what is wrong."""

import pytest

from warploom.base.dtypes import f32, i32
from warploom.ir.ops import scalar, tile
from warploom.ir.ops.control import For
from warploom.ir.parser import ParseError, parse_kernel
from warploom.ir.types import Regs, Scalar, Tensor, TensorClass, Tile, Uniformity

HEAD = "kernel @k(%x: tensor<f32, n1, align 16, extent 4, aliased, wide>, %n: i32@grid)"


def kernel(*lines: str, head: str = HEAD, options: str = "stage=tile warps=2") -> str:
    return "\n".join([f"{head} {options} {{", *lines, "  control.yield([])", "}"]) + "\n"


def test_a_head() -> None:
    made = parse_kernel(kernel())
    assert made.name == "k" and made.warps == 2
    x, n = made.params
    assert x.type == Tensor(f32, 2, TensorClass("n1", 16, 4, aliased=True, wide=True))
    assert n.type == Scalar(i32, Uniformity.GRID)
    assert (x.name, n.name) == ("x", "n")


def test_operands_attributes_and_regions() -> None:
    made = parse_kernel(
        kernel(
            "  %0: i32@grid = scalar.const() [number=0, dtype=i32]",
            "  %a: f32<4> = tile.load(%x, [%0, %n], _) [sizes=(None, 4,)]",
            "  %r: f32<4> = control.for(%0, %n, %0, [%a]) [unroll=2] (%i: i32@grid, %b: f32<4>) {",
            "    control.yield([%b])",
            "  }  @7:3",
        )
    )
    _, load, loop, _ = made.body.ops
    assert isinstance(load, tile.Load) and isinstance(loop, For)
    assert load.sizes == (None, 4) and load.other is None
    assert load.starts == (made.body.ops[0].result, made.params[1])
    assert loop.unroll == 2 and loop.inits == (load.result,)
    assert loop.body.args[1] in tuple(loop.body.ops[-1].operand_values())
    assert all(a.owner is loop.body for a in loop.body.args)
    assert (loop.loc.line, loop.loc.column) == (7, 3)


def test_a_storage_is_not_the_operation() -> None:
    made = parse_kernel(
        kernel(
            "  %s: f32[2x1] =s_s0 = control.declare() [type=f32[2x1]]",
            options="stage=machine warps=2",
        )
    )
    assert made.body.ops[0].result.storage == "s_s0"
    assert made.body.ops[0].result.type == Regs(f32, (2, 1))


def test_a_layout_of_the_kernels_warps() -> None:
    made = parse_kernel(
        kernel(
            "  %0: f32@grid = scalar.const() [number=1.0, dtype=f32]",
            "  %a: f32<64> (64; l32:0*1 w2:0*32) = tile.splat(%0) [shape=(64,)]",
        )
    )
    type = made.body.ops[1].result.type
    assert isinstance(type, Tile) and type.layout is not None
    assert type.layout.warps == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  tile.stare(%x)", "line 2: unknown operation tile.stare"),
        ("  $", r"line 2: unexpected '\$'"),
        ("  %a: f32<4> = tile.load(%x, [%q, %n], _) [sizes=(4,)]", "line 2: %q is not defined"),
        ("  %a = scalar.const() [number=1, dtype=i32]", "line 2: expected ':', found '='"),
        ("  %a: i33@grid = scalar.const() [number=1, dtype=i32]", "line 2: not a type: i33@grid"),
        ("  %a: i32@world = scalar.const() [number=1, dtype=i32]", "line 2: not a type: i32@world"),
        ("  %a: i32@grid = scalar.const() [number=one, dtype=i32]", "line 2: not a literal: 'one'"),
        ("  %a: i32@grid = scalar.const() [number=1]", "line 2: scalar.const: .*'dtype'"),
        ("  %a: i32@grid = scalar.const() [size=1]", "line 2: scalar.const: .*'size'"),
        ("  %a: f32<4> (4; l31) = tile.splat(%n) [shape=(4,)]", "line 2: not a type"),
        ('  tile.print([%n] [text=""]', r"line 2: expected '\)', found '\['"),
    ],
)
def test_what_is_wrong_and_where(line: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_kernel(kernel(line))


def test_a_block_needs_its_end() -> None:
    with pytest.raises(ParseError, match="line 2: unexpected end"):
        parse_kernel(kernel().removesuffix("}\n"))


def test_nothing_may_follow() -> None:
    with pytest.raises(ParseError, match="line 4: text after the kernel"):
        parse_kernel(kernel() + "more\n")


def test_equal_texts_are_different_objects() -> None:
    one, two = parse_kernel(kernel()), parse_kernel(kernel())
    assert one.params[0] is not two.params[0]


def test_a_name_is_what_stands_before_its_number() -> None:
    made = parse_kernel(
        kernel(
            "  %acc.2: i32@grid = scalar.const() [number=1, dtype=i32]",
            "  %17: i32@grid = scalar.const() [number=1, dtype=i32]",
        )
    )
    first, second, _ = made.body.ops
    assert (first.result.name, second.result.name) == ("acc", "")
    assert isinstance(first, scalar.Const)
