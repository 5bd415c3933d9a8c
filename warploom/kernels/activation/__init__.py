"""Activations: SiLU·mul, GELU, softmax. Computed in f32, cast to the dtype of `out` at the end."""

from typing import Any

from warploom.base.errors import error
from warploom.interop.operators import Operator, declare, like
from warploom.kernels import arguments
from warploom.kernels.activation import kernel

# Two elements a thread: exponentials and divisions are slow one after the other.
COLUMNS = 256
# Rows up to this length are one tile of a softmax block; longer ones are walked in pieces.
LONGEST_TILE = 8192
PIECE = 4096
# Elements of a softmax block: short rows share a block.
TILE_ELEMENTS = 2048

# What calls with an `activation` understand.
NAMED = {
    "relu": kernel.relu,
    "silu": kernel.silu,
    "gelu": kernel.gelu_by_erf,
    "gelu_tanh": kernel.gelu_by_tanh,
}


def named(call: str, activation: Any) -> Any:
    """The `wl.function` that a word stands for; what is no word stays. Raises LaunchError H021."""
    if not isinstance(activation, str):
        return activation
    if activation not in NAMED:
        raise error(
            "H021",
            f"{call}: there is no activation {activation!r}",
            hint=f"there are {', '.join(NAMED)}; or pass a `wl.function` of an f32 tile",
        )
    return NAMED[activation]


def silu_mul(gate: Any, up: Any, out: Any) -> None:
    """out = gate / (1 + e^−gate) · up.

    gate, up, out [T, F]: f32, f16 or bf16, each its own. `out` may be `gate` or `up`. Raises
    ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("silu_mul", gate=(gate, "T F"), up=(up, "T F"), out=(out, "T F"))
    arguments.dtypes("silu_mul", arguments.FLOATS, gate=gate, up=up, out=out)
    arguments.in_place_or_apart("silu_mul", out, gate=gate, up=up)
    grid = (size["T"], arguments.ceil_div(size["F"], COLUMNS))
    kernel.silu_mul.launch(grid, pdl=True)(gate, up, out, BF=COLUMNS)


def gelu(x: Any, out: Any, approximate: str = "none") -> None:
    """out = ½x(1 + erf(x/√2)); with approximate="tanh" ½x(1 + tanh(√(2/π)(x + 0.044715 x³))).

    x, out [T, F]: f32, f16 or bf16, each its own. `out` may be `x`. Raises ShapeError T201, T202,
    LaunchError H007, H021 for another word.
    """
    if approximate not in ("none", "tanh"):
        raise error(
            "H021",
            f"gelu: approximate={approximate!r} is not possible",
            hint='the exact form is "none", the other one is "tanh"',
        )
    size = arguments.sizes("gelu", x=(x, "T F"), out=(out, "T F"))
    arguments.dtypes("gelu", arguments.FLOATS, x=x, out=out)
    arguments.in_place_or_apart("gelu", out, x=x)
    grid = (size["T"], arguments.ceil_div(size["F"], COLUMNS))
    kernel.gelu.launch(grid, pdl=True)(x, out, TANH=approximate == "tanh", BF=COLUMNS)


def softmax(x: Any, out: Any) -> None:
    """out[r] = e^(x[r] − max x[r]) · 1/Σ e^(x[r] − max x[r]).

    x, out [R, C]: f32, f16 or bf16, each its own. `out` may be `x`. As in torch a row that is all
    −∞, or holds +∞ or NaN, gives NaN. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("softmax", x=(x, "R C"), out=(out, "R C"))
    arguments.dtypes("softmax", arguments.FLOATS, x=x, out=out)
    arguments.in_place_or_apart("softmax", out, x=x)
    rows, columns = size["R"], size["C"]
    if columns > LONGEST_TILE:
        kernel.softmax_long.launch(rows, pdl=True)(x, out, BC=PIECE)
    elif columns:
        block = max(1, min(32, TILE_ELEMENTS // columns))
        kernel.softmax.launch(arguments.ceil_div(rows, block), pdl=True)(
            x, out, BR=block, BC=columns
        )


declare(
    Operator("silu_mul", silu_mul, ("Tensor gate", "Tensor up"), (kernel.silu_mul,), like("gate"))
)
declare(Operator("gelu", gelu, ("Tensor x", 'str approximate="none"'), (kernel.gelu,), like("x")))
declare(
    Operator("softmax", softmax, ("Tensor x",), (kernel.softmax, kernel.softmax_long), like("x"))
)
