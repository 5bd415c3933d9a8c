"""Random bf16 arrays made on a GPU by torch, for models that the host would take minutes for."""

import torch

from warploom.bench.decode_models import power_of_two


class TorchRandom:
    """Normal numbers of a seeded generator (see `decode_models.Random`)."""

    def __init__(self, seed: int, place: str = "cuda") -> None:
        self._place = place
        self._draw = torch.Generator(place).manual_seed(seed)

    def matrix(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """A bf16 tensor of normal numbers of this standard deviation, rounded to a power of two."""
        found = torch.empty(shape, dtype=torch.bfloat16, device=self._place)
        return found.normal_(0, power_of_two(scale), generator=self._draw)
