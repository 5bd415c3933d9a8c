"""Suite `decode`: a token of a whole model in one launch, at a position far into the context.

Weights are random, in the shapes of real models. Rivals hold the same weights: `unfused` is our own
kernels, one launch an operation, in a graph; `compiled` is torch.compile in a CUDA graph. Both have
one sequence, so rows of a batch have no rival: they are compared with the row of one sequence. The
limit is one read of the same weights and caches, in the same rounds.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.bench import decode_models, machine
from warploom.bench.case import Context
from warploom.bench.decode_models import MODELS
from warploom.bench.kernel import stream_rows
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place, choose
from warploom.engine.reference import forward
from warploom.engine.runner import Runner
from warploom.engine.token_runner import PAGE, Packed, pack
from warploom.engine.weights import LayerWeights, Weights
from warploom.kernels import token

DEVICE = "gpu"
LIMIT_S = 900.0
# (context, batch) of every model, and longer ones where keys and values weigh.
_USUAL = ((1024, 1), (1024, 8))
_LONG = {"llama-2-7b": 16384, "llama-3.1-8b": 16384}
STRETCH, ROUNDS, CHECKED, REPEATS = 16, 15, 4, 20
# Between two correct bf16 computations of a model lie errors of some hundredths.
TOLERANCE = 0.06
_PIECE, _STAGES = 8192, 12  # of the reading kernel: 16 KB a copy


def cases(device: str) -> list[str]:
    """The rows of the suite; on the simulator, those of a tiny model."""
    if device == "sim":
        return ["tiny/ctx64/b1", "tiny/ctx64/b2"]
    found = [
        f"{name}/ctx{context}/b{batch}"
        for name in MODELS
        if name != "tiny"
        for context, batch in _USUAL
    ]
    return [*found, *(f"{name}/ctx{context}/b1" for name, context in _LONG.items())]


def measure(case: str, context: Context) -> Row:
    """One row: milliseconds a token."""
    name, length, batch = case.split("/")
    config = decode_models.config_of(name, int(length.removeprefix("ctx")))
    count = int(batch.removeprefix("b"))
    place = choose(context.device)
    held = decode_models.weights_of(config, context.seed)
    ours = Ours.make(config, held, place, count, context.seed)
    row = Row(case, "ms", "lower", limit="read", rounds=ROUNDS if place.is_gpu else 3)
    row.config = {"dtype": "bf16", "blocks": ours.plan.blocks, "warps": ours.plan.warps}
    row.error = ours.error(held, context.seed)
    row.extra = {
        "bytes": decode_models.bytes_of(config, config.context, count),
        "launches": 1,
        "identical_runs": ours.identical(REPEATS if place.is_gpu else 2),
        "logit_error": row.error,
    }
    if not row.error <= TOLERANCE:
        row.status, row.note = "wrong", f"logits off by {row.error:.3g} of their norm"
        return row
    if not row.extra["identical_runs"]:
        row.status, row.note = "wrong", "two runs of one token differ"
        return row
    contestants = {"ours": ours.stretch}
    if place.is_gpu:
        contestants["read"] = ours.read
    if count == 1:
        contestants |= _rivals(config, held, place)
    samples = alternate(contestants, row.rounds)
    row.clock_mhz = machine.clock_mhz() if place.is_gpu else None
    row.ours, row.spread = summary(samples.pop("ours"))
    if place.is_gpu:
        best = min(samples.pop("read"))
        row.of_limit = round(best / row.ours, 4)
        row.extra["read_ms"] = round(best, 4)
        rate = row.extra["bytes"] / best / 1e9
        context.limits["read"] = {"value": round(rate, 3), "unit": "TB/s"}
    row.rivals = {rival: summary(values)[0] for rival, values in samples.items()}
    return row


@dataclass
class Ours:
    """A model in the token kernel, `count` sequences that have STRETCH tokens left."""

    config: ModelConfig
    place: Place
    packed: Packed
    cache: token.Cache
    columns: token.Columns
    work: token.Workspace
    launch: Callable[[], object]

    @classmethod
    def make(
        cls, config: ModelConfig, held: Weights, place: Place, count: int, seed: int
    ) -> "Ours":
        """Packed weights and full caches on a device."""
        packed = pack(config, held, place, "bf16")
        pages = config.context // PAGE
        shape = (config.layers, count * pages, PAGE, config.kv_heads, config.head_dim)
        cache = token.Cache(
            keys=place.put(decode_models.filled(shape, seed)),
            values=place.put(decode_models.filled(shape, seed + 1)),
            pages=place.put(np.arange(count * pages, dtype=np.int32).reshape(count, pages)),
        )
        columns = token.Columns(
            *(place.put(np.arange(count, dtype=np.int32) % n) for n in (7, 1, count + 1))
        )
        work = token.Workspace.make(packed.plan, count, config.context, place.zeros)
        made = token.call(
            packed.plan, packed.weights, cache, columns, work,
            eps=config.norm_eps, scale=config.scale,
        )  # fmt: skip
        launch = made.launcher.bound(*made.args, **made.kwargs)
        return cls(config, place, packed, cache, columns, work, launch)

    @property
    def plan(self) -> token.Plan:
        """How the model is dealt to blocks."""
        return self.packed.plan

    def begin(self, position: int) -> None:
        """Every column goes on from a position, each with a token of its own."""
        count = self.columns.count
        self.place.write(self.columns.ids, np.arange(count, dtype=np.int32) + 5)
        self.place.write(self.columns.positions, np.full(count, position, np.int32))

    def wait(self) -> np.ndarray:
        """The next tokens, once all launches are done."""
        return self.place.read(self.columns.ids)

    def stretch(self) -> float:
        """Milliseconds a token over the last STRETCH tokens of the context."""
        self.begin(self.config.context - STRETCH)
        self.wait()

        def run() -> None:
            for _ in range(STRETCH):
                self.launch()
            self.wait()

        return 1e3 * seconds(run) / STRETCH

    def identical(self, times: int) -> bool:
        """Whether one token gives the same logits, bit for bit, each time."""
        seen = set()
        for _ in range(times):
            self.begin(self.config.context - 1)
            self.launch()
            self.wait()
            seen.add(self.place.read(self.work.logits).tobytes())
        return len(seen) == 1

    def error(self, held: Weights, seed: int) -> float:
        """Distance of the first column's logits after CHECKED tokens from the float32 computation
        over the same weights, of its norm."""
        ids = np.random.default_rng(seed).integers(0, self.config.vocabulary, CHECKED)
        count = self.columns.count
        for position, item in enumerate(ids):
            self.place.write(self.columns.ids, np.full(count, item, np.int32))
            self.place.write(self.columns.positions, np.full(count, position, np.int32))
            self.launch()
        found = self.place.read(self.work.logits)[0].astype(np.float64)
        truth = forward(self.config, held, ids.tolist(), last=1)[0]
        return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))

    def read(self) -> float:
        """Milliseconds of one launch that brings the same weights and caches, the best of three."""
        weights = self.packed.weights.packed
        caches = (a.reshape(a.size // _PIECE, _PIECE) for a in (self.cache.keys, self.cache.values))
        sums = self.place.empty((self.plan.blocks,), np.float32)
        launcher: Any = stream_rows.launch(self.plan.blocks)
        launch = launcher.bound(weights, *caches, sums, N=_PIECE, STAGES=_STAGES)

        def run() -> None:
            launch()
            self.place.read(sums)

        return 1e3 * min(seconds(run) for _ in range(3))


def _rivals(config: ModelConfig, held: Weights, place: Place) -> dict[str, Callable[[], float]]:
    """Functions that run a stretch and return milliseconds a token."""
    moved = Weights(
        embedding=place.put(held.embedding),
        layers=[
            LayerWeights(**{name: place.put(array) for name, array in vars(layer).items()})
            for layer in held.layers
        ],
        final_norm=place.put(held.final_norm),
        head=place.put(held.head),
        frequencies=place.put(held.frequencies),
    )
    runner = Runner(config, moved, place, "bf16", config.context)
    ids = [5] * (config.context - STRETCH - 1)

    def unfused() -> float:
        runner.feed(ids)
        runner.advance_unseen()
        runner.synchronise()

        def run() -> None:
            for _ in range(STRETCH):
                runner.advance_unseen()
            runner.synchronise()

        return 1e3 * seconds(run) / STRETCH

    found = {"unfused": unfused}
    if place.is_gpu:
        found["compiled"] = _compiled(config, held)
    return found


def _compiled(config: ModelConfig, held: Weights) -> Callable[[], float]:
    rival = importlib.import_module("warploom.bench.rivals.torch_decoder")
    decoder = rival.TorchDecoder(config, held, config.context, compiled=True)
    decoder.capture()

    def run() -> None:
        for _ in range(STRETCH):
            decoder.step()
        decoder.wait()

    def stretch() -> float:
        decoder.position.fill_(config.context - STRETCH)
        decoder.wait()
        return 1e3 * seconds(run) / STRETCH

    return stretch
