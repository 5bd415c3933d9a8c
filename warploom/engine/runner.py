"""Runs one sequence through the kernels: prompts in chunks of up to 8 tokens, then token by token.

Each step is recorded once and replayed; on a GPU it is one CUDA graph. Token and position live on
the device, so the same graph is right for every later token. Knows neither text nor sampling.
"""

from collections.abc import Callable, Sequence

import numpy as np

from warploom.engine.cache import SPLIT, Cache, make_cache
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place
from warploom.engine.room import Sizes, require_free
from warploom.engine.step import Buffers, Launches, build_step
from warploom.engine.weights import DTYPES, Weights
from warploom.runtime.graph import Graph, graph

CHUNK = 8
"""Tokens that the kernels take at the cost of reading the weights once."""


class Runner:
    """A decoder (see `generation.Decoder`) for one sequence at a time."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        place: Place,
        dtype: str,
        context: int,
        cache: Cache | None = None,
    ) -> None:
        self.config = config
        self.context = context
        self._place = place
        self._weights = weights
        self._cache = cache or make_cache(config, place, DTYPES[dtype], context)
        self._buffers = Buffers.make(config, place, CHUNK, context)
        self._steps: dict[tuple[int, int, int], _Step] = {}
        self._length = 0
        self._best: int | None = None

    @property
    def cache_bytes(self) -> int:
        """Size of the key-value cache."""
        return self._cache.bytes

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._length

    def feed(self, ids: Sequence[int], progress: Callable[[int, int], None] | None = None) -> None:
        """Starts a sequence with a prompt; only its last token goes through the output head."""
        require_free(self.context, 0, len(ids))
        self._restart()
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            self._run(chunk, heads=int(start + len(chunk) == len(ids)))
            if progress:
                progress(self._length, len(ids))
        self._follow()

    def all_logits(self, ids: Sequence[int], last: int) -> np.ndarray:
        """Logits [last, vocabulary] after each of the last ids of a new sequence."""
        require_free(self.context, 0, len(ids))
        self._restart()
        out = np.empty((last, self.config.vocabulary), np.float32)
        skipped = len(ids) - last
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            heads = min(len(chunk), max(0, start + len(chunk) - skipped))
            self._run(chunk, heads)
            if heads:
                end = start + len(chunk) - skipped
                out[end - heads : end] = self._place.read(self._buffers.logits[:heads])
        self._follow()
        return out

    def best(self) -> int:
        """The token with the largest logit after the last one."""
        if self._best is None:
            self._best = int(self._place.read(self._buffers.token)[0])
        return self._best

    def logits(self) -> np.ndarray:
        """The f32 logits [vocabulary] after the last token."""
        return self._place.read(self._buffers.logits[:1])[0]

    def advance(self, token: int) -> None:
        """Appends a token; the device already holds the best one and its position."""
        if token != self.best():
            self._place.write(self._buffers.token, np.array([token], np.int32))
        self.advance_unseen()

    def advance_unseen(self) -> None:
        """Appends the best token without reading it: nothing waits for the device."""
        require_free(self.context, self._length, 1)
        self._step(0, 1, self._length + 1)()
        self._length += 1
        self._best = None

    @property
    def returns_early(self) -> bool:
        """Whether launches go on after the call that makes them."""
        return self._place.is_gpu

    def go_on(self, token: int, length: int) -> None:
        """The next token stands behind `length` others, whose keys and values lie in the cache."""
        self._length = length
        self._place.write(self._buffers.token, np.array([token], np.int32))
        self._follow()
        self._best = None

    @property
    def launches_a_token(self) -> int:
        """Kernel launches of the step of one token; 0 before the first one ran."""
        return self._step(0, 1, max(1, self._length)).launches

    def synchronise(self) -> None:
        """Waits until everything launched is done."""
        self._place.read(self._buffers.token)

    def _restart(self) -> None:
        self._length = 0
        self._best = None

    def _run(self, chunk: Sequence[int], heads: int) -> None:
        """One chunk of a prompt, with logits for its last `heads` tokens."""
        count = len(chunk)
        positions = np.arange(self._length, self._length + count, dtype=np.int32)
        self._place.write(self._buffers.ids[:count], np.asarray(chunk, np.int32))
        self._place.write(self._buffers.positions[:count], positions)
        self._step(count, heads, self._length + count)()
        self._length += count

    def _follow(self) -> None:
        """After a prompt: the device's own token and position continue from here."""
        self._place.write(self._buffers.position, np.array([self._length], np.int32))

    def _step(self, count: int, heads: int, tokens: int) -> "_Step":
        """The step for `count` tokens of a prompt (0: the device's own) that ends at `tokens`."""
        rows = self._cache.rows_for(tokens, whole=self._place.is_gpu)
        key = (count, heads, rows)
        if key not in self._steps:
            launches = build_step(
                self.config, self._weights, self._cache, self._buffers, count, heads, rows
            )
            self._steps[key] = _Step(launches)
        return self._steps[key]


class _Step:
    """Launches that run as they are the first time, and as one recording from then on."""

    def __init__(self, launches: Launches) -> None:
        self._launches = launches
        self._graph: Graph | None = None

    def __call__(self) -> None:
        if self._graph is None:
            # Runs the launches once, then records them without running them.
            self._graph = graph(self._launches)
        else:
            self._graph.replay()

    @property
    def launches(self) -> int:
        """Kernel launches of the recording; 0 where there is none yet."""
        return 0 if self._graph is None else self._graph.launches


def sizes(config: ModelConfig, dtype: str, context: int) -> Sizes:
    """Bytes that the kernels of one launch an operation need for a model."""
    size = np.dtype(DTYPES[dtype]).itemsize
    parts = -(-context // SPLIT)
    wide = config.hidden * 2 + config.q_size * 2 + 2 * config.kv_size + config.vocabulary
    wide += (2 + config.gated) * config.feed_forward
    wide += config.heads * parts * (config.head_dim + 2)
    cache = 2 * config.layers * context * config.kv_size * size
    return Sizes(config.parameters * size, cache, 4 * CHUNK * wide)
