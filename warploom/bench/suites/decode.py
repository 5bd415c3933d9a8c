"""Suite `decode`: a token of a whole model in one launch, at the end of its context.

Weights are random, in the shapes of real models, and made where they are used. Rivals hold the same
weights: `unfused` is our own kernels, one launch an operation, in a graph; `compiled` torch.compile
in a CUDA graph, as fast as we could make it; `plain`, of the models of design 2, the same with
torch's own options and a mask. All have one sequence; rows of a batch are compared with the row of
one sequence instead (`batch_cost`: their time without that of the added keys and values, over that
of one). The limit is one read of the same weights and caches, in the same rounds.
"""

import importlib
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.bench import decode_models, machine
from warploom.bench.case import Context
from warploom.bench.decode_models import HostRandom, Random
from warploom.bench.kernel import stream_rows
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.engine.cache import Cache
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place, choose
from warploom.engine.reference import forward
from warploom.engine.runner import Runner
from warploom.engine.token_runner import PAGE, Packed, pack
from warploom.engine.weights import Weights, moved
from warploom.kernels import token

DEVICE = "gpu"
LIMIT_S = 300.0
TOGETHER = True
MEASURED = ("llama-3.2-1b", "llama-2-7b", "llama-3.1-8b", "qwen3-8b", "pythia-2.8b", "pythia-6.9b")
# (context, batch) of every model, and longer ones where keys and values weigh.
_USUAL = ((1024, 1), (1024, 8))
_LONG = {"llama-2-7b": 16384, "llama-3.1-8b": 16384}
PLAIN = tuple(f"{name}/ctx1024/b1" for name in MEASURED[:4])
STRETCH, ROUNDS, CHECKED, REPEATS = 16, 11, 4, 10
# Between two correct bf16 computations of a model lie errors of some hundredths.
TOLERANCE = 0.06
_PIECE, _STAGES = 8192, 12  # of the reading kernel: 16 KB a copy
_BUSY_MS = 400
_FIRST = 5  # the token of the first column


def cases(device: str) -> list[str]:
    """The rows of the suite; on the simulator, those of a tiny model."""
    if device == "sim":
        return ["tiny/ctx64/b1", "tiny/ctx64/b2"]
    found: list[str] = []
    for name in MEASURED:
        found += [f"{name}/ctx{context}/b{batch}" for context, batch in _USUAL]
        if name in _LONG:
            found.append(f"{name}/ctx{_LONG[name]}/b1")
    return found


def prepare(cases: Sequence[str], device: str) -> None:
    """Compiles what the cases launch into the cache on disk, in processes beside each other: one
    after the other, that would take longer than all that is measured."""
    if device == "sim":
        return
    alone = [case for case in cases if case.endswith("/b1")]
    of_models = {case.split("/")[0]: case for case in reversed(alone)}
    jobs = [["compiled", case] for case in alone]  # what takes longest first
    jobs += [["plain", case] for case in alone if case in PLAIN]
    jobs += [["token", case] for case in cases]
    jobs += [["unfused", case] for case in of_models.values()]
    command = [sys.executable, "-m", "warploom.bench.decode_compile", "--device", device]

    def run(job: list[str]) -> None:
        # What cannot be compiled is reported by its row.
        subprocess.run([*command, *job], cwd=machine.ROOT, capture_output=True, check=False)

    with ThreadPoolExecutor(machine.cores()) as pool:
        list(pool.map(run, jobs))


def measure(case: str, context: Context) -> Row:
    """One row: milliseconds a token."""
    name, length, batch = case.split("/")
    count = int(batch.removeprefix("b"))
    parts = Parts()
    with parts("weights"):
        model = hold(name, choose(context.device), context.seed)
    config = decode_models.config_of(name, int(length.removeprefix("ctx")))
    with parts("kernel"):
        ours = Ours.make(config, model, count)
        ours.once()
    with parts("rivals"):
        rivals = _rivals(ours, case in PLAIN) if count == 1 else {}
    row = Row(case, "ms", "lower", limit="read", rounds=ROUNDS if model.place.is_gpu else 3)
    row.config = {"dtype": "bf16", "blocks": ours.plan.blocks, "warps": ours.plan.warps}
    with parts("check"):
        _judge(row, ours, rivals, context.seed)
    if row.status == "ok":
        with parts("measure"):
            _time(row, ours, rivals, context)
    row.extra["seconds_of"] = parts.seconds
    return row


@dataclass
class Parts:
    """Where the seconds of a row go."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Counts what happens inside."""
        began = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - began, 1)


@dataclass
class Held:
    """A model's weights on a device, as they are and packed."""

    name: str
    place: Place
    seed: int
    random: Random
    weights: Weights
    packed: Packed


_held: list[Held] = []


def hold(name: str, place: Place, seed: int) -> Held:
    """The weights of a model; those of another one are given back."""
    if _held and (_held[0].name, _held[0].place, _held[0].seed) == (name, place, seed):
        return _held[0]
    _held.clear()
    random = _random(place, seed)
    config = decode_models.config_of(name, PAGE)
    weights = decode_models.weights_of(config, random, seed)
    _held.append(Held(name, place, seed, random, weights, pack(config, weights, place, "bf16")))
    return _held[0]


def _random(place: Place, seed: int) -> Random:
    if not place.is_gpu:
        return HostRandom(seed)
    importlib.import_module("warploom.bench.rivals.torch_decoder").forget()
    made = importlib.import_module("warploom.bench.rivals.torch_weights")
    return made.TorchRandom(seed, f"cuda:{place.name.removeprefix('gpu:')}")


def launch_of(config: ModelConfig, model: Held, count: int) -> tuple[Any, Any]:
    """Cache, columns and workspace of `count` sequences, and the launch of a token of each."""
    place, packed = model.place, model.packed
    pages = config.context // PAGE
    shape = (config.layers, count * pages, PAGE, config.kv_heads, config.head_dim)
    cache = token.Cache(
        keys=model.random.matrix(*shape, scale=decode_models.KEYS),
        values=model.random.matrix(*shape),
        pages=place.put(np.arange(count * pages, dtype=np.int32).reshape(count, pages)),
    )
    columns = token.Columns(*(place.put(np.arange(count, dtype=np.int32)) for _ in range(3)))
    work = token.Workspace.make(packed.plan, count, config.context, place.zeros)
    made = token.call(
        packed.plan, packed.weights, cache, columns, work,
        eps=config.norm_eps, scale=config.scale,
    )  # fmt: skip
    return (cache, columns, work), made


@dataclass
class Ours:
    """A model in the token kernel, `count` sequences that have STRETCH tokens left."""

    config: ModelConfig
    model: Held
    cache: token.Cache
    columns: token.Columns
    work: token.Workspace
    launch: Callable[[], object]
    reading: Any = None

    @classmethod
    def make(cls, config: ModelConfig, model: Held, count: int) -> "Ours":
        """Full caches on the device of the weights."""
        (cache, columns, work), call = launch_of(config, model, count)
        launch = call.launcher.bound(*call.args, **call.kwargs)
        return cls(config, model, cache, columns, work, launch)

    @property
    def place(self) -> Place:
        """Where all of it lies."""
        return self.model.place

    @property
    def plan(self) -> token.Plan:
        """How the model is dealt to blocks."""
        return self.model.packed.plan

    def begin(self, position: int) -> None:
        """Every column goes on from a position, each with a token of its own."""
        count = self.columns.count
        self.place.write(self.columns.ids, np.arange(count, dtype=np.int32) + _FIRST)
        self.place.write(self.columns.positions, np.full(count, position, np.int32))

    def wait(self) -> np.ndarray:
        """The next tokens, once all launches are done."""
        return self.place.read(self.columns.ids)

    def once(self) -> np.ndarray:
        """The logits of the last token of the context."""
        self.begin(self.config.context - 1)
        self.launch()
        self.wait()
        return self.place.read(self.work.logits)

    def stretch(self) -> float:
        """Milliseconds a token over the last STRETCH tokens of the context."""
        self.begin(self.config.context - STRETCH)
        self.wait()

        def run() -> None:
            for _ in range(STRETCH):
                self.launch()
            self.wait()

        return 1e3 * seconds(run) / STRETCH

    def read(self) -> float:
        """Milliseconds of one launch that brings the same weights and caches, the best of three."""
        if self.reading is None:
            caches = (
                a.reshape(math.prod(a.shape) // _PIECE, _PIECE)
                for a in (self.cache.keys, self.cache.values)
            )
            sums = self.place.empty((self.plan.blocks,), np.float32)
            launcher: Any = stream_rows.launch(self.plan.blocks)
            self.reading = launcher.bound(
                self.model.packed.weights.packed, *caches, sums, N=_PIECE, STAGES=_STAGES
            )

        def run() -> None:
            self.reading()
            self.wait()

        return 1e3 * min(seconds(run) for _ in range(3))

    def clock(self, read_ms: float) -> int | None:
        """The clock of the GPU while it works."""
        for _ in range(max(1, round(_BUSY_MS / read_ms))):
            self.reading()
        found = machine.clock_mhz()
        self.wait()
        return found


# -- rivals ----------------------------------------------------------------------------------------


@dataclass
class Rival:
    """Another way to the same token: its logits at the end of the context, and a stretch."""

    once: Callable[[], np.ndarray]
    stretch: Callable[[], float]


def _rivals(ours: Ours, plain: bool) -> dict[str, Rival]:
    found = {"unfused": _unfused(ours)}
    if ours.place.is_gpu:
        found["compiled"] = _compiled(ours, whole=True)
        if plain:
            found["plain"] = _compiled(ours, whole=False, options={})
    return found


def _unfused(ours: Ours) -> Rival:
    """One launch an operation, over the same weights and caches."""
    config, place = ours.config, ours.place
    shape = (config.layers, config.context, config.kv_heads, config.head_dim)
    keys, values = (a.reshape(*shape) for a in (ours.cache.keys, ours.cache.values))
    layers = range(config.layers)
    cache = Cache([keys[i] for i in layers], [values[i] for i in layers], config.context)
    weights = moved(ours.model.weights, place.put)
    runner = Runner(config, weights, place, "bf16", config.context, cache)

    def begin(position: int) -> None:
        runner.go_on(_FIRST, position)
        runner.synchronise()

    def once() -> np.ndarray:
        begin(config.context - 1)
        runner.advance_unseen()
        return runner.logits()

    def run() -> None:
        for _ in range(STRETCH):
            runner.advance_unseen()
        runner.synchronise()

    def stretch() -> float:
        begin(config.context - STRETCH)
        return 1e3 * seconds(run) / STRETCH

    return Rival(once, stretch)


def _compiled(ours: Ours, whole: bool, options: dict[str, Any] | None = None) -> Rival:
    config = ours.config
    decoder = _torch_decoder(ours, True, whole, options)
    decoder.capture()
    for held, given in zip((decoder.keys, decoder.values), _cache_of(ours, 0), strict=True):
        for mine, theirs in zip(held, given, strict=True):
            mine.copy_(theirs)

    def begin(position: int) -> None:
        decoder.token.fill_(_FIRST)
        decoder.position.fill_(position)
        decoder.wait()

    def once() -> np.ndarray:
        begin(config.context - 1)
        decoder.step()
        decoder.wait()
        return decoder.logits.cpu().numpy()

    def run() -> None:
        for _ in range(STRETCH):
            decoder.step()
        decoder.wait()

    def stretch() -> float:
        begin(config.context - STRETCH)
        return 1e3 * seconds(run) / STRETCH

    return Rival(once, stretch)


def _torch_decoder(
    ours: Ours, compiled: bool, whole: bool = True, options: dict[str, Any] | None = None
) -> Any:
    """`whole`: its attention reads all of the cache, what the last token needs, without a mask."""
    rival = importlib.import_module("warploom.bench.rivals.torch_decoder")
    place = f"cuda:{ours.place.name.removeprefix('gpu:')}"
    return rival.TorchDecoder(
        ours.config, ours.model.weights, ours.config.context, compiled, place, whole, options
    )


def _cache_of(ours: Ours, column: int) -> tuple[Any, Any]:
    """Keys and values of a column, [layers, context, kv_heads, head_dim]."""
    config = ours.config
    shape = (config.layers, ours.columns.count, config.context, config.kv_heads, config.head_dim)
    keys, values = (a.reshape(*shape)[:, column] for a in (ours.cache.keys, ours.cache.values))
    return keys, values


# -- what is judged and timed ----------------------------------------------------------------------


def _judge(row: Row, ours: Ours, rivals: dict[str, Rival], seed: int) -> None:
    """Fills in errors; a row that is wrong, or whose rival is, gets no figures."""
    count, config = ours.columns.count, ours.config
    if ours.place.is_gpu:
        found = ours.once()
        truth = _exact(ours)
        errors = {name: _error(rival.once(), truth[0]) for name, rival in rivals.items()}
    else:
        found, truth = _on_host(ours, seed)
        errors = {}
    row.error = max(_error(*pair) for pair in zip(found, truth, strict=True))
    row.rival_error = errors.get("compiled")
    runs = {ours.once().tobytes() for _ in range(REPEATS if ours.place.is_gpu else 2)}
    row.extra = {
        "bytes": decode_models.bytes_of(config, config.context, count),
        "launches": 1,
        "identical_runs": len(runs) == 1,
        "logit_error": row.error,
        "logit_errors_of_rivals": {name: round(error, 6) for name, error in errors.items()},
    }
    if not row.error <= TOLERANCE:
        row.status, row.note = "wrong", f"logits off by {row.error:.3g} of their norm"
    elif not row.extra["identical_runs"]:
        row.status, row.note = "wrong", "two runs of one token differ"
    elif bad := [name for name, error in errors.items() if not error <= TOLERANCE]:
        row.status, row.note = "rival_failed", f"{bad[0]}: logits off by {errors[bad[0]]:.3g}"


def _exact(ours: Ours) -> np.ndarray:
    """Logits [columns, vocabulary] of the last token of the context in float32, by torch."""
    decoder = _torch_decoder(ours, compiled=False)
    at = ours.config.context - 1
    rows = [
        decoder.exact(_FIRST + column, at, *_cache_of(ours, column)).cpu().numpy()
        for column in range(ours.columns.count)
    ]
    return np.stack(rows)


def _on_host(ours: Ours, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the first column after CHECKED tokens: ours, and those of NumPy in float32."""
    ids = np.random.default_rng(seed).integers(0, ours.config.vocabulary, CHECKED)
    count = ours.columns.count
    for position, item in enumerate(ids):
        ours.place.write(ours.columns.ids, np.full(count, item, np.int32))
        ours.place.write(ours.columns.positions, np.full(count, position, np.int32))
        ours.launch()
    found = ours.place.read(ours.work.logits)[:1]
    return found, forward(ours.config, ours.model.weights, ids.tolist(), last=1)


def _error(found: np.ndarray, truth: np.ndarray) -> float:
    """Distance of logits from the float32 computation over the same weights, of its norm."""
    return float(np.linalg.norm(found.astype(np.float64) - truth) / np.linalg.norm(truth))


def _time(row: Row, ours: Ours, rivals: dict[str, Rival], context: Context) -> None:
    """Fills in the figures."""
    contestants = {"ours": ours.stretch, **{name: r.stretch for name, r in rivals.items()}}
    count = ours.columns.count
    if ours.place.is_gpu:
        contestants["read"] = ours.read
        if count > 1:
            contestants["one"] = Ours.make(ours.config, ours.model, 1).stretch
    samples = alternate(contestants, row.rounds)
    row.ours, row.spread = summary(samples.pop("ours"))
    row.rivals = {rival: summary(samples[rival])[0] for rival in rivals}
    if not ours.place.is_gpu:
        return
    best = min(samples["read"])
    row.of_limit = round(best / row.ours, 4)
    row.extra["read_ms"] = round(best, 4)
    row.clock_mhz = ours.clock(best)
    rate = row.extra["bytes"] / best
    context.limits["read"] = {"value": round(rate / 1e9, 3), "unit": "TB/s"}
    if count > 1:
        one = summary(samples["one"])[0]
        added = decode_models.cache_bytes(ours.config, ours.config.context, count - 1)
        row.extra["one_ms"] = round(one, 4)
        row.extra["batch_cost"] = round((row.ours - added / rate) / one, 4)
