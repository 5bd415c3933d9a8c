"""Addition of two arrays, as in a residual connection."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.elementwise import kernel

COLUMNS = 1024


def add(a: Any, b: Any, out: Any) -> None:
    """out = a + b, added in f32 and cast to the dtype of `out`.

    a, b, out [R, C] or [C]: f32, f16 or bf16, each its own. `out` may be `a` or `b`. Raises
    ShapeError T201, T202, LaunchError H007.
    """
    axes = "C" if len(out.shape) == 1 else "R C"
    size = arguments.sizes("add", a=(a, axes), b=(b, axes), out=(out, axes))
    arguments.dtypes("add", arguments.FLOATS, a=a, b=b, out=out)
    arguments.in_place_or_apart("add", out, a=a, b=b)
    pieces = arguments.ceil_div(size["C"], COLUMNS)
    if "R" in size:
        kernel.add.launch((size["R"], pieces), pdl=True)(a, b, out, BC=COLUMNS)
    else:
        kernel.add_vectors.launch(pieces, pdl=True)(a, b, out, BC=COLUMNS)
