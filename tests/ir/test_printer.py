"""IR as text: names, types, regions, places; and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir.kernels import Body, argument, lowered, tensor
from warploom.base.dtypes import ALL, boolean, f32, i32
from warploom.ir.layout.natural import natural
from warploom.ir.op import Block, Loc, Op
from warploom.ir.ops import debug, scalar, tile
from warploom.ir.ops.control import Yield
from warploom.ir.parser import parse_kernel, parse_type
from warploom.ir.printer import literal, print_kernel, type_text
from warploom.ir.types import Buffer, Regs, Scalar, Tensor, TensorClass, Tile, Type, Uniformity


def sum_of_rows() -> Body:
    x, y, n = tensor(), tensor("1", name="y"), argument()
    b = Body(x, y, n, warps=3)
    zero = b.build.const(0)
    acc = b.emit(tile.Splat(value=b.build.const(-0.0, f32), shape=(4,)), "acc")
    with b.loop(zero, n, b.build.const(80), acc) as loop:
        t = b.load(x, (0, 4), (loop.index, 80))
        part = b.emit(tile.Reduce(value=t, axis=1, kind="add"), "part")
        loop.give(b.binary("add", loop.carried[0], part))
    b.store(y, loop.results[0], (zero, 4))
    return b


TEXT = """\
kernel @k(%x: tensor<f32, n1, align 16, extent 16>, %y: tensor<f32, 1, align 16, extent 16>, \
%n: i32@grid) stage=tile warps=3 written=1 {
  %0: i32@grid = scalar.const() [number=0, dtype=i32]
  %1: f32@grid = scalar.const() [number=-0.0, dtype=f32]
  %acc: f32<4> = tile.splat(%1) [shape=(4,)]
  %2: i32@grid = scalar.const() [number=80, dtype=i32]
  %6: f32<4> = control.for(%0, %n, %2, [%acc]) [unroll=1] (%i: i32@grid, %acc.1: f32<4>) {
    %3: i32@grid = scalar.const() [number=0, dtype=i32]
    %t: f32<4x80> = tile.load(%x, [%3, %i], _) [sizes=(4, 80,), cache=""]
    %part: f32<4> = tile.reduce(%t) [axis=1, kind="add"]
    %5: f32<4> = tile.binary(%acc.1, %part) [kind="add"]
    control.yield([%5])
  }
  tile.store(%y, %6, [%0]) [sizes=(4,), cache=""]
  control.yield([])
}
"""


def test_a_kernel_as_text() -> None:
    text = print_kernel(sum_of_rows().kernel())
    assert text == TEXT.replace("%5", "%4").replace("%6", "%acc.2")


def test_places_stand_at_the_end_of_a_line() -> None:
    text = print_kernel(sum_of_rows().kernel(), locs=True)
    assert 'tile.store(%y, %acc.2, [%0]) [sizes=(4,), cache=""]  @1:1\n' in text
    assert parse_kernel(text).body.ops[0].loc == Loc("?", 1, 1)


def test_a_use_before_its_definition_is_seen() -> None:
    b = Body(argument())
    late = b.build.const(1)
    b.build.add(debug.Print(values=(late,), text=""))
    kernel = b.kernel_unverified()
    kernel.body.ops.reverse()
    assert "debug.print([%?])" in print_kernel(kernel)


@pytest.mark.parametrize("name", ["v", "v_1", "x", "α", "_", "_0"])
def test_a_users_name_never_meets_a_number_of_the_printers(name: str) -> None:
    b = Body(argument(name=name))
    for given_name in (name, "", name, ""):
        b.build.emit(scalar.Const(number=1, dtype=i32), given_name)
    text = print_kernel(b.kernel())
    assert f"%{name}.1: " in text and f"%{name}.2: " in text and "%0: " in text
    again = parse_kernel(text)
    assert print_kernel(again) == text
    assert [op.result.name for op in again.body.ops[:-1]] == [name, "", name, ""]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-0.0, "-0.0"),
        (float("-inf"), "-inf"),
        (True, "True"),
        (None, "None"),
        (f32, "f32"),
        ((1, None), "(1, None,)"),
        ((), "()"),
        ('a "b"\\n\n', '"a \\"b\\"\\\\n\\n"'),
        (Scalar(i32, Uniformity.WARP), "i32@warp"),
    ],
)
def test_attributes_as_text(value: object, text: str) -> None:
    assert literal(value) == text


TYPES = st.one_of(
    st.builds(Scalar, st.sampled_from(ALL), st.sampled_from(Uniformity)),
    st.builds(Tile, st.sampled_from(ALL), st.lists(st.integers(1, 99), max_size=3).map(tuple)),
    st.builds(Regs, st.sampled_from(ALL), st.lists(st.integers(1, 99), max_size=3).map(tuple)),
    st.builds(Buffer, st.sampled_from(ALL), st.integers(1, 10**6)),
    st.builds(
        lambda dtype, cls: Tensor(dtype, len(cls.strides), cls),
        st.sampled_from(ALL),
        st.builds(
            TensorClass,
            st.text("01n", max_size=4),
            st.sampled_from((1, 2, 4, 8, 16)),
            st.sampled_from((1, 2, 4, 8, 16)),
            st.booleans(),
            st.booleans(),
        ),
    ),
)


@given(TYPES)
def test_types_come_back(type: Type) -> None:
    assert parse_type(type_text(type)) == type


@pytest.mark.parametrize("shape", [(), (7,), (3, 80), (2, 3, 96)])
@pytest.mark.parametrize("kind", [Tile, Regs])
def test_layouts_come_back_with_their_type(shape: tuple[int, ...], kind: type) -> None:
    layout = natural(shape, 4, 3)
    extents = shape if kind is Tile else layout.reg_extents
    back = parse_type(type_text(kind(boolean, extents, layout)))
    assert back == kind(boolean, extents)
    assert isinstance(back, Tile | Regs)
    assert back.layout == layout


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.booleans(), st.floats(), st.sampled_from((0.0, -0.0, 1e300))
)


@given(NUMBERS, st.text())
def test_constants_and_texts_come_back_as_they_were(number: int | float, text: str) -> None:
    b = Body(argument())
    b.emit(scalar.Const(number=number, dtype=f32))
    b.build.add(tile.Print(text=text))
    printed = print_kernel(b.kernel())
    const, shown, *_ = parse_kernel(printed).body.ops
    assert isinstance(const, scalar.Const) and isinstance(shown, tile.Print)
    assert repr(const.number) == repr(number)
    assert shown.text == text
    assert print_kernel(parse_kernel(printed)) == printed


def test_the_machine_stage_comes_back() -> None:
    kernel = lowered(sum_of_rows().kernel())
    text = print_kernel(kernel)
    assert "stage=machine warps=3" in text and "=acc_s0" in text and "registers.map" in text
    again = parse_kernel(text)
    assert print_kernel(again) == text
    assert _storages(again.body) == _storages(kernel.body)
    assert again.shared_bytes == kernel.shared_bytes


def _storages(block: Block) -> list[str]:
    found: list[str] = []
    for op in block.ops:
        for inner in op.regions():
            found += [a.storage for a in inner.args] + _storages(inner)
        found += [v.storage for v in op.results]
    return found


def test_options_of_a_kernel_come_back() -> None:
    b = Body(tensor(), tensor(name="y"), tensor(name="z"), warps=8)
    kernel = b.kernel()
    kernel.fast_math, kernel.shared_bytes, kernel.written = True, 1024, (0, 2)
    again = parse_kernel(print_kernel(kernel))
    assert (again.name, again.warps, again.stage) == ("k", 8, kernel.stage)
    assert (again.fast_math, again.shared_bytes, again.written) == (True, 1024, (0, 2))
    assert [p.name for p in again.params] == ["x", "y", "z"]


def test_every_field_of_every_operation_is_printed() -> None:
    op = tile.Gather(tensor=tensor("1"), indices=(argument(),), mask=None, other=None)
    block = Block((), [op, Yield()])
    kernel = Body(op.tensor, op.indices[0]).kernel_unverified()
    kernel.body = block
    assert "tile.gather(%x, [%n], _, _)" in print_kernel(kernel)
    assert isinstance(op, Op)
