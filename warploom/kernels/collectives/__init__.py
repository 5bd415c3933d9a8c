"""Collectives as calls: all-reduces over clusters or all blocks, the exchange of a vector. Kernels
have them as `wl.all_reduce(…)` and so on; these are for measuring, and for trying them."""

from typing import Any

import warploom as wl
from warploom.kernels import arguments
from warploom.kernels.collectives import kernel

DTYPES = ("f32", "f16", "bf16", "i32")


def all_reduce(
    x: Any, out: Any, op: str = "sum", cluster: int = 1, rounds: int = 1, scale: float = 1.0
) -> None:
    """out[b] is x[b] reduced over its cluster of `cluster` neighbouring rows, times `scale`;
    `rounds` times, each on the result of the one before.

    x, out [B, N] f32, f16, bf16 or i32, N up to 64 KB; B is a multiple of `cluster`; with
    `cluster=0` all B blocks take part, which have to run at the same time. Raises ShapeError T201,
    T202, LaunchError H007, H031, H041.
    """
    size = arguments.sizes("all_reduce", x=(x, "B N"), out=(out, "B N"))
    arguments.dtypes("all_reduce", DTYPES, x=x, out=out)
    arguments.apart("all_reduce", out, x=x)
    if not size["B"] or not size["N"]:
        return
    over = wl.cluster if cluster else wl.grid
    launch = kernel.all_reduce.launch(
        size["B"], cluster=(max(cluster, 1), 1, 1), cooperative=not cluster
    )
    factor = int(scale) if scale == int(scale) else scale
    launch(x, out, rounds, OP=op, OVER=over, SCALE=factor, N=size["N"])


def exchange(x: Any, out: Any, share: int, rounds: int = 1, protocol: str = "") -> None:
    """All B blocks exchange the vector x, block b having elements from b · `share` on; out[b] is
    what block b then holds. In further rounds each passes on what its successor had, plus 1.

    x [N] f32 up to 64 KB, out [B, N] f32, B · share ≥ N. Raises ShapeError T201, T202, LaunchError
    H007, H041.
    """
    size = arguments.sizes("exchange", x=(x, "N"), out=(out, "B N"))
    arguments.dtypes("exchange", ("f32",), x=x, out=out)
    arguments.apart("exchange", out, x=x)
    if size["B"] and size["N"]:
        launch = kernel.exchange.launch(size["B"], warps=kernel.WARPS, cooperative=True)
        launch(x, out, rounds, SHARE=share, N=size["N"], WAY=protocol)
