"""Decode attention: each token attends to the keys of the cache up to its own position."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.attention import config, kernel


def workspace(tokens: int, heads: int, head_dim: int, keys: int, like: Any) -> tuple[Any, Any, Any]:
    """Scratch arrays of `decode` for up to `keys` cached keys, where `like` lives.

    Weighted values [T, Hq, P, D], maxima [T, Hq, P] and sums [T, Hq, P], f32, one part for each
    256 keys.
    """
    parts = max(1, arguments.ceil_div(keys, config.SPLIT))
    shapes = (tokens, heads, parts, head_dim), (tokens, heads, parts), (tokens, heads, parts)
    first, second, third = (arguments.scratch(shape, "f32", like) for shape in shapes)
    return first, second, third


def decode(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    positions: Any,
    out: Any,
    scale: float,
    partial: tuple[Any, Any, Any],
) -> None:
    """out[t, h] = softmax(scale · q[t, h]·Kᵀ)·V over keys 0 … positions[t], of head h // (Hq/Hk).

    q [T, Hq, D], k_cache and v_cache [S, Hk, D] with Hk dividing Hq, out [T, Hq, D]: f32, f16 or
    bf16, each its own; positions [T] i32; partial from `workspace(T, Hq, D, S, like=q)`, made for
    these sizes or for more tokens and keys. Computed
    in f32, cast once to the dtype of `out`. A negative position means no key and gives zeros; one
    past the cache means all S keys. The grid follows from S, so a captured launch stays valid
    while positions grow; blocks without keys leave at once. The result does not depend on S or T.
    Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes(
        "decode",
        q=(q, "T Hq D"),
        k_cache=(k_cache, "S Hk D"),
        v_cache=(v_cache, "S Hk D"),
        positions=(positions, "T"),
        out=(out, "T Hq D"),
        **{
            "partial[0]": (partial[0], "tokens Hq P D"),
            "partial[1]": (partial[1], "tokens Hq P"),
            "partial[2]": (partial[2], "tokens Hq P"),
        },
    )
    arguments.dtypes("decode", arguments.FLOATS, q=q, k_cache=k_cache, v_cache=v_cache, out=out)
    arguments.dtypes("decode", ("i32",), positions=positions)
    arguments.apart("decode", out, k_cache=k_cache, v_cache=v_cache, positions=positions)
    queries, keys, parts = size["Hq"], size["Hk"], size["P"]
    arguments.require(
        keys >= 1 and queries % keys == 0,
        "decode",
        f"{queries} query heads do not divide over {keys} key heads",
    )
    arguments.require(
        size["tokens"] >= size["T"] and parts * config.SPLIT >= size["S"],
        "decode",
        "`partial` is too small",
        f"it is made for {size['tokens']} tokens and {parts * config.SPLIT} keys",
        f"T = {size['T']}, and the cache holds {size['S']}",
        hint="partial = attention.workspace(T, Hq, D, S, like=q)",
    )
    if not size["T"] or not queries or not size["D"]:
        return
    chosen = config.choose(queries // keys, size["D"])
    # Not `parts`: a workspace may be larger than this cache needs.
    grid = (max(1, arguments.ceil_div(size["S"], config.SPLIT)), keys * chosen.groups, size["T"])
    kernel.decode_split.launch(grid, pdl=True)(
        q,
        k_cache,
        v_cache,
        positions,
        *partial,
        scale,
        GROUPS=chosen.groups,
        HEADS=chosen.heads,
        D=size["D"],
        BN=chosen.BN,
        DEPTH=config.DEPTH,
        SPLIT=config.SPLIT,
    )
    kernel.decode_merge.launch((queries, size["T"]), pdl=True)(
        *partial, positions, out, size["S"], D=size["D"], BS=config.MERGE, SPLIT=config.SPLIT
    )


def decode_in_cluster(
    q: Any, k_cache: Any, v_cache: Any, positions: Any, out: Any, scale: float, cluster: int = 8
) -> None:
    """As `decode`, in one launch without scratch: the keys of a token are split over the `cluster`
    blocks of a cluster, whose results are merged through distributed shared memory. For GPUs with
    clusters (sm_90).

    Shapes, dtypes and positions as in `decode`. The result does not depend on S or T; `cluster`,
    1 to 16, changes where sums are rounded. Raises ShapeError T201, T202, LaunchError H007, H030,
    H031.
    """
    call = "decode_in_cluster"
    size = arguments.sizes(
        call,
        q=(q, "T Hq D"),
        k_cache=(k_cache, "S Hk D"),
        v_cache=(v_cache, "S Hk D"),
        positions=(positions, "T"),
        out=(out, "T Hq D"),
    )
    arguments.dtypes(call, arguments.FLOATS, q=q, k_cache=k_cache, v_cache=v_cache, out=out)
    arguments.dtypes(call, ("i32",), positions=positions)
    arguments.apart(call, out, q=q, k_cache=k_cache, v_cache=v_cache, positions=positions)
    queries, keys = size["Hq"], size["Hk"]
    arguments.require(
        keys >= 1 and queries % keys == 0,
        call,
        f"{queries} query heads do not divide over {keys} key heads",
    )
    if not size["T"] or not queries or not size["D"]:
        return
    chosen = config.choose(queries // keys, size["D"])
    grid = (cluster, keys * chosen.groups, size["T"])
    kernel.decode_cluster.launch(grid, cluster=(cluster, 1, 1), pdl=True)(
        *(q, k_cache, v_cache, positions, out, scale),
        GROUPS=chosen.groups,
        HEADS=chosen.heads,
        D=size["D"],
        BN=chosen.BN,
        DEPTH=config.DEPTH,
    )
