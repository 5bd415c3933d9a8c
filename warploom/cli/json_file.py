"""`--json FILE`: one object to a file, or to stdout for `-`."""

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from warploom.base.errors import error

HELP = "write one JSON object to FILE (- is stdout)"


def write(target: str, data: dict[str, Any]) -> None:
    """Write the object. Raises LaunchError H021 where the file cannot be written."""
    text = json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as why:
        raise unwritable(target, why) from why


def _refuse(target: str | None) -> None:
    if target is None or target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise unwritable(target, OSError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if not path.parent.is_dir():
        raise unwritable(target, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))


def unwritable(target: str, why: OSError) -> Exception:
    """What a verb raises for a file of `--json` that the system refuses."""
    text = f"cannot write {target}: {why.strerror or why}"
    return error("H021", text, hint="--json takes a file in a folder that exists, or - for stdout")


@contextmanager
def kept_clean(path: str | None) -> Iterator[None]:
    """Where the JSON text goes to stdout, let all else go to stderr: what a kernel prints on either
    device, and a prompt. Before long work, refuse a file that cannot be written."""
    _refuse(path)
    if path != "-":
        yield
        return
    sys.stdout.flush()
    held = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(held, 1)
        os.close(held)
