"""Functions of long rows, each row split over a cluster of blocks: RMSNorm, LayerNorm, softmax,
cross-entropy. For GPUs with clusters (sm_90).

A row is read once and written once, so this is for rows that one block cannot hold in its
registers; `norm` and `activation` have the kernels of one block a row. Everything is computed in
f32 and cast once, at the end. Rows up to 262,144 elements.
"""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.rows import config, kernel
from warploom.runtime import arrays
from warploom.runtime.arrays import View


def rms_norm(x: Any, weight: Any, out: Any, eps: float) -> None:
    """out[t] = (x[t] · 1/√(Σ x[t]²/H + eps)) · weight, the sum in f32, eps inside the root.

    x [T, H], weight [H], out [T, H]: f32, f16 or bf16, each its own; `out` is apart from them.
    Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("rms_norm", x=(x, "T H"), weight=(weight, "H"), out=(out, "T H"))
    arguments.dtypes("rms_norm", arguments.FLOATS, x=x, weight=weight, out=out)
    _launch("rms_norm", kernel.RMS_NORM, size, x, out, eps, weight=weight)


def layer_norm(x: Any, weight: Any, bias: Any, out: Any, eps: float) -> None:
    """out[t] = (d · 1/√(Σ d²/H + eps)) · weight + bias with d = x[t] − Σ x[t]/H.

    x [T, H], weight [H], bias [H], out [T, H]: f32, f16 or bf16, each its own; `out` is apart from
    them. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes(
        "layer_norm", x=(x, "T H"), weight=(weight, "H"), bias=(bias, "H"), out=(out, "T H")
    )
    arguments.dtypes("layer_norm", arguments.FLOATS, x=x, weight=weight, bias=bias, out=out)
    _launch("layer_norm", kernel.LAYER_NORM, size, x, out, eps, weight=weight, bias=bias)


def softmax(x: Any, out: Any) -> None:
    """out[t] = e^(x[t] − max x[t]) · 1/Σ e^(x[t] − max x[t]).

    x, out [T, H]: f32, f16 or bf16, each its own, apart from each other. As in torch a row that is
    all −∞, or holds +∞ or NaN, gives NaN. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("softmax", x=(x, "T H"), out=(out, "T H"))
    arguments.dtypes("softmax", arguments.FLOATS, x=x, out=out)
    _launch("softmax", kernel.SOFTMAX, size, x, out, 0.0)


def cross_entropy(x: Any, target: Any, out: Any) -> None:
    """out[t] = log Σ e^x[t] − x[t, target[t]]; 0 where the target is negative.

    x [T, H]: f32, f16 or bf16; target [T]: i32, below H; out [T]: f32. Raises ShapeError T201,
    T202, LaunchError H007.
    """
    size = arguments.sizes("cross_entropy", x=(x, "T H"), target=(target, "T"), out=(out, "T"))
    arguments.dtypes("cross_entropy", arguments.FLOATS, x=x)
    arguments.dtypes("cross_entropy", ("f32",), out=out)
    arguments.dtypes("cross_entropy", ("i32",), target=target)
    _launch("cross_entropy", kernel.CROSS_ENTROPY, size, x, out, 0.0, target=target)


def _launch(
    call: str, kind: int, size: dict[str, int], x: Any, out: Any, eps: float, **others: Any
) -> None:
    arguments.apart(call, out, x=x, **others)
    length = size["H"]
    arguments.require(
        length <= config.LONGEST,
        call,
        f"rows of {length:,} elements",
        f"a cluster of 16 blocks holds {config.LONGEST:,} in its registers",
        hint="use the kernels of `norm` and `activation`, which walk a row in pieces",
    )
    if not size["T"] or not length:
        return
    view, result = arrays.read(x, "x"), arrays.read(out, "out")
    factors = [arrays.read(a, name) for name, a in others.items() if name != "target"]
    chosen = config.choose(
        *(kind, length, view.dtype.bytes, sum(f.dtype.bytes for f in factors)),
        copied=_whole(view),
        kept=all(map(_whole, factors)),
        written=result.dtype == view.dtype and _whole(result),
    )
    launch(kind, chosen, x, out, eps, **others)


def launch(kind: int, chosen: config.Config, x: Any, out: Any, eps: float, **others: Any) -> None:
    """A row function with a split of the caller's choice: for measuring. Checks nothing."""
    view = arrays.read(x, "x")
    clusters = chosen.clusters(view.shape[0], arguments.multiprocessors(view))
    launcher = kernel.rows.launch(clusters * chosen.CLUSTER, cluster=(chosen.CLUSTER,), pdl=True)
    launcher(x, out, eps, KIND=kind, **chosen.constants(), **others)


def _whole(view: View) -> bool:
    """Whether a bulk copy can take any part of whole 16 bytes of a row."""
    item = view.dtype.bytes
    steps = [step * item for step in view.strides[:-1]]
    contiguous = view.strides[-1] == 1 or view.shape[-1] == 1
    return contiguous and not any(n % config.UNIT for n in (view.address, *steps))
