"""Addresses against layouts: broken integers are found, whatever broke them."""

import re

import pytest

from tests.ir.kernels import Body, lowered, tensor
from warploom.base.dtypes import bf16, i32
from warploom.ir.accesses import Integers, verify_accesses
from warploom.ir.kernel import Kernel, walk
from warploom.ir.ops import index, shared_memory, tile
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import VerifyError

LAYOUT = "(4x64; l16:1*4 l2:0*1 w2:0*2 r4:1*1)"


def store(row: str = "%row", column: str = "%column", predicate: str = "_", vec: int = 4) -> Kernel:
    """A store of a 4x64 tile by 2 warps; its layout is LAYOUT."""
    extents = "1x1" if vec == 4 else "1x4"
    return parse_kernel(f"""\
kernel @k(%x: tensor<f32, n1, align 16, extent 16>, %p: f32@grid) stage=machine warps=2 written=0 {{
  %zero: i32@grid = scalar.const() [number=0, dtype=i32]
  %two: i32@grid = scalar.const() [number=2, dtype=i32]
  %four: i32@grid = scalar.const() [number=4, dtype=i32]
  %lane: i32[1x1] = index.lane() [rank=2]
  %warp: i32[1x1] = index.warp() [rank=2]
  %c16: i32[1x1] = index.digit(%lane) [divisor=1, extent=16]
  %c8: i32[1x1] = index.digit(%lane) [divisor=1, extent=8]
  %high: i32[1x1] = index.digit(%lane) [divisor=16, extent=0]
  %s4: i32[1x1] = registers.splat(%four) [rank=2]
  %s2: i32[1x1] = registers.splat(%two) [rank=2]
  %s0: i32[1x1] = registers.splat(%zero) [rank=2]
  %first: bool[1x1] = registers.compare(%high, %s0) [kind="eq"]
  %column: i32[1x1] = registers.binary(%c16, %s4) [kind="mul"]
  %wrong: i32[1x1] = registers.binary(%c8, %s4) [kind="mul"]
  %each: i32[1x4] = index.constants() [rank=2, axis=1, numbers=(0, 1, 2, 3,)]
  %columns: i32[1x4] = registers.binary(%column, %each) [kind="add"]
  %w2: i32[1x1] = registers.binary(%warp, %s2) [kind="mul"]
  %row: i32[1x1] = registers.binary(%w2, %high) [kind="add"]
  %stride: i32@grid = scalar.stride(%x) [axis=0]
  %ss: i32[1x1] = registers.splat(%stride) [rank=2]
  %line: i32[1x1] = registers.binary({row}, %ss) [kind="mul"]
  %offset: i32[{extents}] = registers.binary(%line, {column}) [kind="add"]
  %one: f32[1x1] = registers.splat(%p) [rank=2]
  %tile: f32[1x4] {LAYOUT} = registers.spread(%one) [extents=(1, 4,)]
  global_memory.store(%x, %tile, %zero, %offset, {predicate}) [axis=1, vec={vec}, cache=""]
  control.yield([])
}}
""")


def test_right_addresses() -> None:
    verify_accesses(store())
    verify_accesses(store(column="%columns", vec=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": "%wrong"}, "offsets do not follow"),
        ({"row": "%w2"}, "offsets do not follow"),
        ({"column": "%row"}, "a vector along a stride"),
        ({"column": "%s0"}, "a vector along a stride"),
    ],
)
def test_wrong_addresses(change: dict[str, str], message: str) -> None:
    with pytest.raises(VerifyError, match=f"global_memory.store at .*: {message}"):
        verify_accesses(store(**change))


def test_registers_that_are_no_vector() -> None:
    text = print_kernel(store()).replace("r4:1*1)", "r2:1*64 r2:1*1)")
    with pytest.raises(VerifyError, match="4 registers are no vector"):
        verify_accesses(parse_kernel(text))


def test_replicas_and_pads_must_not_be_written() -> None:
    replicated = LAYOUT.replace("4x64", "2x64").replace("l2:0*1", "l2:_").replace("0*2", "0*1")
    text = print_kernel(store(row="%warp")).replace(LAYOUT, replicated)
    with pytest.raises(VerifyError, match="several threads write one element"):
        verify_accesses(parse_kernel(text))
    text = print_kernel(store(row="%warp", predicate="%first")).replace(LAYOUT, replicated)
    verify_accesses(parse_kernel(text))
    padded = print_kernel(store()).replace("(4x64;", "(3x64;")
    with pytest.raises(VerifyError, match="a pad of axis 0 is written"):
        verify_accesses(parse_kernel(padded))


def test_what_depends_on_data_is_left_alone() -> None:
    x, at = tensor(name="x"), tensor("1", i32, name="at")
    b = Body(x, at)
    rows = b.load(at, (0, 16))
    made = tile.Gather(tensor=x, indices=(rows, b.build.const(3)))
    b.store(x, b.emit(tile.InsertAxis(value=b.emit(made), axis=1)), (0, 16), (0, 1))
    verify_accesses(lowered(b.kernel()))


def exchange() -> Kernel:
    x, y = tensor(dtype=bf16), tensor(dtype=bf16, name="y")
    b = Body(x, y)
    t = b.load(x, (0, 8), (0, 96))
    part = b.emit(tile.Slice(value=t, starts=(2, 8), sizes=(3, 40)))
    b.store(y, part, (0, 3), (0, 40))
    return lowered(b.kernel())


def test_a_mutated_constant_is_found_wherever_it_stands() -> None:
    """Each integer of the coordinates matters: change one, and some access fits no more."""
    kernel = exchange()
    verify_accesses(kernel)
    mutants = 0
    for op in walk(kernel.body):
        if isinstance(op, index.Digit):
            for field, number in (("divisor", op.divisor), ("extent", op.extent)):
                if not number:  # the slowest digit has no modulus
                    continue
                mutants += 1
                setattr(op, field, number * 2)
                with pytest.raises(VerifyError):
                    verify_accesses(kernel)
                setattr(op, field, number)
        elif isinstance(op, index.Constants):
            mutants += 1
            numbers = op.numbers
            op.numbers = (*numbers[:-1], numbers[-1] + 1)
            with pytest.raises(VerifyError):
                verify_accesses(kernel)
            op.numbers = numbers
    verify_accesses(kernel)
    assert mutants >= 5


def test_shared_accesses_stay_inside() -> None:
    kernel = exchange()
    buffers = [op for op in walk(kernel.body) if isinstance(op, shared_memory.BufferOp)]
    assert buffers
    text = print_kernel(kernel)
    text = re.sub(r"elements=768", "elements=767", text).replace("<bf16, 768>", "<bf16, 767>")
    with pytest.raises(VerifyError, match="an access outside of 767 elements"):
        verify_accesses(parse_kernel(text))


def test_printed_coordinates_are_the_layouts() -> None:
    b = Body(tensor())
    t = b.load(b.params[0], (0, 3), (0, 10))
    b.build.add(tile.Print(values=(t,), text="t"))
    kernel = lowered(b.kernel())
    text = print_kernel(kernel)
    assert "debug.print_tile" in text
    first = next(op for op in walk(kernel.body) if isinstance(op, index.Digit | index.Constants))
    if isinstance(first, index.Constants):
        first.numbers = tuple(n + 1 for n in first.numbers)
    else:
        first.divisor *= 2
    with pytest.raises(VerifyError):
        verify_accesses(kernel)


def test_integers_are_evaluated() -> None:
    kernel = store()
    integers = Integers(2)
    by_name = {v.name: v for op in walk(kernel.body) for v in op.results}
    row, column = integers.of(by_name["row"]), integers.of(by_name["columns"])
    assert row is not None and column is not None
    assert row[0, 0, 1, 17] == 3
    assert column.shape == (1, 4, 1, 32) and column[0, 3, 0, 17] == 7
    assert integers.of(by_name["one"]) is None, "floats are data"


def test_lowering_runs_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout that lies about its registers is found by the pipeline under WARPLOOM_VERIFY."""
    monkeypatch.setenv("WARPLOOM_VERIFY", "1")
    monkeypatch.setattr(
        "warploom.passes.lowering.context.Lowering._scaled", lambda self, digit, stride, rank: digit
    )
    b = Body(tensor(), tensor(name="y"))
    b.store(b.params[1], b.load(b.params[0], (0, 4), (0, 64)), (0, 4), (0, 64))
    with pytest.raises(VerifyError, match=r"after lower_tiles: global_memory\.load at .*: offsets"):
        lowered(b.kernel())
