"""A hash over the compiler's own sources and tables: an edited pass must not meet cubins of the old
one."""

from __future__ import annotations

import hashlib
import time
import uuid
from functools import cache
from pathlib import Path

import warploom

# Files of these folders can change what is compiled: a table says what protocol a collective takes.
_KINDS = ("*.py", "*.json")
_COMPILER = ("base", "ir", "language", "frontend", "passes", "codegen", "runtime")


@cache
def compiler_digest() -> str:
    """The hash, taken once a process.

    Where a source was edited after this process began to import it, what is loaded is not what
    lies there: then the hash is one that no other process has.
    """
    return digest_of(Path(__file__).parents[1], warploom.IMPORTED_NS)


def digest_of(top: Path, imported_ns: int) -> str:
    """The hash over the sources below a folder, as they were at a time."""
    digest = hashlib.sha256()
    for part in _COMPILER:
        files = (path for kind in _KINDS for path in (top / part).rglob(kind))
        for path in sorted(files):
            digest.update(path.relative_to(top).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
            # Times that lie ahead come from a clock that is wrong, not from an edit.
            if imported_ns < path.stat().st_mtime_ns <= time.time_ns():
                digest.update(uuid.uuid4().bytes)
    return digest.hexdigest()
