"""What a launch passes, in which order; walking all operations."""

from tests.ir.kernels import Body, argument, tensor
from warploom.base.dtypes import f32
from warploom.ir.kernel import LaunchWord, walk
from warploom.ir.ops import scalar
from warploom.ir.ops.control import For, Yield


def test_launch_words() -> None:
    kernel = Body(tensor("n01"), argument(f32, "eps"), tensor("", name="y"), tensor("nn")).kernel()
    assert list(kernel.words()) == [
        LaunchWord("address", 0),
        LaunchWord("extent", 0, 0),
        LaunchWord("extent", 0, 1),
        LaunchWord("extent", 0, 2),
        LaunchWord("stride", 0, 0),
        LaunchWord("scalar", 1),
        LaunchWord("address", 2),
        LaunchWord("address", 3),
        LaunchWord("extent", 3, 0),
        LaunchWord("extent", 3, 1),
        LaunchWord("stride", 3, 0),
        LaunchWord("stride", 3, 1),
    ]


def test_threads() -> None:
    assert Body(tensor(), warps=3).kernel().threads == 96


def test_walk_is_outer_before_inner_in_program_order() -> None:
    b = Body(argument())
    n = b.params[0]
    with b.loop(n, n, n) as loop:
        b.emit(scalar.Unary(value=loop.index, kind="neg"))
        with b.loop(n, n, n):
            b.emit(scalar.Unary(value=n, kind="abs"))
    kernel = b.kernel()
    shown = [getattr(op, "kind", type(op).__name__) for op in walk(kernel.body)]
    assert shown == ["For", "neg", "For", "abs", "Yield", "Yield", "Yield"]
    assert {type(op) for op in walk(kernel.body)} == {For, Yield, scalar.Unary}
