"""The loop from prompt ids to pieces of text: feed, pick, advance, stop.

Knows a decoder only by what it offers, so that the loop is the same on every device and in tests.
"""

import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from warploom.engine.sampler import Sampling, log_probability, pick
from warploom.engine.tokenizer import TextStream, Tokenizer

Progress = Callable[[str, int, int], None]
"""Hears (stage, done, total); stages are `load`, `pack`, `prompt` and `token`."""


class Decoder(Protocol):
    """One sequence on one device: a key-value cache and the logits after its last token."""

    @property
    def context(self) -> int: ...

    @property
    def returns_early(self) -> bool:
        """Whether the work of a call goes on after it, until something is read."""
        ...

    def feed(self, ids: Sequence[int], progress: Callable[[int, int], None] | None) -> None:
        """Starts anew with a prompt."""
        ...

    def best(self) -> int:
        """The token with the largest logit after the last one; the lowest id of equal ones."""
        ...

    def logits(self) -> np.ndarray:
        """The f32 logits [vocabulary] after the last token."""
        ...

    def advance(self, token: int) -> None:
        """Appends a token."""
        ...


@runtime_checkable
class Ahead(Protocol):
    """A decoder that computes several tokens in a launch."""

    def run_ahead(self, token: int, rounds: int) -> None:
        """Appends a token and the `rounds` - 1 best ones behind it."""
        ...

    def found(self) -> tuple[list[int], np.ndarray]:
        """The best token and the logits after each of them; the last token is not appended."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One generated token. `logprob` is the model's own, before any sampling setting.

    `text` may be empty: inside a character, at a token that ends the text, or while it may still
    become a stop text.
    """

    text: str
    id: int
    logprob: float


@dataclass
class Seconds:
    """Where the time of a generation went. `tokens` has one entry a token after the first."""

    prompt: float = 0.0
    tokens: list[float] = field(default_factory=list)

    @property
    def token_median(self) -> float | None:
        """The median time of a token, the first one (it belongs to the prompt) left out."""
        return statistics.median(self.tokens) if self.tokens else None


class Generation(Iterator[Piece]):
    """Pieces as they come. `ids`, `text`, `finish` and `seconds` grow with it.

    `finish` is `stop` (an end token or a stop text), `length` (as many tokens as asked for, or
    the context is full), or `interrupt` as long as it has not ended by itself.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        prompt_ids: Sequence[int],
        max_new_tokens: int,
        sampling: Sampling,
        stop: Sequence[str] = (),
        progress: Progress | None = None,
        rounds: int = 1,
    ) -> None:
        self.prompt_ids = list(prompt_ids)
        self.ids: list[int] = []
        self.text = ""
        self.finish = "interrupt"
        self.seconds = Seconds()
        self._decoder = decoder
        self._ends = frozenset(tokenizer.end_ids)
        self._stream = TextStream(tokenizer)
        self._stop = StopText(stop)
        self._limit = min(max_new_tokens, decoder.context - len(self.prompt_ids))
        self._sampling = sampling
        self._progress = progress
        self.tokens_per_launch = rounds
        self._pieces = self._run()

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> Piece:
        return next(self._pieces)

    def close(self) -> None:
        """Ends the generation early; `finish` stays `interrupt` unless it had ended."""
        self._pieces.close()

    def _run(self) -> Generator[Piece, None, None]:
        hear = self._progress or (lambda stage, done, total: None)
        start = time.perf_counter()
        if self._limit < 1:
            self.finish = "length"
            return
        hear("prompt", 0, len(self.prompt_ids))
        self._decoder.feed(self.prompt_ids, lambda done, total: hear("prompt", done, total))
        tokens, logits = self._picked()
        self.seconds.prompt = time.perf_counter() - start
        while True:
            start = time.perf_counter()
            # The next ones are computed while the host looks at these.
            rounds = self._go_on(tokens) if self._decoder.returns_early else 0
            for token, row in zip(tokens, logits, strict=True):
                self.ids.append(token)
                hear("token", len(self.ids), self._limit)
                text = self._take(token)
                self.text += text
                yield Piece(text, token, log_probability(row, token))
                if self.finish != "interrupt":
                    return
            rounds = rounds or self._go_on([])
            tokens, logits = self._found(rounds)
            spent = time.perf_counter() - start
            self.seconds.tokens += [spent / len(tokens)] * len(tokens)

    def _go_on(self, tokens: Sequence[int]) -> int:
        """Appends the last token and lets the decoder compute what follows, unless one of the
        tokens that are not taken yet ends it; how many will follow."""
        left = self._limit - len(self.ids) - len(tokens)
        if left < 1 or not self._ends.isdisjoint(tokens):
            return 0
        last, count = [*self.ids, *tokens][-1], self.tokens_per_launch
        # Fewer would be a kernel of their own.
        if 1 < count <= left and isinstance(self._decoder, Ahead):
            self._decoder.run_ahead(last, count)
            return count
        self._decoder.advance(last)
        return 1

    def _found(self, rounds: int) -> tuple[list[int], np.ndarray]:
        """The tokens that follow, and the logits that they are picked from."""
        if rounds > 1 and isinstance(self._decoder, Ahead):
            return self._decoder.found()
        return self._picked()

    def _picked(self) -> tuple[list[int], np.ndarray]:
        logits = self._decoder.logits()
        if self._sampling.greedy:
            return [self._decoder.best()], logits[None]
        position = len(self.prompt_ids) + len(self.ids)
        return [pick(logits, self._sampling, position)], logits[None]

    def _take(self, token: int) -> str:
        """The text that a token makes certain; sets `finish` where it is the last one."""
        if token in self._ends:
            self.finish = "stop"
            return self._stop.push(self._stream.finish()) + self._stop.finish()
        text = self._stop.push(self._stream.push(token))
        if self._stop.found:
            self.finish = "stop"
        elif len(self.ids) >= self._limit:
            self.finish = "length"
            text += self._stop.push(self._stream.finish()) + self._stop.finish()
        return text


class StopText:
    """Cuts a stream of text before the first stop text, holding back what may become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The text that is certain to lie before any stop text."""
        if self.found:
            return ""
        self._held += text
        hit = first_stop(self._held, self._stops)
        if hit is not None:
            self.found = True
            given, self._held = self._held[:hit], ""
            return given
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        given, self._held = self._held[:cut], self._held[cut:]
        return given

    def finish(self) -> str:
        """What was held back, where no stop text came of it."""
        given, self._held = self._held, ""
        return given


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the stop text starts that is complete first; of several the longest."""
    places = [(text.find(stop), stop) for stop in stops]
    hits = [(place + len(stop), place) for place, stop in places if place >= 0]
    return min(hits)[1] if hits else None


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that is a beginning of `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
