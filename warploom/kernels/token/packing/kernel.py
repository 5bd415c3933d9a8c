"""One matrix in the order in which warps read it, a unit a block. `reference.py` has the order."""

import warploom as wl
from warploom.kernels.token.plan import ROWS, UNIT


@wl.kernel
def pack(
    weights: wl.Tensor,
    packed: wl.Tensor,
    first: wl.i32,
    HIGH: wl.const,
    WIDE: wl.const,
    STEPS: wl.const,
):
    """Block (step, w): the unit of warp w in a step. Thread l of a step of the instruction has rows
    l // 4 and l // 4 + 8, and columns 4 · (l mod 4) … of both."""
    step, w = wl.program_id(0), wl.program_id(1)
    n = wl.arange(ROWS * UNIT)
    instruction, lane, element = n // 256, n // 8 % 32, n % 8
    row = lane // 4 + element // 2 % 2 * 8
    column = instruction * 16 + lane % 4 * 4 + element // 4 * 2 + element % 2
    row = row + (step // STEPS * HIGH + w // WIDE) * ROWS
    column = column + (step % STEPS * WIDE + w % WIDE) * UNIT
    unit = wl.gather(weights, (row, column))
    wl.store(packed[first + step, wl.ds(w * (ROWS * UNIT), ROWS * UNIT)], unit)


@pack.example
def _small(make):
    weights, packed = make.randn((70, 256), wl.bf16), make.empty((9, 4096), wl.bf16)
    return pack.launch((6, 4)).call(weights, packed, 3, HIGH=2, WIDE=2, STEPS=2)
