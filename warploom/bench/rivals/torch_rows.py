"""Rivals of row functions in torch, eager and compiled, and a copy of the same bytes.

Also holds what all sides share: random rows beyond the L2, and float64 results of some rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from warploom.bench.rivals.torch_gemm import BEYOND_L2

EPS = 1e-5


@dataclass
class Operands:
    """x and outputs [T, H] of bf16, weight and bias [H]."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    ours: torch.Tensor
    theirs: torch.Tensor


def operands(rows: int, columns: int, seed: int) -> list[Operands]:
    """Sets of operands that together do not fit the L2, at least two."""
    draw = torch.Generator("cuda").manual_seed(seed)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device="cuda", generator=draw)

    count = max(2, -(-BEYOND_L2 // (4 * rows * columns)))
    return [
        Operands(
            *(drawn(rows, columns), drawn(columns), drawn(columns)),
            *(torch.zeros((rows, columns), dtype=torch.bfloat16, device="cuda") for _ in "ab"),
        )
        for _ in range(count)
    ]


def copied(held: Operands) -> None:
    """What moves the same bytes and computes nothing."""
    held.theirs.copy_(held.x)


def _rms_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, EPS)


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def _softmax(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.softmax(x, -1)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "softmax": _softmax,
}


def sides(kind: str) -> dict[str, Callable[[Operands], Any]]:
    """Launches of a row function by name; their results are new tensors, for torch has no `out`."""
    eager = FUNCTIONS[kind]
    compiled = torch.compile(eager, dynamic=False)
    return {
        "torch": lambda held: eager(held.x, held.weight, held.bias),
        "torch_compile": lambda held: compiled(held.x, held.weight, held.bias),
    }


def truth(kind: str, held: Operands, rows: int) -> torch.Tensor:
    """The first rows of the result in float64."""
    given = (held.x[:rows], held.weight, held.bias)
    return FUNCTIONS[kind](*(tensor.double() for tensor in given))


def error(made: torch.Tensor, wanted: torch.Tensor) -> float:
    """Distance of some rows from float64, of their norm."""
    return float((made[: len(wanted)].double() - wanted).norm() / wanted.norm())
