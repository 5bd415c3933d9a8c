"""Rotary position embedding in both pairings: half-split (Hugging Face) and interleaved (GGUF)."""

from typing import Any

from warploom.base.errors import error
from warploom.interop.operators import Operator, declare, like
from warploom.kernels import arguments
from warploom.kernels.rope import kernel

# Elements of a block's tile of heads.
TILE_ELEMENTS = 512
_KERNELS = {"half": kernel.rope_half, "interleaved": kernel.rope_interleaved}


def rope(x: Any, positions: Any, inv_freq: Any, out: Any, style: str = "half") -> None:
    """Turn pairs of columns (a, b) of each head: (a·cos − b·sin, b·cos + a·sin).

    The angle of pair i of token t is positions[t]·inv_freq[i], an f32 product. The pairs of the
    first R = 2·len(inv_freq) columns are (i, i + R/2) in style "half" and (2i, 2i + 1) in style
    "interleaved"; columns from R on are copied. x [T, H, D], out [T, H, D] f32, f16 or bf16;
    positions [T] i32 from 0; inv_freq [R/2] f32. Computed in f32, cast once to the dtype of `out`,
    which may be `x`. Raises ShapeError T201, T202, LaunchError H007, H021 for another style.
    """
    if style not in _KERNELS:
        raise error(
            "H021", f"rope: style={style!r} is not possible", hint='"half" or "interleaved"'
        )
    size = arguments.sizes(
        "rope",
        x=(x, "T H D"),
        positions=(positions, "T"),
        inv_freq=(inv_freq, "R/2"),
        out=(out, "T H D"),
    )
    arguments.dtypes("rope", arguments.FLOATS, x=x, out=out)
    arguments.dtypes("rope", ("i32",), positions=positions)
    arguments.dtypes("rope", ("f32",), inv_freq=inv_freq)
    arguments.apart("rope", out, positions=positions, inv_freq=inv_freq)
    arguments.in_place_or_apart("rope", out, x=x)
    half, rest = size["R/2"], size["D"] - 2 * size["R/2"]
    arguments.require(
        half >= 1 and rest >= 0,
        "rope",
        f"{half} frequencies for heads of {size['D']}",
        f"R = 2·{half} columns turn, and a head has D = {size['D']}",
    )
    heads = max(1, TILE_ELEMENTS // (2 * half))
    grid = (size["T"], arguments.ceil_div(size["H"], heads))
    _KERNELS[style].launch(grid, pdl=True)(
        x, positions, inv_freq, out, BH=heads, HALF=half, REST=rest
    )


declare(
    Operator(
        "rope",
        rope,
        ("Tensor x", "Tensor positions", "Tensor inv_freq", 'str style="half"'),
        (kernel.rope_half, kernel.rope_interleaved),
        like("x"),
    )
)
