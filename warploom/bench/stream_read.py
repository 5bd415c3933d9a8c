"""How fast memory can be read: the limit that a token is held against, measured in the same run.

A kernel of our own and a reduction of torch read as many bytes as the token; the faster one counts.
"""

import importlib
from typing import Any

import numpy as np

import warploom as wl
from warploom.bench.kernel import read_all
from warploom.bench.measure import seconds
from warploom.runtime import driver

TILE, BLOCKS_AN_SM, REPEATS = 4096, 8, 8


def read_rate(size: int, rounds: int, device: int = 0) -> float:
    """Bytes a second with our own kernel, the best of `rounds` reads of `size` bytes."""
    blocks = BLOCKS_AN_SM * driver.facts(device).multiprocessors
    buffer = wl.to_device(np.ones(size // 4, np.float32), device)
    sums = wl.device_empty((blocks,), np.float32, device)
    launch: Any = read_all.launch(blocks, warps=8).bound(buffer, sums, TILE=TILE)

    def run() -> None:
        for _ in range(REPEATS):
            launch()
        driver.synchronize(device)

    run()
    total = float(wl.to_numpy(sums).sum())
    if total != size // 4:
        raise RuntimeError(f"the read kernel added {size // 4} ones up to {total}")
    return size * REPEATS / min(seconds(run) for _ in range(rounds))


def best_read_rate(size: int, rounds: int) -> float:
    """The faster of our kernel and torch."""
    torch_read = importlib.import_module("warploom.bench.rivals.torch_read")
    return max(read_rate(size, rounds), torch_read.read_rate(size, rounds))
