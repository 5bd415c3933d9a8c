"""A hash over the compiler's own sources: an edited pass must not meet cubins of the old one."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

# Folders that can change what is compiled.
_COMPILER = ("base", "ir", "language", "frontend", "passes", "codegen", "runtime")


@cache
def compiler_digest() -> str:
    """The hash, taken once a process."""
    top = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for part in _COMPILER:
        for path in sorted((top / part).rglob("*.py")):
            digest.update(path.relative_to(top).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
