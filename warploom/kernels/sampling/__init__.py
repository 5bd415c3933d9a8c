"""Choosing a token: the index of the largest logit, found on the device."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.sampling import kernel

PIECE = 2048


def pieces(vocabulary: int) -> int:
    """Into how many pieces a row of logits is cut."""
    return max(1, arguments.ceil_div(vocabulary, PIECE))


def workspace(tokens: int, vocabulary: int, like: Any) -> tuple[Any, Any]:
    """Scratch arrays of `argmax` where `like` lives: values f32 and indices i32, [T, pieces]."""
    shape = (tokens, pieces(vocabulary))
    return arguments.scratch(shape, "f32", like), arguments.scratch(shape, "i32", like)


def argmax(logits: Any, out: Any, scratch: tuple[Any, Any]) -> None:
    """out[t] = the index of the largest of logits[t]; NaN counts as largest, ties take the lowest.

    logits [T, V] f32, f16 or bf16 with V ≥ 1, out [T] i32, scratch from
    `workspace(T, V, like=logits)`, made for T tokens or more. Raises ShapeError T201, T202.
    """
    values, indices = scratch
    size = arguments.sizes(
        "argmax",
        logits=(logits, "T V"),
        out=(out, "T"),
        **{"scratch[0]": (values, "tokens pieces"), "scratch[1]": (indices, "tokens pieces")},
    )
    arguments.dtypes("argmax", arguments.FLOATS, logits=logits)
    arguments.dtypes("argmax", ("i32",), out=out)
    tokens, count = size["T"], pieces(size["V"])
    arguments.require(size["V"] >= 1, "argmax", "there is no largest of no logits", "V = 0")
    arguments.require(
        size["tokens"] >= tokens and size["pieces"] >= count,
        "argmax",
        "`scratch` is too small",
        f"it is made for {size['tokens']} tokens of {size['pieces'] * PIECE} logits",
        f"T = {tokens}, V = {size['V']}",
        hint="scratch = sampling.workspace(T, V, like=logits)",
    )
    width = max(32, 1 << (count - 1).bit_length())
    kernel.piece_argmax.launch((tokens, count), pdl=True)(logits, values, indices, BV=PIECE)
    kernel.pick_piece.launch(tokens, pdl=True)(values, indices, out, count, BP=width)
