"""Small launches of the library's kernels whose blocks work together: collectives, rows split over
a cluster, the k largest, a token. Runs nothing.

Rings of exchanges have two slots: 0, 1, 2, 3 and more rounds go around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import warploom as wl
from warploom.kernels.collectives.kernel import CHUNK, STAGES
from warploom.kernels.collectives.kernel import all_reduce as reduced
from warploom.kernels.collectives.kernel import exchange as exchanged
from warploom.kernels.collectives.kernel import exchange_busy as exchanged_beside
from warploom.kernels.collectives.kernel import soak as repeated
from warploom.kernels.rows import kernel as rows
from warploom.kernels.sampling.kernel import top_k
from warploom.kernels.token.kernel import token
from warploom.runtime.examples import Make
from warploom.runtime.launch import Call

Making = Callable[[Make], Call]
Form = tuple[str, str, Making]
"""A family, the name of a launch, what makes its call."""

KERNELS = {reduced, repeated, exchanged, exchanged_beside, rows.rows, top_k, token}

# The vector that blocks exchange: more than one warp has a part of a share.
_SHARE, _BLOCKS = 256, 4
_VECTOR = _SHARE * _BLOCKS
# Rounds, and rows of a replica: around two slots, the longest first.
_ROUNDS = (5, 3, 2, 1, 0)


def _reduced(rounds: int, blocks: int, cluster: int, size: int) -> Making:
    def make(make: Make) -> Call:
        x, y = make.randn((blocks, size), wl.f16), make.empty((blocks, size), wl.f16)
        launcher = reduced.launch(blocks, cluster=(cluster, 1, 1))
        return launcher.call(x, y, rounds, OP="sum", OVER=wl.cluster, SCALE=0.25, N=size)

    return make


def _repeated(what: str) -> Making:
    """Rounds of another collective, of four blocks in clusters of two."""
    parties, n = 2, 64
    m = {"all_gather": n * parties, "reduce_scatter": n // parties}.get(what, n)

    def make(make: Make) -> Call:
        x, wanted = make.randn((2, 4, n), wl.f32), make.zeros((2, 4, m), wl.f32)
        launcher = repeated.launch(4, cluster=(parties, 1, 1))
        wrong = make.zeros((4,), wl.i32)
        return launcher.call(x, wanted, wrong, 4, 0, what, "sum", wl.cluster, N=n, M=m)

    return make


def _exchanged(rounds: int, way: str) -> Making:
    def make(make: Make) -> Call:
        x, y = make.randn((_VECTOR,)), make.empty((_BLOCKS, _VECTOR), wl.f32)
        launcher = exchanged.launch(_BLOCKS, cooperative=True)
        return launcher.call(x, y, rounds, SHARE=_SHARE, N=_VECTOR, WAY=way)

    return make


def _exchanged_beside(chunks: int) -> Making:
    def make(make: Make) -> Call:
        x, y = make.randn((2 * _VECTOR,)), make.empty((_BLOCKS, 2 * _VECTOR), wl.f32)
        stream, times = make.zeros((8, CHUNK // 4)), make.zeros((_BLOCKS, 2), wl.i64)
        sizes = {"SHARE": 2 * _SHARE, "N": 2 * _VECTOR, "WAY": "counter"}
        launcher = exchanged_beside.launch(_BLOCKS, cooperative=True)
        return launcher.call(x, y, stream, times, 3, chunks, **sizes)

    return make


def _collectives() -> Iterator[tuple[str, Making]]:
    for rounds in _ROUNDS:
        yield f"all-reduce/{rounds}", _reduced(rounds, 6, 3, 512)
    for rounds in _ROUNDS[:-1]:  # without a round nothing is in the vector that is read
        yield f"exchange/{rounds}", _exchanged(rounds, "counter")
        yield f"exchange-flagged/{rounds}", _exchanged(rounds, "flagged")
    for rounds in _ROUNDS[1:]:
        # Of a size at which threads read other elements than they have stored.
        yield f"all-reduce-two-steps/{rounds}", _reduced(rounds, 4, 4, 6144)
    for chunks in (2 * STAGES + 1, STAGES + 1, STAGES, STAGES - 1, 1, 0):
        yield f"exchange-beside/{chunks}", _exchanged_beside(chunks)
    for what in ("reduce", "reduce_scatter", "all_gather", "broadcast"):
        yield f"{what}/4", _repeated(what)


def _rows(kind: int, cluster: int, stages: int, count: int, **how: Any) -> Making:
    """`count` rows of one function for a single cluster."""

    def make(make: Make) -> Call:
        part, dtype = how.get("part", 32), how.get("dtype", wl.bf16)
        n = part * cluster - how.get("less", 0)
        x, given = make.randn((count, n), dtype), {}
        out = make.empty((count, n), dtype)
        if kind == rows.CROSS_ENTROPY:
            out = make.empty((count,), wl.f32)
            given["target"] = make.integers(-1, n, (count,), wl.i32)
        elif kind != rows.SOFTMAX:
            given["weight"] = make.randn((n,), wl.f32)
            given["RESIDENT"] = how.get("held", False)
        if kind == rows.LAYER_NORM:
            given["bias"] = make.randn((n,), wl.f32)
        launcher = rows.rows.launch(cluster, cluster=(cluster,))
        return launcher.call(x, out, 1e-5, kind, part, stages, **given)

    return make


def _rows_of_clusters() -> Iterator[tuple[str, Making]]:
    held = {"held": True}
    read = {"part": 20, "less": 10, "dtype": wl.f32}
    for count in (11, 7, 6, 5, 4, 3, 2, 1, 0):
        yield f"rms-norm/{count}", _rows(rows.RMS_NORM, 2, 2, count, **held)
    for count in (7, 5, 1, 0):
        yield f"layer-norm/{count}", _rows(rows.LAYER_NORM, 4, 0, count, **read)
        yield f"softmax/{count}", _rows(rows.SOFTMAX, 4, 1, count, dtype=wl.f16)
        yield f"cross-entropy/{count}", _rows(rows.CROSS_ENTROPY, 2, 2, count)


def forms() -> Iterator[Form]:
    """All of them."""
    for name, make in _collectives():
        yield "collectives", name, make
    for name, make in _rows_of_clusters():
        yield "rows", name, make
    yield "sampling", "top-k/4", top_k.examples["default"]
    yield "token", "token/whole", token.examples["whole"]
