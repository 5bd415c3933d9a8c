"""Runs one sequence through the token kernel: prompts in pieces of up to 8 tokens, then a launch a
token. A decoder like `runner.Runner`, for models that fit the kernel's rules; `why_not` says which.

Token and position live on the device, so one bound launch is right for every later token. Knows
neither text nor sampling.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.base.errors import ShapeError
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place
from warploom.engine.refusal import refuse
from warploom.engine.room import Sizes, require_free
from warploom.engine.weights import DTYPES, Weights
from warploom.kernels import token
from warploom.runtime.stop import Stop

PAGE = 64
"""Rows of a page. One sequence has them in order."""
_SIMULATED = (4, 4)  # blocks and multiplying warps on the simulator

Progress = Callable[[int, int], None]


def shape_of(config: ModelConfig) -> token.Shape:
    """The sizes that the kernel asks for."""
    return token.Shape(
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        feed_forward=config.feed_forward,
        vocabulary=config.vocabulary,
        rotary_dim=config.rotary_dim,
        rope_style=config.rope_style,
        parallel=config.parallel,
        gated=config.gated,
    )


def why_not(config: ModelConfig, place: Place, dtype: str) -> str:
    """Why a model does not run in the token kernel, with the rule that it breaks; empty where it
    does."""
    if dtype not in ("bf16", "f16"):
        return f"the token kernel has weights of bf16 or f16, not {dtype}"
    try:
        plan_of(config, place)
    except ShapeError as refused:
        report = refused.reports[0]
        return "; ".join((report.message, *report.notes))
    return ""


def _size(place: Place) -> tuple[int, int]:
    """Blocks of a launch, and multiplying warps (0: what suits the model)."""
    return (place.multiprocessors, 0) if place.is_gpu else _SIMULATED


def plan_of(config: ModelConfig, place: Place) -> token.Plan:
    """How a model is dealt to the blocks of a device."""
    return token.make(shape_of(config), *_size(place))


@dataclass(frozen=True, slots=True)
class Packed:
    """A model's weights on a device in the order of a plan."""

    plan: token.Plan
    weights: token.Weights


def pack(
    config: ModelConfig, held: Weights, place: Place, dtype: str, progress: Progress | None = None
) -> Packed:
    """Brings weights of the host to a device and packs them there, a layer at a time."""
    plan = plan_of(config, place)
    packed = place.empty((plan.total_steps, plan.step_elements), DTYPES[dtype])
    for number, layer in enumerate(held.layers):
        for name, matrix in zip(
            ("qkv", "attention_out", "gate_up", "down"), plan.matrices, strict=True
        ):
            token.packing.pack(plan, matrix, place.put(getattr(layer, name)), packed, number)
        if progress:
            progress(number + 1, len(held.layers) + 1)
    token.packing.pack(plan, plan.head, place.put(held.head), packed)
    weights = arranged(held, packed, place)
    if progress:
        progress(len(held.layers) + 1, len(held.layers) + 1)
    return Packed(plan, weights)


def arranged(held: Weights, packed: Any, place: Place) -> token.Weights:
    """Packed matrices, and the rest of the weights beside them."""
    vectors = {name: place.put(array) for name, array in _vectors(held).items()}
    return token.Weights(packed=packed, embedding=place.put(held.embedding), **vectors)


def _vectors(held: Weights) -> dict[str, np.ndarray]:
    """Norms and biases of all layers, as far as the model has them."""

    def in_turn(first: str, second: str, last: Any) -> np.ndarray:
        rows = [getattr(layer, name) for layer in held.layers for name in (first, second)]
        return np.stack([*rows, last])

    found = {
        "norms": in_turn("attention_norm", "ffn_norm", held.final_norm),
        "frequencies": held.frequencies,
    }
    if held.final_norm_bias is not None:
        found["norm_biases"] = in_turn("attention_norm_bias", "ffn_norm_bias", held.final_norm_bias)
    for name in ("q_norm", "k_norm", "qkv_bias", "out_bias", "up_bias", "down_bias"):
        rows = [getattr(layer, name) for layer in held.layers]
        if rows[0] is not None:
            found[name] = np.stack(rows)
    return found


class TokenRunner:
    """A decoder (see `generation.Decoder`) for one sequence at a time."""

    def __init__(
        self, config: ModelConfig, packed: Packed, place: Place, dtype: str, context: int
    ) -> None:
        self.config = config
        self.context = context
        self._place = place
        self._packed = packed
        shape = cache_shape(config, context)
        pages = shape[1]
        self._cache = token.Cache(
            keys=place.zeros(shape, DTYPES[dtype]),
            values=place.zeros(shape, DTYPES[dtype]),
            pages=place.put(np.arange(pages, dtype=np.int32)[None]),
        )
        self._prompt = self._columns(token.MOST_TOKENS)
        self._one = self._columns(1)
        self._stop = Stop(place.name)
        self._launches: dict[tuple[int, int, bool], Callable[[], object]] = {}
        self._works: dict[tuple[int, int], token.Workspace] = {}
        self._newest = (self._one, 1)  # columns and rounds of the last launch with a head,
        self._row = 0  # and which of its logits are the last ones
        self._length = 0
        self._best: int | None = None
        self._cut = False

    @property
    def cache_bytes(self) -> int:
        """Size of the key-value cache."""
        arrays = (self._cache.keys, self._cache.values)
        return sum(int(np.prod(a.shape)) * np.dtype(a.dtype).itemsize for a in arrays)

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._length

    @property
    def returns_early(self) -> bool:
        """Whether launches go on after the call that makes them."""
        return self._place.is_gpu

    @property
    def launches_a_token(self) -> int:
        """Kernel launches of one token."""
        return 1

    def feed(self, ids: Sequence[int], progress: Progress | None = None) -> None:
        """Starts a sequence with a prompt; only its last piece goes through the output head."""
        require_free(self.context, 0, len(ids))
        self._restart()
        for start in range(0, len(ids), token.MOST_TOKENS):
            piece = ids[start : start + token.MOST_TOKENS]
            self._piece(piece, head=start + len(piece) == len(ids))
            if progress:
                progress(self._length, len(ids))

    def all_logits(self, ids: Sequence[int], last: int) -> np.ndarray:
        """Logits [last, vocabulary] after each of the last ids of a new sequence."""
        require_free(self.context, 0, len(ids))
        self._restart()
        out = np.empty((last, self.config.vocabulary), np.float32)
        skipped = len(ids) - last
        for start in range(0, len(ids), token.MOST_TOKENS):
            piece = ids[start : start + token.MOST_TOKENS]
            end = start + len(piece) - skipped
            count = min(len(piece), max(0, end))
            self._piece(piece, head=count > 0 or start + len(piece) == len(ids))
            if count:
                found = self._read(self._works[token.MOST_TOKENS, 1].logits)
                out[end - count : end] = found[len(piece) - count : len(piece)]
        return out

    def best(self) -> int:
        """The token with the largest logit after the last one."""
        if self._best is None:
            columns, rounds = self._newest
            chosen = self._read(self._works[columns.count, rounds].chosen)
            self._best = int(chosen.reshape(-1)[self._row])
        return self._best

    def logits(self) -> np.ndarray:
        """The f32 logits [vocabulary] after the last token."""
        columns, rounds = self._newest
        return self._read(self._works[columns.count, rounds].logits)[self._row]

    def advance(self, token: int) -> None:
        """Appends a token."""
        self._follow(token)
        self._go_on(1)

    def advance_unseen(self) -> None:
        """Appends the best token; after a prompt it is read once, then nothing is."""
        if self._newest[0] is not self._one:
            self._follow(self.best())
        self._go_on(1)

    def run_ahead(self, token: int, rounds: int) -> None:
        """Appends a token and the `rounds` - 1 best ones behind it, in one launch."""
        self._follow(token)
        self._go_on(rounds)

    def found(self) -> tuple[list[int], np.ndarray]:
        """The best token and the logits after each token of the last launch; the last one of these
        tokens is not appended yet."""
        columns, rounds = self._newest
        work = self._works[columns.count, rounds]
        chosen = self._read(work.chosen).reshape(-1).tolist()
        self._best = chosen[-1]
        return chosen, self._read(work.logits)

    def synchronise(self) -> None:
        """Waits until everything launched is done."""
        self._read(self._one.ids)

    def _restart(self) -> None:
        self._length = 0
        self._best = None
        self._cut = False

    def _columns(self, count: int) -> token.Columns:
        def made() -> Any:
            return self._place.zeros((count,), np.int32)

        return token.Columns(made(), made(), made())

    def _piece(self, ids: Sequence[int], head: bool) -> None:
        """A piece of a prompt: always 8 columns, so that one variant serves all lengths."""
        given = np.zeros(token.MOST_TOKENS, np.int32)
        positions = np.full(token.MOST_TOKENS, -1, np.int32)
        given[: len(ids)] = ids
        positions[: len(ids)] = np.arange(self._length, self._length + len(ids))
        self._place.write(self._prompt.ids, given)
        self._place.write(self._prompt.positions, positions)
        self._launch(self._prompt, 1, head)
        self._length += len(ids)
        if head:
            self._newest, self._row, self._best = (self._prompt, 1), len(ids) - 1, None

    def _follow(self, token: int) -> None:
        """One column goes on with a token. The device knows it already where it is the best one."""
        self._check_whole()
        if self._newest[0] is not self._one:
            self._place.write(self._one.ids, np.array([token], np.int32))
            self._place.write(self._one.positions, np.array([self._length], np.int32))
        elif token != self.best():
            self._place.write(self._one.ids, np.array([token], np.int32))

    def _go_on(self, rounds: int) -> None:
        self._check_whole()
        require_free(self.context, self._length, rounds)
        self._launch(self._one, rounds, head=True)
        self._length += rounds
        self._newest, self._row, self._best = (self._one, rounds), rounds - 1, None

    def _check_whole(self) -> None:
        if self._cut:
            raise refuse(
                "E308",
                "the sequence was cut off by an interrupt",
                notes=["what the interrupted launch left in the cache means nothing"],
                hint="start it anew with its tokens",
            )

    def _launch(self, columns: token.Columns, rounds: int, head: bool) -> None:
        key = (columns.count, rounds, head)
        if key not in self._launches:
            self._launches[key] = self._bound(columns, rounds, head)
        try:
            self._launches[key]()
        except BaseException:  # on the simulator the work is done here
            self._abandon()
            raise

    def _read(self, array: Any) -> np.ndarray:
        """A host copy, once everything launched is done. Ctrl-C ends it."""
        try:
            self._place.wait()
        except BaseException:
            self._abandon()
            raise
        return self._place.read(array)

    def _abandon(self) -> None:
        """Lets launches end without waiting for each other's blocks, and what they hand on begin
        anew: the next launch is right, the sequence is not."""
        self._cut = True
        self._stop.ask()
        self._stop.clear()
        for work in self._works.values():
            self._place.write(work.state, np.zeros(work.state.shape, np.int32))

    def _bound(self, columns: token.Columns, rounds: int, head: bool) -> Callable[[], object]:
        plan, weights = self._packed.plan, self._packed.weights
        key = columns.count, rounds
        if key not in self._works:
            room = self._cache.context
            self._works[key] = token.Workspace.make(
                plan, columns.count, room, self._place.zeros, rounds
            )
        made = token.call(
            plan, weights, self._cache, columns, self._works[key],
            eps=self.config.norm_eps, scale=self.config.scale,
            rounds=rounds, head=head, stop=self._stop,
        )  # fmt: skip
        return made.launcher.bound(*made.args, **made.kwargs)


def cache_shape(config: ModelConfig, context: int) -> tuple[int, ...]:
    """Of the keys, and of the values, of one sequence."""
    return (config.layers, -(-context // PAGE), PAGE, config.kv_heads, config.head_dim)


def sizes(config: ModelConfig, place: Place, dtype: str, context: int, rounds: int = 1) -> Sizes:
    """Bytes that the kernel needs for a model: packed weights, cache, and what lies between
    phases."""
    plan = plan_of(config, place)
    size = np.dtype(DTYPES[dtype]).itemsize
    table = config.vocabulary * config.hidden
    vectors = 4 * (config.parameters - _in_matrices(config))
    weights = (plan.total_steps * plan.step_elements + table) * size + vectors
    cache = 2 * math.prod(cache_shape(config, context)) * size
    taken = 0

    def count(shape: tuple[int, ...], kind: Any) -> Any:
        nonlocal taken
        taken += math.prod(shape) * np.dtype(kind).itemsize

    room = -(-context // PAGE) * PAGE
    for columns, times in ((token.MOST_TOKENS, 1), (1, 1), (1, rounds)):
        token.Workspace.make(plan, columns, room, count, times)
    # A matrix at a time lies there before it is packed.
    largest = size * max(table, (1 + config.gated) * config.feed_forward * config.hidden)
    return Sizes(weights, cache, taken + largest)


def _in_matrices(config: ModelConfig) -> int:
    """Numbers of the matrices and tables of a model."""
    attention = config.hidden * (2 * config.q_size + 2 * config.kv_size)
    layer = attention + (2 + config.gated) * config.hidden * config.feed_forward
    tables = config.vocabulary * config.hidden * (1 if config.tied else 2)
    return config.layers * layer + tables
