"""Imports of the packages that the extra `engine` brings, with a readable refusal without them.

The base install runs kernels only; nothing here knows what a package is used for.
"""

import importlib
from typing import Any

from warploom.engine.refusal import refuse


def need(module: str) -> Any:
    """The imported module. Raises ModelError E305 where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise refuse(
            "E305",
            f"running a model needs the package `{module.split('.')[0]}`",
            notes=[f"importing it failed: {error}"],
            hint="pip install 'warploom[engine]'",
        ) from error
