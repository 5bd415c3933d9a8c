"""A decoder that says what it is told: the loop, the API and the command line without kernels."""

from collections.abc import Callable, Sequence

import numpy as np

VOCABULARY = 264


class Script:
    """After a prompt its tokens follow in order; the last one repeats."""

    returns_early = False

    def __init__(self, script: Sequence[int], context: int = 64) -> None:
        self.context = context
        self.script = list(script)
        self.fed: list[int] = []
        self.advanced: list[int] = []
        self.cache_bytes = 0

    def feed(self, ids: Sequence[int], progress: Callable[[int, int], None] | None = None) -> None:
        self.fed, self.advanced = list(ids), []
        if progress:
            progress(len(ids), len(ids))

    def logits(self) -> np.ndarray:
        logits = np.zeros(VOCABULARY, np.float32)
        logits[self.best()] = 2.0
        return logits

    def best(self) -> int:
        return self.script[min(len(self.advanced), len(self.script) - 1)]

    def advance(self, token: int) -> None:
        assert len(self.fed) + len(self.advanced) < self.context, "behind the end of the context"
        self.advanced.append(token)
