"""What a GPU can do at most, measured with kernels of this library: reading memory, products of the
matrix unit. Needs neither torch nor another library. Knows no suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import warploom as wl
from warploom.base.errors import CompileError, Error
from warploom.bench import machine, stream_read
from warploom.kernels import gemm
from warploom.runtime import driver, streams

READ_BYTES, READ_ROUNDS = 1 << 30, 20
# The first is short of the power limit, the second meets it.
SHAPES = ((4096, 4096, 4096), (8192, 8192, 4096))
WARM_S, GRAPH_S, ROUNDS = 0.3, 10e-3, 15
MATRIX = {"matrix_bf16": "bf16", "matrix_fp8": "f8e4m3"}


@dataclass(frozen=True, slots=True)
class Limit:
    """A measured limit; `value` is None where `how` says why there is none."""

    name: str
    value: float | None
    unit: str
    how: str


def measure(device: int, tell: Callable[[str], None] = lambda text: None) -> list[Limit]:
    """All limits of a GPU; raises LaunchError H020 where it cannot be used. `tell` hears of
    progress."""
    driver.facts(device)
    tell("reading memory")
    found = [read(device)]
    for name, dtype in MATRIX.items():
        tell(f"products of {dtype}")
        found.append(matrix(name, dtype, device))
    return found


def read(device: int) -> Limit:
    """How fast one kernel reads a gibibyte: the best round."""
    rate = stream_read.read_rate(READ_BYTES, READ_ROUNDS, device)
    how = f"plain loads of {READ_BYTES >> 30} GiB, best of {READ_ROUNDS} rounds"
    return Limit("read", rate / 1e12, "TB/s", how)


def matrix(name: str, dtype: str, device: int) -> Limit:
    """How fast the library multiplies matrices of normally distributed numbers: the median of the
    fastest of some shapes."""
    best, how = None, ""
    for shape in SHAPES:
        try:
            rate, clock = _rate(shape, dtype, device)
        except CompileError:
            raise  # a fault, and not something that the library does not do
        except Error as refused:
            return Limit(name, None, "TFLOP/s", f"not measured: {refused.reports[0].message}")
        if best is None or rate > best:
            best = rate
            at = f" at {clock} MHz" if clock else ""
            how = f"matmul {' x '.join(map(str, shape))}{at}, median of {ROUNDS} rounds"
    assert best is not None
    return Limit(name, best / 1e12, "TFLOP/s", how)


def _rate(shape: tuple[int, int, int], dtype: str, device: int) -> tuple[float, int | None]:
    """Operations a second of one shape, and the clock meanwhile."""
    m, n, k = shape
    make = wl.Make(f"gpu:{device}")
    element = getattr(wl, dtype)
    a, b = make.randn((m, k), element), make.randn((n, k), element).T
    out = wl.device_empty((m, n), wl.bf16, device)
    one = wl.graph(lambda: gemm.matmul(a, b, out))
    count = max(1, round(GRAPH_S / _seconds(one, device)))
    many = wl.graph(lambda: [gemm.matmul(a, b, out) for _ in range(count)])
    for _ in range(max(1, round(WARM_S / _seconds(many, device)))):
        many.replay()
    clock = machine.clock_mhz()
    seconds = median(_seconds(many, device) for _ in range(ROUNDS)) / count
    return 2.0 * m * n * k / seconds, clock


def _seconds(graph: Any, device: int) -> float:
    """Seconds of one replay."""
    stream = driver.current_stream(device, "")
    start, end = streams.Event(device), streams.Event(device)
    start.record(stream)
    graph.replay(stream)
    end.record(stream)
    return end.seconds_since(start)


def written(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """What is written down of a limit: value, unit, how; empty where nothing is."""
    found = facts.get(name)
    return found if isinstance(found, dict) and np.isscalar(found.get("value")) else {}
