"""Printing and assertions: every element once, no pads, and the right values."""

from typing import Any

import numpy as np
import pytest

from tests.ir.kernels import Body, argument, lowered
from tests.passes.lowering.test_memory import input_of
from warploom.base.dtypes import f32, i32
from warploom.base.errors import CheckError
from warploom.ir.kernel import Kernel
from warploom.ir.ops import scalar, tile
from warploom.sim.program import TensorArg, prepare


def run(kernel: Kernel, *args: Any, grid: tuple[int, int, int] = (1, 1, 1)) -> list[str]:
    given = [TensorArg(a) if isinstance(a, np.ndarray) else a for a in args]
    return prepare(lowered(kernel)).run(grid, given).printed


def test_scalars_are_printed_once_a_block(capsys: pytest.CaptureFixture[str]) -> None:
    b = Body(argument(), warps=8)
    block = b.emit(scalar.BlockId(axis=0))
    b.build.add(tile.Print(values=(block, b.params[0]), text="at"))
    lines = run(b.kernel(), 41, grid=(3, 1, 1))
    assert [line for line in lines if "41" in line] == lines and len(lines) == 3
    capsys.readouterr()


def test_tiles_are_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(101, 108, dtype=np.int32)
    b = Body(input_of(x, i32))
    row = b.emit(
        tile.Broadcast(
            value=b.emit(tile.InsertAxis(value=b.load(b.params[0], (0, 7)), axis=0)), shape=(2, 7)
        )
    )
    b.build.add(tile.Print(values=(row,), text="row"))
    text = "\n".join(run(b.kernel(), x))
    assert all(text.count(str(n)) == 2 for n in x)
    capsys.readouterr()


def condition(x: np.ndarray) -> Body:
    b = Body(input_of(x, f32))
    t = b.load(b.params[0], *((0, n) for n in x.shape))
    zero = b.emit(tile.Splat(value=b.build.const(0.0, f32), shape=x.shape))
    made = b.emit(tile.Compare(lhs=t, rhs=zero, kind="gt"))
    b.build.add(tile.Assert(condition=made, text="positive"))
    return b


def test_assertions_of_tiles_do_not_look_at_pads() -> None:
    x = np.ones((3, 7), np.float32)
    assert run(condition(x).kernel(), x) == []
    x[2, 6] = 0
    with pytest.raises(CheckError, match="positive"):
        run(condition(x).kernel(), x)


def test_assertions_of_scalars() -> None:
    def kernel() -> Kernel:
        b = Body(argument())
        made = b.emit(scalar.Compare(lhs=b.params[0], rhs=b.build.const(3), kind="lt"))
        b.build.add(tile.Assert(condition=made, text="few"))
        return b.kernel()

    assert run(kernel(), 2) == []
    with pytest.raises(CheckError, match="few"):
        run(kernel(), 3)
