"""The rival written in Triton: a persistent product whose tiles the copy engine moves.

Of a few tiles the one that is fastest for a set of operands is kept. Knows nothing of ours; graphs,
operands and errors are those of `torch_gemm`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from warploom.bench.rivals.torch_gemm import Graph, Operands

# Seconds of launches that a tile is judged by, beyond those of capturing.
_TRIED_S = 0.3e-3
GROUP = 8


@dataclass(frozen=True)
class Tile:
    """A tile of the result, steps of the sum, copies in flight, warps."""

    rows: int
    columns: int
    depth: int
    stages: int
    warps: int


TILES = (
    Tile(128, 256, 64, 3, 8),
    Tile(256, 128, 64, 3, 8),
    Tile(128, 128, 64, 4, 8),
    Tile(128, 128, 64, 4, 4),
    Tile(64, 256, 64, 4, 4),
    Tile(64, 128, 64, 6, 4),
    Tile(64, 64, 64, 8, 4),
)


@triton.jit
def _product(
    a, b, c, M, N, K,
    A_T: tl.constexpr, B_T: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), rows * columns, BLOCKS, flatten=True):
        group = t // (GROUP * columns)
        height = min(rows - group * GROUP, GROUP)
        inside = t % (GROUP * columns)
        m = (group * GROUP + inside % height) * BM
        n = (inside // height) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            k = step * BK
            left = a.load([k, m]).T if A_T else a.load([m, k])
            right = b.load([n, k]).T if B_T else b.load([k, n])
            acc = tl.dot(left, right, acc)
        c.store([m, n], acc.to(c.dtype))


def _described(x: torch.Tensor, rows: int, columns: int) -> tuple[TensorDescriptor, bool]:
    """A descriptor of blocks of a matrix, and whether it is contiguous along its first axis."""
    turned = x.stride(1) != 1
    if turned:
        return TensorDescriptor.from_tensor(x.t(), [columns, rows]), True
    return TensorDescriptor.from_tensor(x, [rows, columns]), False


def launch(held: Operands, tile: Tile) -> None:
    """One product into the rivals' output."""
    (m, k), n = held.a.shape, held.b.shape[1]
    a, a_t = _described(held.a, tile.rows, tile.depth)
    b, b_t = _described(held.b, tile.depth, tile.columns)
    c, _ = _described(held.theirs, tile.rows, tile.columns)
    sms = torch.cuda.get_device_properties(held.a.device).multi_processor_count
    kernel: Any = _product
    kernel[(min(sms, triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.columns)),)](
        *(a, b, c, m, n, k),
        **{"A_T": a_t, "B_T": b_t, "BM": tile.rows, "BN": tile.columns, "BK": tile.depth},
        **{"GROUP": GROUP, "BLOCKS": sms, "num_warps": tile.warps, "num_stages": tile.stages},
    )


def candidates(m: int, n: int) -> Iterator[Tile]:
    """Tiles that are no more than twice as high or wide as the result."""
    highest, widest = max(64, 2 * m), max(64, 2 * n)
    yield from (tile for tile in TILES if tile.rows <= highest and tile.columns <= widest)


def fastest(sets: list[Operands]) -> Tile:
    """The best tile for these operands."""
    held = sets[0]
    tiles = candidates(held.a.shape[0], held.b.shape[1])

    def seconds(tile: Tile) -> float:
        graph = Graph(lambda x: launch(x, tile), sets, _TRIED_S)
        return min(graph.seconds() for _ in range(3))

    return min(tiles, key=seconds)
