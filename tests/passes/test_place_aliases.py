"""Where allocations that share bytes lie in their region: places, slots within one, alignment."""

import pytest

from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.ops import shared
from warploom.ir.ops.shared_memory import BufferOp
from warploom.ir.parser import parse_kernel
from warploom.passes.lower_tiles import lower_tiles
from warploom.passes.place_aliases import place_aliases
from warploom.passes.plan_shared_memory import plan_shared_memory

HEAD = "kernel @k() stage=tile warps=4 {\n"
TILE = "shared<{slots}{dtype} {shape} @01 ({shape}; {size} B; swizzle {swizzle})>"


def line(
    name: str, dtype: str, shape: str, slots: int = 0, swizzle: int = 0, base: str = ""
) -> str:
    size = {"f32": 4, "bf16": 2, "i8": 1}[dtype]
    behind, base = base.startswith(">"), base.lstrip(">")
    extents = ", ".join(shape.split("x"))
    facts = f"dtype={dtype}, shape=({extents},), slots={slots}, swizzle={swizzle}"
    word = f"shared.alias(%{base})" if base else "shared.alloc()"
    more = f", behind={behind}" if base else ""
    count = f"{slots} of " if slots else ""
    kind = TILE.format(slots=count, dtype=dtype, shape=shape, size=size, swizzle=swizzle)
    return f"  %{name}: {kind} = {word} [{facts}{more}]\n"


def placed(*lines: str) -> dict[str, tuple[int, int, int, int]]:
    """Of each allocation that shares: (region, within, slots in a place, bytes of a place)."""
    kernel = parse_kernel(
        "kernel @k() stage=tile warps=4 {\n" + "".join(lines) + "  control.yield([])\n}"
    )
    return {
        value.name: (place.region, place.within, place.per, place.pitch)
        for value, place in place_aliases(kernel).items()
    }


def test_what_shares_nothing_is_left_alone():
    assert placed(line("a", "f32", "8x32"), line("b", "f32", "8x32")) == {}


def test_side_by_side_on_one():
    found = placed(
        line("a", "f32", "8x32"),
        line("b", "bf16", "4x32", base="a"),
        line("c", "bf16", "8x32", base=">b"),
        line("d", "f32", "1x32"),
    )
    assert found == {"a": (0, 0, 1, 1024), "b": (0, 0, 1, 1024), "c": (0, 256, 1, 1024)}


def test_a_place_is_as_large_as_what_ends_last():
    found = placed(line("a", "f32", "8x32"), line("b", "f32", "8x32", base=">a"))
    assert found == {"a": (0, 0, 1, 2048), "b": (0, 1024, 1, 2048)}


def test_several_slots_on_one():
    found = placed(
        line("a", "f32", "8x32", slots=2),
        line("b", "f32", "2x32", slots=6, base="a"),
        line("c", "f32", "4x32", slots=2, base=">b"),
    )
    assert found == {"a": (0, 0, 1, 1280), "b": (0, 0, 3, 1280), "c": (0, 768, 1, 1280)}


def test_a_swizzle_keeps_its_alignment():
    found = placed(
        line("a", "i8", "3x128"),
        line("b", "bf16", "8x64", swizzle=128, base=">a"),
        line("c", "i8", "1x128", base=">b"),
    )
    assert found == {"a": (0, 0, 1, 3072), "b": (0, 1024, 1, 3072), "c": (0, 2048, 1, 3072)}


def test_trees_of_their_own():
    found = placed(
        line("a", "f32", "8x32"),
        line("b", "f32", "8x32"),
        line("c", "f32", "8x32", base="b"),
        line("d", "f32", "8x32", base="a"),
    )
    assert {name: place[0] for name, place in found.items()} == {"a": 0, "d": 0, "b": 1, "c": 1}


def test_slots_that_do_not_divide_are_refused():
    with pytest.raises(CompileError) as caught:
        placed(line("a", "f32", "8x32", slots=2), line("b", "f32", "8x32", slots=3, base="a"))
    assert caught.value.code == "L025"


def test_the_plan_puts_a_region_down_as_one():
    lines = [
        line("a", "f32", "8x32"),
        line("b", "f32", "8x32", base=">a"),
        line("c", "f32", "8x32"),
        line("d", "bf16", "8x64", base="a"),
    ]
    kernel = parse_kernel(f"{HEAD}{''.join(lines)}  control.yield([])\n}}")
    assert sum(isinstance(op, shared.Allocation) for op in walk(kernel.body)) == 4
    lower_tiles(kernel, SM_90A)
    plan_shared_memory(kernel, SM_90A)
    buffers = {op.result.name: op for op in walk(kernel.body) if isinstance(op, BufferOp)}
    start = buffers["a"].at
    assert [buffers[name].at - start for name in "abd"] == [0, 1024, 0]
    ends = {buffers["c"].at, buffers["c"].at + 1024}
    assert not ends & set(range(start + 1, start + 2048))
    assert [buffers[name].content for name in "abdc"] == [0, 1, 2, 0]
