"""The key-value cache of one sequence: two arrays a layer, [context, kv_heads, head_dim].

Rows behind the current position are garbage that no kernel reads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.engine.config import ModelConfig
from warploom.engine.place import Place

SPLIT = 256
"""Keys that one block of the attention kernel takes; views end at multiples of it."""


@dataclass
class Cache:
    """Keys and values of every layer."""

    keys: list[Any]
    values: list[Any]
    context: int

    @property
    def bytes(self) -> int:
        """Size of all arrays together."""
        arrays = [*self.keys, *self.values]
        return sum(int(np.prod(a.shape)) * np.dtype(a.dtype).itemsize for a in arrays)

    def rows_for(self, tokens: int, whole: bool) -> int:
        """How many rows a launch that holds `tokens` tokens has to see.

        Blocks of the attention kernel beyond the sequence do nothing, but starting one costs the
        simulator time, so there the view grows with the sequence; a captured graph needs `whole`.
        """
        if whole:
            return self.context
        return min(self.context, -(-tokens // SPLIT) * SPLIT)


def make_cache(config: ModelConfig, place: Place, dtype: Any, context: int) -> Cache:
    """A cache of zeros for `context` tokens (the host commits pages as they are written)."""
    shape = (context, config.kv_heads, config.head_dim)
    keys = [place.zeros(shape, dtype) for _ in range(config.layers)]
    values = [place.zeros(shape, dtype) for _ in range(config.layers)]
    return Cache(keys, values, context)
