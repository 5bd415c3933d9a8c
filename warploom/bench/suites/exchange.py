"""Suite `exchange`: microseconds of a round in which all blocks exchange a vector of f32, rows
`elements/idle` and `elements/busy` (beside a role that streams from memory all the while).

Timed in one chain of rounds: idle by launches with and without rounds, busy by the clock that all
SMs share, read by each block around its rounds; the slowest block counts. All protocols run (short
vectors; one of them in clusters of two blocks), and the fastest one is the row's; the others stand
in `other`. The stream has as many pieces under way as it needs to read SATURATED of what the
machine can beside the rounds, and no more than that stand in a queue in front of them: the first of
UNDER_WAY that does. A protocol takes no part where none does, or whose rounds the stream does not
outlast; a row where no protocol is left is `wrong`. `stream_tb_s` and `under_way` say what was read
and how. There is no rival. On the simulator a few rounds run, in milliseconds.
"""

from functools import partial
from statistics import median
from typing import Any

import numpy as np

import warploom as wl
from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.kernels import collectives
from warploom.kernels.collectives import kernel, reference

DEVICE = "gpu"
LIMIT_S = 120.0
SAMPLES, CHAIN, SIMULATED_ROUNDS = 15, 1000, 2
PROTOCOLS = ("counter", "flagged", "relayed")
MOST_POLLED = 4096
LENGTHS = (256, 1024, 4096, 16384)
SIMULATED = ("256/idle", "256/busy")
STREAMED = 1 << 30  # bytes, read again and again
SATURATED = 0.95
PIECE, UNDER_WAY = 8192, (7, 8, 10)  # bytes of a copy; copies that an SM has under way
# Pieces of the stream for a round, so that it outlasts the slowest round that is of interest: of
# many elements, for each 256 of them.
PIECES_A_ROUND, ELEMENTS_A_PIECE = 24, 256


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    if device == "sim":
        return list(SIMULATED)
    return [f"{n}/idle" for n in LENGTHS] + [f"{n}/busy" for n in LENGTHS]


def measure(case: str, context: Context) -> Row:
    """One row."""
    length, how = case.split("/")
    if context.device == "sim":
        return _simulated(case, int(length), how, context)
    blocks = machine.facts(machine.name())["sms"]
    row = Row(case, "us", "lower", rounds=SAMPLES)
    timer = _busy if how == "busy" else _idle
    found: dict[str, list[float]] = {}
    # Above, registers do not hold all words that a thread polls.
    for protocol in PROTOCOLS if int(length) <= MOST_POLLED else PROTOCOLS[:1]:
        samples = timer(row, int(length), blocks, protocol, context.seed)
        if row.status != "ok":
            return row
        if samples:
            found[protocol] = samples
    if not found:
        row.status = "wrong"
        row.note = f"no stream outlasted the rounds at {SATURATED} of what memory gives"
        return row
    best = min(found, key=lambda name: median(found[name]))
    row.ours, row.spread = summary(found.pop(best))
    row.config = {"protocol": best, "blocks": blocks, "chain": CHAIN}
    row.extra["other"] = {name: median(taken) for name, taken in found.items()}
    row.clock_mhz = machine.clock_mhz()
    return row


def _operands(length: int, blocks: int, seed: int) -> tuple[np.ndarray, int]:
    """A vector, and elements of a block's share."""
    return np.random.default_rng(seed).standard_normal(length, np.float32), -(-length // blocks)


def _is_right(row: Row, out: Any, x: np.ndarray, share: int, rounds: int) -> bool:
    """Whether every block has the vector of the last round."""
    wanted = reference.exchange(x, share, rounds)
    if not all(part.tobytes() == wanted.tobytes() for part in np.asarray(out)):
        row.status, row.note = "wrong", "a block has another vector than the reference"
    return row.status == "ok"


def _idle(row: Row, length: int, blocks: int, protocol: str, seed: int) -> list[float]:
    x, share = _operands(length, blocks, seed)
    given, out = wl.to_device(x), wl.device_empty((blocks, length), wl.f32)
    launch = kernel.exchange.launch(blocks, warps=kernel.WARPS, cooperative=True)
    constants = {"SHARE": share, "N": length, "WAY": protocol}
    launch(given, out, CHAIN, **constants)
    if not _is_right(row, wl.to_numpy(out), x, share, CHAIN):
        return []
    chains = {n: launch.call(given, out, n, **constants) for n in (0, CHAIN)}
    timed = {str(n): partial(call.bench, 1, 3) for n, call in chains.items()}
    taken = alternate(timed, SAMPLES)
    empty = median(taken["0"])
    return [1e6 * (s - empty) / CHAIN for s in taken[str(CHAIN)]]


def _busy(row: Row, length: int, blocks: int, protocol: str, seed: int) -> list[float]:
    for under_way in UNDER_WAY:
        found, rate = _beside(row, length, blocks, protocol, seed, under_way)
        if row.status != "ok":
            return []
        row.extra.setdefault("stream_tb_s", {})[protocol] = rate
        row.extra.setdefault("under_way", {})[protocol] = under_way
        if rate >= SATURATED * machine.facts(machine.name())["read"]["value"]:
            return found
    return []


def _beside(
    row: Row, length: int, blocks: int, protocol: str, seed: int, under_way: int
) -> tuple[list[float], float]:
    """Microseconds of a round, none where the stream ends before them, and what it reads in TB/s,
    with so many pieces under way."""
    x, share = _operands(length, blocks, seed)
    given, out = wl.to_device(x), wl.device_empty((blocks, length), wl.f32)
    stream = wl.device_empty((STREAMED // PIECE, PIECE // 4), wl.f32)
    times = wl.to_device(np.zeros((blocks, 2), np.int64))
    launch = kernel.exchange_busy.launch(blocks, cluster=_cluster(protocol), cooperative=True)
    constants = {"SHARE": share, "N": length, "WAY": protocol}
    constants |= {"STAGES": under_way, "PIECE": PIECE}
    pieces = CHAIN * max(PIECES_A_ROUND, length // ELEMENTS_A_PIECE)
    launch(given, out, stream, times, CHAIN, pieces, **constants)
    if not _is_right(row, wl.to_numpy(out), x, share, CHAIN):
        return [], 0.0
    found, rates, outlasts = [], [], True
    for _ in range(SAMPLES):
        launch(given, out, stream, times, CHAIN, pieces, **constants)
        rounds, streamed = wl.to_numpy(times).max(axis=0)
        outlasts = outlasts and bool(streamed >= rounds)
        found.append(1e-3 * float(rounds) / CHAIN)
        rates.append(1e-3 * blocks * pieces * PIECE / float(streamed))
    return found if outlasts else [], round(median(rates), 3)


def _cluster(protocol: str) -> tuple[int, ...]:
    """The shape of a cluster."""
    return (2,) if protocol == "relayed" else (1,)


def _simulated(case: str, length: int, how: str, context: Context) -> Row:
    """Milliseconds of a few rounds of 4 blocks."""
    x, share = _operands(length, 4, context.seed)
    out, times = np.zeros((4, length), np.float32), np.zeros((4, 2), np.int64)
    row = Row(case, "ms", "lower", rounds=SIMULATED_ROUNDS, config={"blocks": 4})
    ours = partial(collectives.exchange, x, out, share, 3)
    if how == "busy":
        stream = np.zeros((8, kernel.CHUNK // 4), np.float32)
        launch = kernel.exchange_busy.launch(4, cooperative=True)
        constants = {"SHARE": share, "N": length, "WAY": "counter"}
        ours = partial(launch, x, out, stream, times, 3, 15, **constants)
    ours()
    if _is_right(row, out, x, share, 3):
        taken = alternate({"ours": partial(seconds, ours)}, SIMULATED_ROUNDS)
        row.ours, row.spread = summary([1e3 * s for s in taken["ours"]])
    return row
