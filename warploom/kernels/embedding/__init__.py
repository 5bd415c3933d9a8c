"""Embedding: the rows of a table that belong to token ids."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.embedding import kernel

COLUMNS = 1024


def embed(ids: Any, table: Any, out: Any) -> None:
    """out[t, h] = table[ids[t], h], converted to the dtype of `out`.

    ids [T] i32; table [V, H] and out [T, H] f32, f16 or bf16. An id outside 0 … V−1 gives a row
    of zeros. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("embed", ids=(ids, "T"), table=(table, "V H"), out=(out, "T H"))
    arguments.dtypes("embed", ("i32",), ids=ids)
    arguments.dtypes("embed", arguments.FLOATS, table=table, out=out)
    arguments.apart("embed", out, ids=ids, table=table)
    grid = (size["T"], arguments.ceil_div(size["H"], COLUMNS))
    kernel.embed.launch(grid, pdl=True)(ids, table, out, BH=COLUMNS)
