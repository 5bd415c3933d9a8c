"""RMSNorm and LayerNorm over the last axis.

Everything is computed in f32 whatever the dtypes of the arrays; the one cast is that to the dtype
of `out`, at the end. `weight` is the factor itself, not 1 + factor.
"""

from typing import Any

from warploom.interop.operators import Operator, declare, like
from warploom.kernels import arguments
from warploom.kernels.norm import kernel

# Rows up to this length are held in registers as one tile; longer ones are walked in pieces.
LONGEST_TILE = 8192
PIECE = 4096
# Rows from which on eight warps share a block.
MANY_WARPS = 2048


def rms_norm(x: Any, weight: Any, out: Any, eps: float) -> None:
    """out[t] = (x[t] · 1/√(Σ x[t]²/H + eps)) · weight, the sum in f32, eps inside the root.

    x [T, H], weight [H], out [T, H]: f32, f16 or bf16, each its own. `out` may be `x`. `eps` is
    rounded to f32. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("rms_norm", x=(x, "T H"), weight=(weight, "H"), out=(out, "T H"))
    arguments.dtypes("rms_norm", arguments.FLOATS, x=x, weight=weight, out=out)
    arguments.apart("rms_norm", out, weight=weight)
    arguments.in_place_or_apart("rms_norm", out, x=x)
    if size["H"]:
        launcher = kernel.rms_norm.launch(size["T"], pdl=True, warps=_warps(size["H"]))
        launcher(x, weight, out, eps, **_pieces(size["H"]))


def layer_norm(x: Any, weight: Any, bias: Any, out: Any, eps: float) -> None:
    """out[t] = (d · 1/√(Σ d²/H + eps)) · weight + bias with d = x[t] − Σ x[t]/H.

    x [T, H], weight [H], bias [H], out [T, H]: f32, f16 or bf16, each its own. `out` may be `x`.
    Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes(
        "layer_norm", x=(x, "T H"), weight=(weight, "H"), bias=(bias, "H"), out=(out, "T H")
    )
    arguments.dtypes("layer_norm", arguments.FLOATS, x=x, weight=weight, bias=bias, out=out)
    arguments.apart("layer_norm", out, weight=weight, bias=bias)
    arguments.in_place_or_apart("layer_norm", out, x=x)
    if size["H"]:
        launcher = kernel.layer_norm.launch(size["T"], pdl=True, warps=_warps(size["H"]))
        launcher(x, weight, bias, out, eps, **_pieces(size["H"]))


def _pieces(length: int) -> dict[str, Any]:
    whole = length <= LONGEST_TILE
    return {"BH": length if whole else PIECE, "WHOLE": whole}


def _warps(length: int) -> int:
    return 8 if length >= MANY_WARPS else 4


declare(
    Operator(
        "rms_norm",
        rms_norm,
        ("Tensor x", "Tensor weight", "float eps"),
        (kernel.rms_norm,),
        like("x"),
    )
)
declare(
    Operator(
        "layer_norm",
        layer_norm,
        ("Tensor x", "Tensor weight", "Tensor bias", "float eps"),
        (kernel.layer_norm,),
        like("x"),
    )
)
