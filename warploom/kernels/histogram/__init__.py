"""How often numbers stand in rows, counted by the blocks of a cluster. For GPUs with clusters
(sm_90)."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.histogram import kernel

MOST_BINS, MOST_BLOCKS = 4096, 16
COMPARED = 16_384  # pairs of a number and a bin at a time
PART = 4096  # numbers of a block, before more blocks share a row


def histogram(x: Any, counts: Any) -> None:
    """counts[t, b] = how many of x[t] are b; numbers below 0 or from B up are not counted.

    x [T, V] i32, counts [T, B] i32, B up to 4096, apart from each other. Every number is compared
    with every bin, without atomics: for few bins. Raises ShapeError T201, T202, LaunchError H007.
    """
    size = arguments.sizes("histogram", x=(x, "T V"), counts=(counts, "T B"))
    arguments.dtypes("histogram", ("i32",), x=x, counts=counts)
    arguments.apart("histogram", counts, x=x)
    arguments.require(
        size["B"] <= MOST_BINS, "histogram", f"B = {size['B']:,}", "B is at most 4096"
    )
    if not size["T"] or not size["B"]:
        return
    blocks, part, step, bins = split(size["V"], size["B"])
    launcher = kernel.histogram.launch(size["T"] * blocks, cluster=(blocks,), warps=8, pdl=True)
    launcher(x, counts, BN=part, STEP=step, BINS=bins)


def split(length: int, count: int) -> tuple[int, int, int, int]:
    """(blocks of a cluster, numbers of each, numbers at a time, bins in equal shares)."""
    blocks = 1
    while length > blocks * PART and blocks < MOST_BLOCKS:
        blocks *= 2
    bins = 4 * MOST_BLOCKS
    while bins < count:
        bins *= 2
    step = min(COMPARED // bins, 64)
    return blocks, arguments.ceil_div(arguments.ceil_div(length, blocks), step) * step, step, bins
