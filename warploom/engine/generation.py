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

    def ahead(self, token: int, rounds: int) -> tuple[list[int], np.ndarray]:
        """Appends a token and the `rounds` - 1 best ones behind it: the best token and the logits
        after each."""
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
        found = [self._pick()]
        self.seconds.prompt = time.perf_counter() - start
        while True:
            for token, logprob in found:
                self.ids.append(token)
                hear("token", len(self.ids), self._limit)
                text = self._take(token)
                self.text += text
                yield Piece(text, token, logprob)
                if self.finish != "interrupt":
                    return
            start = time.perf_counter()
            found = self._next()
            self.seconds.tokens += [(time.perf_counter() - start) / len(found)] * len(found)

    def _next(self) -> list[tuple[int, float]]:
        """Tokens behind the last one, and what the model gives them."""
        last = self.ids[-1]
        count, decoder = self.tokens_per_launch, self._decoder
        # Fewer would be a kernel of their own.
        fits = self._limit - len(self.ids) >= count
        if count > 1 and fits and isinstance(decoder, Ahead):
            tokens, logits = decoder.ahead(last, count)
            return [(t, log_probability(row, t)) for t, row in zip(tokens, logits, strict=True)]
        self._decoder.advance(last)
        return [self._pick()]

    def _pick(self) -> tuple[int, float]:
        logits = self._decoder.logits()
        if self._sampling.greedy:
            token = self._decoder.best()
        else:
            position = len(self.prompt_ids) + len(self.ids)
            token = pick(logits, self._sampling, position)
        return token, log_probability(logits, token)

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
