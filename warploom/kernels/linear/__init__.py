"""Linear layers for one to eight tokens: memory-bound matrix-vector products."""

from typing import Any

from warploom.interop.operators import Operator, declare
from warploom.kernels import arguments
from warploom.kernels.linear import config, kernel


def linear(x: Any, w: Any, out: Any, bias: Any = None, residual: Any = None) -> None:
    """out[t, n] = Σ_k x[t, k]·w[n, k] + bias[n] + residual[t, n].

    x [T, K], w [N, K], out [T, N], bias [N], residual [T, N] with 1 ≤ T ≤ 8: f32, f16 or bf16,
    each its own. Operands become f32, products and sums are f32, bias and residual are added in
    f32, and the one cast is that to the dtype of `out`. `out` may be `residual`. The order of the
    sum depends on K and the dtype of `w` only, so a row's result does not depend on T or N.
    Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes(
        "linear",
        x=(x, "T K"),
        w=(w, "N K"),
        out=(out, "T N"),
        bias=(bias, "N"),
        residual=(residual, "T N"),
    )
    arguments.dtypes("linear", arguments.FLOATS, x=x, w=w, out=out, bias=bias, residual=residual)
    arguments.apart("linear", out, x=x, w=w, bias=bias)
    arguments.in_place_or_apart("linear", out, residual=residual)
    tokens, rows = size["T"], size["N"]
    arguments.require(
        tokens <= config.MOST_TOKENS,
        "linear",
        f"{tokens} tokens in one call",
        f"at most {config.MOST_TOKENS} fit: their sums stay in registers",
        hint="call it for slices of the tokens",
    )
    if tokens and rows:
        chosen = config.choose(arguments.dtype_name(w), tokens, rows, size["K"])
        grid = arguments.ceil_div(rows, chosen.BN)
        kernel.linear.launch(grid, pdl=True)(
            x, w, out, bias, residual, T=tokens, **chosen.constants()
        )


declare(
    Operator(
        "linear",
        linear,
        ("Tensor x", "Tensor w", "Tensor? bias=None", "Tensor? residual=None"),
        (kernel.linear,),
        lambda given: ((given["x"].shape[0], given["w"].shape[0]), given["x"].dtype),
    )
)
