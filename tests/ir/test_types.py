"""Types: equality without annotations, text, broadcasting."""

import pytest

from warploom.base.dtypes import bf16, f32, i32
from warploom.ir.layout.natural import natural
from warploom.ir.types import (
    Buffer,
    Regs,
    Scalar,
    Tensor,
    TensorClass,
    Tile,
    Uniformity,
    broadcast,
)


def test_a_layout_is_an_annotation() -> None:
    one, two = (Tile(f32, (8, 80), natural((8, 80), v, 4)) for v in (4, 1))
    assert one.layout != two.layout
    assert one == two == Tile(f32, (8, 80)) and hash(one) == hash(two)
    assert Regs(f32, (1, 4), one.layout) == Regs(f32, (1, 4))
    assert Tile(f32, (8,)) != Tile(bf16, (8,)) != Tile(bf16, (9,))


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (Scalar(i32, Uniformity.WARP), "i32@warp"),
        (Tile(f32, ()), "f32<>"),
        (Tile(f32, (4, 80)), "f32<4x80>"),
        (Regs(bf16, (1, 8)), "bf16[1x8]"),
        (Buffer(f32, 128), "buffer<f32, 128>"),
        (Tensor(f32, 0, TensorClass("")), "tensor<f32, -, align 16, extent 16>"),
        (
            Tensor(f32, 2, TensorClass("n1", 4, 2, aliased=True, wide=True)),
            "tensor<f32, n1, align 4, extent 2, aliased, wide>",
        ),
    ],
)
def test_text(type: object, text: str) -> None:
    assert str(type) == text


@pytest.mark.parametrize(
    ("extents", "common"),
    [
        (((),), ()),
        (((2, 3), (1, 3), (2, 1)), (2, 3)),
        (((1,), (1,)), (1,)),
        (((2,), (3,)), None),
        (((2,), (2, 1)), None),
    ],
)
def test_broadcast(extents: tuple[tuple[int, ...], ...], common: tuple[int, ...] | None) -> None:
    assert broadcast(*extents) == common


def test_uniformity_is_ordered() -> None:
    assert Uniformity.GRID < Uniformity.BLOCK < Uniformity.ROLE < Uniformity.WARP
