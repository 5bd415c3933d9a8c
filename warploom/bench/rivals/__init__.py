"""What a user would pick instead, one module a rival. Only here does `bench` know torch."""

import importlib
from typing import Any

from warploom.bench.record import Row


def in_triton(module: str, row: Row) -> Any:
    """A rival written in Triton, or None and a note in the row where Triton is not installed."""
    try:
        return importlib.import_module(f"{__name__}.{module}")
    except ImportError as why:
        row.note = f"no rival triton: {why}"
        return None
