"""Reading memory with torch: a reduction over one large tensor, in a CUDA graph."""

import time

import torch


def read_rate(size: int, rounds: int) -> float:
    """Bytes a second, the best of `rounds` reads of `size` bytes."""
    buffer = torch.ones(size // 4, dtype=torch.float32, device="cuda")
    out = torch.zeros((), dtype=torch.float32, device="cuda")
    torch.sum(buffer, dim=0, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    repeats = 8
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            torch.sum(buffer, dim=0, out=out)
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / repeats)
    return size / best
