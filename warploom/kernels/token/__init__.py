"""Whole tokens in one launch: see `kernel.py` for the phases, `plan.py` for the rules of shapes."""

from warploom.kernels.token import packing
from warploom.kernels.token.arrays import Cache, Columns, Weights, Workspace
from warploom.kernels.token.launch import call, decode
from warploom.kernels.token.plan import MOST_TOKENS, Plan, Shape, make

__all__ = [
    "MOST_TOKENS",
    "Cache",
    "Columns",
    "Plan",
    "Shape",
    "Weights",
    "Workspace",
    "call",
    "decode",
    "make",
    "packing",
]
