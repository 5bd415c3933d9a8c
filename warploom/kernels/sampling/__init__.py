"""Choosing a token: the index of the largest logit, or of the largest ones, found on the device."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.sampling import kernel

PIECE = 2048
# What a block of `top_k` holds in registers, the largest of its clusters, and the most results.
MOST_ELEMENTS, MOST_BLOCKS, MOST_CHOSEN = 16_384, 16, 64


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


def top_k(x: Any, values: Any, indices: Any) -> None:
    """values[t], indices[t] = the K largest of x[t] and their columns, largest first; NaN counts as
    largest, ties take the lowest column first. For GPUs with clusters (sm_90).

    x [T, V] f32, f16 or bf16, values [T, K] of its dtype, indices [T, K] i32, K up to 64 and V, V
    up to 262,144. A row is read once, by a cluster whose blocks choose among their parts. Raises
    ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("top_k", x=(x, "T V"), values=(values, "T K"), indices=(indices, "T K"))
    arguments.dtypes("top_k", arguments.FLOATS, x=x)
    arguments.dtypes("top_k", (arguments.dtype_name(x),), values=values)
    arguments.dtypes("top_k", ("i32",), indices=indices)
    for name, out in (("values", values), ("indices", indices)):
        arguments.apart(f"top_k (`{name}`)", out, x=x)
    length, chosen = size["V"], size["K"]
    longest = MOST_BLOCKS * MOST_ELEMENTS
    most = min(MOST_CHOSEN, length)
    arguments.require(
        chosen <= most, "top_k", f"K = {chosen}", f"V = {length}, K is at most {most}"
    )
    arguments.require(length <= longest, "top_k", f"V = {length:,}", f"V is at most {longest:,}")
    if not size["T"] or not chosen:
        return
    blocks, part = split(length)
    warps = 16 if part > MOST_ELEMENTS // 2 else 8
    launcher = kernel.top_k.launch(size["T"] * blocks, cluster=(blocks,), warps=warps, pdl=True)
    launcher(x, values, indices, K=chosen, BN=part)


def split(length: int) -> tuple[int, int]:
    """(blocks of a cluster, elements of each) of a row."""
    blocks = 1
    while arguments.ceil_div(length, blocks) > MOST_ELEMENTS // 2 and blocks < MOST_BLOCKS:
        blocks *= 2
    return blocks, arguments.ceil_div(arguments.ceil_div(length, blocks), 8) * 8
