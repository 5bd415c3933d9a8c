"""The rival of the matrix product: torch.mm into an output that is there, which is cuBLAS; for
8-bit floats torch._scaled_mm, which is cuBLASLt, as it is by default: sums in f32.

Also holds what both sides share: random operands beyond the L2, graphs, a float64 product.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from warploom.bench.kernel import stamp

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "fp8": torch.float8_e4m3fn}
SCALES = (0.5, 0.25)  # of operands of 8 bits
# The operands of a graph are read from memory, not from what the launch before left in the L2.
BEYOND_L2 = 200 << 20
_MOST_SETS = 128


@dataclass
class Operands:
    """a [M, K], b [K, N] and an output [M, N] for each side; the scales of 8-bit operands."""

    a: torch.Tensor
    b: torch.Tensor
    ours: torch.Tensor
    theirs: torch.Tensor
    scale_a: torch.Tensor | None = None
    scale_b: torch.Tensor | None = None


def operands(m: int, n: int, k: int, dtype: str, layout: str, seed: int) -> list[Operands]:
    """Sets of operands that together do not fit the L2, at least two. `layout`: "nt" has `b` stored
    as [N, K], "nn" as [K, N], "tn" has `a` stored as [K, M] too."""
    element = DTYPES[dtype]
    draw = torch.Generator("cuda").manual_seed(seed)

    def matrix(rows: int, columns: int, turned: bool) -> torch.Tensor:
        shape = (columns, rows) if turned else (rows, columns)
        drawn = torch.float16 if dtype == "fp8" else element
        made = torch.randn(shape, dtype=drawn, device="cuda", generator=draw).to(element)
        return made.t() if turned else made

    result = torch.bfloat16 if dtype == "fp8" else element
    scales = [torch.full((1,), s, device="cuda") if dtype == "fp8" else None for s in SCALES]
    size = (m * k + k * n) * element.itemsize + m * n * result.itemsize
    count = min(_MOST_SETS, max(2, -(-BEYOND_L2 // size)))
    return [
        Operands(
            matrix(m, k, layout[0] == "t"),
            matrix(k, n, layout[1] == "t"),
            *(torch.zeros((m, n), dtype=result, device="cuda") for _ in range(2)),
            *scales,
        )
        for _ in range(count)
    ]


def cublas(held: Operands) -> None:
    """One product by torch."""
    if held.scale_a is None:
        torch.mm(held.a, held.b, out=held.theirs)
        return
    scaled: Any = torch._scaled_mm
    scales = {"scale_a": held.scale_a, "scale_b": held.scale_b}
    scaled(held.a, held.b, **scales, out_dtype=held.theirs.dtype, out=held.theirs)


def error(made: torch.Tensor, held: Operands) -> float:
    """Distance of a product from that in float64, of its norm; a part of the rows is enough."""
    rows = min(made.shape[0], 1024)
    # 8-bit floats reach float64 by way of float32.
    truth = held.a[:rows].float().double() @ held.b.float().double()
    if held.scale_a is not None and held.scale_b is not None:
        truth *= held.scale_a.double() * held.scale_b.double()
    return float((made[:rows].double() - truth).norm() / truth.norm())


def identical(launch: Callable[[Operands], None], held: Operands, repeats: int) -> int:
    """How many of `repeats` products into `held.ours` have the bits of the first one."""
    launch(held)
    bits = held.ours.view(torch.int16)
    first, differs = bits.clone(), torch.empty_like(bits, dtype=torch.bool)
    same = torch.zeros((), dtype=torch.int64, device=bits.device)
    group = 10 if repeats % 10 == 0 else 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(group):
            bits.fill_(-1)
            launch(held)
            torch.ne(bits, first, out=differs)
            same += torch.logical_not(differs.any())
    for _ in range(repeats // group):
        graph.replay()
    return int(same)


class Graph:
    """Launches of one side over all sets, at least `least` seconds of them."""

    def __init__(self, launch: Callable[[Operands], None], sets: list[Operands], least: float):
        for held in sets[:1]:
            launch(held)
        self._launch, self._sets = launch, sets
        self.clocks: list[float] = []
        self.products = len(sets)
        self._graph = self._captured()
        rounds = math.ceil(least / (min(self.seconds() for _ in range(3)) * self.products))
        if rounds > 1:
            self.products *= rounds
            self._graph = self._captured()
        self.seconds()

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for number in range(self.products):
                self._launch(self._sets[number % len(self._sets)])
        return graph

    def replay(self) -> None:
        """All launches."""
        self._graph.replay()

    def seconds(self) -> float:
        """Seconds of one launch, measured by events around a replay."""
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        self._graph.replay()
        after.record()
        after.synchronize()
        return before.elapsed_time(after) * 1e-3 / self.products

    def clocked(self) -> float:
        """The same, and the mean clock of an SM meanwhile (MHz) goes to `clocks`."""
        begin, end = (torch.empty(2, dtype=torch.int64, device="cuda") for _ in range(2))
        stamp[1](begin)
        taken = self.seconds()
        stamp[1](end)
        cycles, nanoseconds = (end - begin).tolist()
        self.clocks.append(1e3 * cycles / nanoseconds)
        return taken
