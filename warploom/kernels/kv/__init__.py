"""The cache of keys and values: [S, Hk, D], row s belongs to position s."""

from typing import Any

from warploom.interop.operators import Operator, declare
from warploom.kernels import arguments
from warploom.kernels.kv import kernel

# Elements of a block's tile of heads.
TILE_ELEMENTS = 1024


def append(k: Any, v: Any, k_cache: Any, v_cache: Any, positions: Any) -> None:
    """k_cache[positions[t]] = k[t] and v_cache[positions[t]] = v[t], cast to the cache's dtype.

    k, v [T, Hk, D] and k_cache, v_cache [S, Hk, D] f32, f16 or bf16; positions [T] i32, all
    different. A position outside 0 … S−1 writes nothing. Raises ShapeError T201, T202,
    LaunchError H007 where the arrays share memory.
    """
    size = arguments.sizes(
        "append",
        k=(k, "T Hk D"),
        v=(v, "T Hk D"),
        k_cache=(k_cache, "S Hk D"),
        v_cache=(v_cache, "S Hk D"),
        positions=(positions, "T"),
    )
    arguments.dtypes("append", arguments.FLOATS, k=k, v=v, k_cache=k_cache, v_cache=v_cache)
    arguments.dtypes("append", ("i32",), positions=positions)
    arguments.apart("append", k_cache, k=k, v=v, v_cache=v_cache, positions=positions)
    arguments.apart("append", v_cache, k=k, v=v, positions=positions)
    if size["D"]:
        heads = max(1, TILE_ELEMENTS // size["D"])
        grid = (size["T"], arguments.ceil_div(size["Hk"], heads))
        kernel.append.launch(grid, pdl=True)(
            k, v, k_cache, v_cache, positions, BH=heads, D=size["D"]
        )


declare(
    Operator(
        "kv_append",
        append,
        ("Tensor k", "Tensor v", "Tensor k_cache", "Tensor v_cache", "Tensor positions"),
        (kernel.append,),
    )
)
