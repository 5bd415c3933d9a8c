"""Shared tiles, copies and products at the machine stage: addresses, boxes, descriptor numbers."""

import itertools

import numpy as np
import pytest

from tests.passes.text import kernel
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.ir.accesses import Integers
from warploom.ir.kernel import Kernel, TensorMap, walk
from warploom.ir.layout.shared import SharedLayout
from warploom.ir.op import Value
from warploom.ir.ops import mbarrier, scalar, shared_memory, sync, tma, wgmma
from warploom.ir.parser import parse_kernel
from warploom.ir.types import Regs
from warploom.ir.verifier import verify_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.lower_tiles import lower_tiles

PARAMS = (
    "%x: tensor<bf16, n1, align 16, extent 16>, %y: tensor<bf16, 1n, align 16, extent 16>, "
    "%f: tensor<f32, n1, align 16, extent 16>, %z3: tensor<bf16, nn1, align 16, extent 16>, "
    "%s: tensor<bf16, nn, align 16, extent 16>, %n: i32@grid"
)


def lowered(body: str, options: str = "warps=4") -> Kernel:
    """A kernel from its tile stage to the machine stage, before anything is planned."""
    made = parse_kernel(kernel(body, "tile", options, PARAMS))
    verify_kernel(made)
    assign_layouts(made, SM_90A)
    lower_tiles(made, SM_90A)
    verify_kernel(made)
    return made


def found(made: Kernel, kind: type) -> list:
    return [op for op in walk(made.body) if isinstance(op, kind)]


def const(name: str, number: int) -> str:
    return f"%{name}: i32@grid = scalar.const() [number={number}, dtype=i32]\n"


def shared_type(dtype: str, shape: str, stored: str, size: int, swizzle: int, order: str) -> str:
    return f"shared<{dtype} {shape} @{order} ({stored}; {size} B; swizzle {swizzle})>"


class Tile:
    """The text of a ring of tiles, of one slot, and of views of it."""

    def __init__(self, dtype: str, rows: int, columns: int, swizzle: int, slots: int = 3) -> None:
        size = {"bf16": 2, "f32": 4}[dtype]
        self.dtype, self.swizzle, self.slots = dtype, swizzle, slots
        self.layout = SharedLayout((rows, columns), size, swizzle)
        self.kind = (f"{rows}x{columns}", size, swizzle)
        stored, size, swizzle = self.kind
        ring = f"shared<{slots} of {dtype} {stored} @01 ({stored}; {size} B; swizzle {swizzle})>"
        self.text = (
            f"%ring: {ring} = shared.alloc() [dtype={dtype}, shape=({rows}, {columns},), "
            f"slots={slots}, swizzle={swizzle}]\n"
        )

    def view(self, shape: tuple[int, int], order: str = "01") -> str:
        stored, size, swizzle = self.kind
        extents = "x".join(map(str, shape))
        return shared_type(self.dtype, extents, stored, size, swizzle, order)

    def slot(self, number: int) -> str:
        return const("slot", number) + (
            f"%t: {self.view(self.layout.shape)} = shared.slot(%ring, %slot)\n"  # type: ignore[arg-type]
        )


CASES = [
    # dtype, shape, swizzle, window (row, column, rows, columns), transposed
    ("bf16", (64, 64), 128, (0, 0, 64, 64), False),
    ("bf16", (64, 64), 128, (0, 0, 64, 64), True),
    ("bf16", (64, 128), 128, (16, 64, 32, 64), False),
    ("bf16", (64, 128), 128, (8, 0, 8, 128), True),
    ("bf16", (20, 128), 128, (8, 64, 8, 64), False),
    ("bf16", (32, 32), 64, (8, 0, 16, 32), False),
    ("bf16", (32, 96), 64, (0, 32, 32, 64), True),
    ("bf16", (32, 16), 32, (8, 0, 24, 16), False),
    ("f32", (16, 64), 128, (8, 32, 8, 32), False),
    ("f32", (16, 24), 32, (0, 8, 16, 8), True),
    ("f32", (12, 20), 0, (3, 4, 5, 12), False),
    ("f32", (12, 20), 0, (3, 4, 5, 12), True),
]


@pytest.mark.parametrize(("dtype", "shape", "swizzle", "window", "transposed"), CASES)
@pytest.mark.parametrize("warps", [1, 4])
def test_every_element_is_where_the_layout_has_it(dtype, shape, swizzle, window, transposed, warps):
    """The integers are evaluated for every warp, lane and register."""
    tile = Tile(dtype, *shape, swizzle)
    row, column, rows, columns = window
    view = (columns, rows) if transposed else (rows, columns)
    starts = ("c", "r") if transposed else ("r", "c")
    body = tile.text + tile.slot(2) + const("r", row) + const("c", column)
    whole = "%t"
    if transposed:
        body += f"%v: {tile.view(shape[::-1], '10')} = shared.permute(%t) [order=(1, 0,)]\n"
        whole = "%v"
    kind = tile.view(view, "10" if transposed else "01")
    body += (
        f"%w: {kind} = shared.window({whole}, [%{starts[0]}, %{starts[1]}]) "
        f"[sizes=({view[0]}, {view[1]},)]\n"
        f"%q: {dtype}<{view[0]}x{view[1]}> = shared.load(%w)\n"
        "shared.store(%w, %q)\n"
    )
    made = lowered(body, f"warps={warps}")
    (load,), (store,) = found(made, shared_memory.Load), found(made, shared_memory.Store)
    slot_bytes = -(-tile.layout.bytes // tile.layout.align) * tile.layout.align
    for op, value in ((load, load.result), (store, store.value)):
        held = value.type
        assert isinstance(held, Regs) and held.layout is not None
        offsets = Integers(warps).of(op.offset)
        assert offsets is not None
        seen = set()
        groups = [n // (op.vec if a == op.axis else 1) for a, n in enumerate(held.extents)]
        offsets = np.broadcast_to(offsets, (*groups, warps, 32))
        places = [held.layout.coordinates(axis) for axis in (0, 1)]
        for i, j, w, lane, k in itertools.product(
            range(groups[0]), range(groups[1]), range(warps), range(32), range(op.vec)
        ):
            registers = [n * op.vec + k if axis == op.axis else n for axis, n in enumerate((i, j))]
            at = tuple(int(places[a][registers[a], w, lane]) for a in (0, 1))
            if any(c >= n for c, n in zip(at, view, strict=True)):
                continue
            inner = at[::-1] if transposed else at
            byte = tile.layout.byte_of(row + inner[0], column + inner[1])
            byte += 2 * slot_bytes
            assert (int(offsets[i, j, w, lane]) + k) * tile.layout.itemsize == byte
            seen.add(at)
        assert len(seen) == rows * columns, "all elements of the window"


def test_accesses_are_as_wide_as_chunks():
    tile = Tile("bf16", 64, 64, 128)
    body = tile.text + tile.slot(0) + "%q: bf16<64x64> = shared.load(%t)\nshared.store(%t, %q)\n"
    (load,) = found(lowered(body), shared_memory.Load)
    assert (load.axis, load.vec) == (1, 8)


def test_barriers_are_made_before_they_are_used():
    made = lowered(
        const("two", 2) + "%bars: barriers<3> = mbarrier.alloc() [count=3, arrivals=5]\n"
        "%b: barriers<1> = mbarrier.at(%bars, %two)\nmbarrier.wait(%b, %n)\n"
    )
    names = [op.OPCODE for op in walk(made.body) if "barrier" in op.OPCODE]
    assert names == [
        *["mbarrier.init"] * 3,
        "sync.fence_barrier_init",
        "sync.barrier",
        "mbarrier.wait",
    ]
    inits = found(made, mbarrier.Init)
    assert [byte(op.barrier) for op in inits] == [0, 8, 16]
    assert {op.arrivals for op in inits} == {5}
    assert byte(found(made, mbarrier.Wait)[0].barrier) == 16
    assert found(made, sync.Barrier)[0].threads == 128


def byte(address: Value) -> int:
    """Bytes from the start of the buffer."""
    op = address.owner
    if isinstance(op, shared_memory.Address):
        return 0
    if isinstance(op, scalar.Const):
        return int(op.number)
    assert isinstance(op, scalar.Binary)
    a, b = byte(op.lhs), byte(op.rhs)
    return {"add": a + b, "mul": a * b, "floordiv": a // b if b else 0}[op.kind]


def coordinates(op: tma.LoadBox | tma.StoreBox) -> list[int | str]:
    """Numbers, and names of arguments with what is added."""

    def read(value: Value) -> int | str:
        made = value.owner
        if isinstance(made, scalar.Const):
            return int(made.number)
        if isinstance(made, scalar.Binary):
            return f"{read(made.lhs)} + {read(made.rhs)}"
        return value.name

    return [read(v) for v in op.coordinates]


def copied(tile: str, window: str, sizes: str, tensor: str = "x", extra: str = "") -> Kernel:
    """A copy of `%t` to a window of a tensor, and back."""
    return lowered(
        "%bar: barriers<1> = mbarrier.alloc() [count=1, arrivals=1]\n"
        + const("c0", 0)
        + const("c7", 7)
        + tile
        + extra
        + f'control.one_thread() [per="role"] {{\n'
        f'tma.load(%{tensor}, [{window}], %v, %bar, _, _, _) [sizes={sizes}, cache=""]\n'
        "control.yield([])\n}\n"
    )


def test_one_box_a_panel():
    tile = Tile("bf16", 64, 128, 128, slots=2)
    text = tile.text + tile.slot(1).replace("%t:", "%v:")
    made = copied(text, "%c7, %n", "(64, 128,)")
    boxes = found(made, tma.LoadBox)
    assert made.maps == (TensorMap(0, (1, 0), (64, 64), 128),)
    assert [coordinates(op) for op in boxes] == [["n", 7], ["n + 64", 7]]
    assert [byte(op.address) for op in boxes] == [16384, 16384 + 8192]
    assert [op.bytes for op in boxes] == [8192, 8192]
    assert {op.map for op in boxes} == {0}


def test_a_tile_without_panels_is_one_box():
    tile = Tile("f32", 16, 20, 0)
    made = copied(
        tile.text + tile.slot(0).replace("%t:", "%v:"), "%c0, %c7", "(16, 20,)", tensor="f"
    )
    (box,) = found(made, tma.LoadBox)
    assert made.maps == (TensorMap(2, (1, 0), (20, 16), 0),)
    assert (coordinates(box), box.bytes) == ([7, 0], 1280)


def test_a_tensor_that_is_contiguous_the_other_way():
    tile = Tile("bf16", 64, 64, 128)
    text = tile.text + tile.slot(0)
    view = f"%v: {tile.view((64, 64), '10')} = shared.permute(%t) [order=(1, 0,)]\n"
    made = copied(text, "%n, %c7", "(64, 64,)", tensor="y", extra=view)
    (box,) = found(made, tma.LoadBox)
    assert made.maps == (TensorMap(1, (0, 1), (64, 64), 128),)
    assert coordinates(box) == ["n", 7]


def test_a_window_of_a_shared_tile_is_copied_where_it_lies():
    tile = Tile("bf16", 64, 128, 128)
    text = tile.text + tile.slot(0) + const("r", 16)
    view = f"%v: {tile.view((32, 128))} = shared.window(%t, [%r, %c0]) [sizes=(32, 128,)]\n"
    made = copied(text, "%c0, %n", "(32, 128,)", extra=view)
    assert made.maps == (TensorMap(0, (1, 0), (64, 32), 128),)
    boxes = found(made, tma.LoadBox)
    assert [byte(op.address) for op in boxes] == [16 * 128, 16 * 128 + 8192]
    assert {op.bytes for op in boxes} == {4096}


def test_indexed_axes_are_single_and_last():
    tile = Tile("bf16", 64, 64, 128)
    text = tile.text + tile.slot(0).replace("%t:", "%v:")
    made = copied(text, "%c0, %n, %c7", "(64, None, 64,)", tensor="z3")
    assert made.maps == (TensorMap(3, (2, 0, 1), (64, 64, 1), 128),)
    assert coordinates(found(made, tma.LoadBox)[0]) == [7, 0, "n"]


def test_equal_copies_share_a_descriptor():
    tile = Tile("bf16", 64, 64, 128)
    text = tile.text + tile.slot(0).replace("%t:", "%v:")
    again = (
        'control.one_thread() [per="role"] {\n'
        'tma.load(%x, [%n, %c0], %v, %bar, _, _, _) [sizes=(64, 64,), cache=""]\n'
        "control.yield([])\n}\n"
    )
    made = copied(text, "%c0, %n", "(64, 64,)", extra=again)
    assert len(made.maps) == 1 and len(found(made, tma.LoadBox)) == 2


@pytest.mark.parametrize(
    ("tile", "window", "sizes", "tensor", "message"),
    [
        (Tile("f32", 8, 264, 0), "%c0, %c0", "(8, 264,)", "f", "at most 256"),
        (Tile("bf16", 264, 64, 128), "%c0, %c0", "(264, 64,)", "x", "at most 256"),
        (Tile("f32", 8, 2, 0), "%c0, %c0", "(8, 2,)", "f", "rows of 8 bytes"),
        (Tile("bf16", 64, 64, 128), "%c0, %c0", "(64, 64,)", "y", "contiguous along axis 0"),
        (Tile("bf16", 64, 64, 128), "%c0, %c0", "(64, 64,)", "s", "no axis of `s`"),
    ],
)
def test_boxes_that_cannot_be(tile, window, sizes, tensor, message):
    with pytest.raises(CompileError) as caught:
        copied(tile.text + tile.slot(0).replace("%t:", "%v:"), window, sizes, tensor)
    assert caught.value.code == "L010"
    assert message in str(caught.value)


# ---- products -----------------------------------------------------------------------------------


def product(a: Tile, b: Tile, m: int, n: int, k: int, a_t: bool, b_t: bool) -> list[wgmma.Mma]:
    """The instructions of one product; a_t, b_t: K is the slow axis as stored."""
    body = ""
    for name, tile, shape, transposed in (
        ("a", a, (m, k), a_t),
        ("b", b, (k, n), not b_t),
    ):
        text = tile.text + tile.slot(0)
        for old in ("ring", "slot", "t"):
            text = text.replace(f"%{old}:", f"%{old}{name}:").replace(f"%{old},", f"%{old}{name},")
            text = text.replace(f"%{old})", f"%{old}{name})")
        body += text
        order = "10" if transposed else "01"
        axes = "(1, 0,)" if transposed else "(0, 1,)"
        body += f"%{name}: {tile.view(shape, order)} = shared.permute(%t{name}) [order={axes}]\n"
    body += (
        "%zero: f32@grid = scalar.const() [number=0.0, dtype=f32]\n"
        f"%acc: f32<{m}x{n}> = tile.splat(%zero) [shape=({m}, {n},)]\n"
        f"%p: f32<{m}x{n}~> = wgmma.begin(%acc)\n"
        f"%d: f32<{m}x{n}~> = wgmma.dot(%a, %b, %p)\n"
        f"%r: f32<{m}x{n}> = wgmma.wait(%d) [pending=0]\n"
        f"tile.store(%f, %r, [%slota, %slota]) [sizes=({m}, {n},)]\n"
    )
    made = lowered(body)
    names = [op.OPCODE for op in walk(made.body) if op.OPCODE.startswith("wgmma")]
    assert names[0] == "wgmma.fence" and names[-2:] == ["wgmma.commit", "wgmma.wait_group"]
    assert set(names[1:-2]) == {"wgmma.mma"}
    return found(made, wgmma.Mma)


def descriptor(op: wgmma.Mma, side: str) -> tuple[int, int, int, bool]:
    return tuple(getattr(op, f"{side}_{x}") for x in ("swizzle", "lead", "stride", "transposed"))  # type: ignore[return-value]


@pytest.mark.parametrize(("swizzle", "width"), [(128, 64), (64, 32), (32, 16)])
def test_operands_with_k_along_the_rows(swizzle: int, width: int) -> None:
    """K-major: steps of 32 bytes within a panel, then the next panel; groups of 8 rows apart."""
    k = 2 * width
    a, b = Tile("bf16", 128, k, swizzle), Tile("bf16", 48, k, swizzle)
    ops = product(a, b, 128, 48, k, False, False)
    assert len(ops) == k // 16 * 2
    expected = []
    for at in range(0, k, 16):
        panel, inside = divmod(at, width)
        for block in range(2):
            a = panel * 128 * swizzle + block * 64 * swizzle + inside * 2
            expected.append((block, a, panel * 48 * swizzle + inside * 2))
    assert [(op.block, byte(op.a), byte(op.b)) for op in ops] == expected
    for op in ops:
        assert op.n == 48
        for side in "ab":
            span, _, stride, transposed = descriptor(op, side)
            assert (span, stride, transposed) == (swizzle, 8 * swizzle, False)


@pytest.mark.parametrize(("swizzle", "width"), [(128, 64), (64, 32), (32, 16)])
def test_operands_with_k_down_the_rows(swizzle: int, width: int) -> None:
    """M- or N-major: a step is 16 rows; `lead` leads to the next panel of columns."""
    n = 128 if width == 64 else 96
    a, b = Tile("bf16", 32, 128, swizzle), Tile("bf16", 32, n, swizzle)
    ops = product(a, b, 128, n, 32, True, True)
    panel = 32 * swizzle
    expected = [
        (block, at * swizzle + block * (64 // width) * panel, at * swizzle)
        for at in (0, 16)
        for block in (0, 1)
    ]
    assert [(op.block, byte(op.a), byte(op.b)) for op in ops] == expected
    for op in ops:
        for side in "ab":
            assert descriptor(op, side) == (swizzle, panel, 8 * swizzle, True)


def test_the_result_of_one_instruction_is_the_next_ones_accumulator() -> None:
    ops = product(Tile("bf16", 64, 64, 128), Tile("bf16", 8, 64, 128), 64, 8, 64, False, False)
    for first, second in itertools.pairwise(ops):
        assert second.acc is first.result
    assert ops[0].acc.type == ops[-1].result.type


def test_an_operand_without_a_swizzle_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        product(Tile("bf16", 64, 64, 128), Tile("bf16", 8, 64, 0), 64, 8, 64, False, False)
    assert caught.value.code == "L011" and "operand b" in str(caught.value)
