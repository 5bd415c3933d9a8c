"""Imports of packages that the base install does not bring, with a readable refusal without them.

Nothing here knows what a package is used for.
"""

import importlib
from typing import Any

from warploom.engine.refusal import refuse


def need(module: str, install: str = "'warploom[engine]'") -> Any:
    """The imported module. Raises ModelError E305, naming what to install, where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise refuse(
            "E305",
            f"this needs the package `{module.split('.')[0]}`",
            notes=[f"importing it failed: {error}"],
            hint=f"pip install {install}",
        ) from error
