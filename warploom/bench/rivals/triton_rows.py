"""The rival of RMSNorm written in Triton: a row a program, walked in blocks, or held as one.

Of a few blocks the one that is fastest is kept. Knows nothing of ours; graphs and operands are
those of the rivals in torch.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from warploom.bench.rivals.row_blocks import BLOCKS
from warploom.bench.rivals.torch_gemm import Graph
from warploom.bench.rivals.torch_rows import EPS, Operands

# Seconds of launches that a block is judged by.
_TRIED_S = 2e-3


@triton.jit
def _rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    if WHOLE:
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(v * v, 0) / columns + eps)
        w = tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(out + row + at, (v * scale * w).to(out.dtype.element_ty), mask=at < columns)
    else:
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            v = tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
            total += v * v
        scale = 1.0 / tl.sqrt(tl.sum(total, 0) / columns + eps)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            v = tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
            w = tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)
            tl.store(out + row + at, (v * scale * w).to(out.dtype.element_ty), mask=at < columns)


def launch(held: Operands, block: tuple[int, int]) -> None:
    """RMSNorm into the rivals' output."""
    rows, columns = held.x.shape
    size, warps = block
    kernel: Any = _rms_norm
    kernel[(rows,)](
        *(held.x, held.weight, held.theirs, columns, EPS),
        BLOCK=size,
        WHOLE=size >= columns,
        num_warps=warps,
    )


def fastest(sets: list[Operands]) -> tuple[int, int]:
    """The block and number of warps that take least time for these operands."""
    columns = sets[0].x.shape[1]
    tried = {}
    for block in BLOCKS:
        if block[0] < 2 * columns:
            timed: Any = Graph
            graph = timed(lambda held, block=block: launch(held, block), sets, _TRIED_S)
            tried[block] = min(graph.seconds() for _ in range(3))
            torch.cuda.synchronize()
    return min(tried, key=lambda block: tried[block])
