"""The disk cache: entries are directories, published by one rename and checked when read.

An entry holds named files and `SUM`, their checksums. Whatever is wrong with an entry or with the
folder, the caller gets None or a quiet refusal to store, never an exception: then the kernel is
compiled and lives in memory. Knows nothing of what the files mean.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from warploom.base.errors import report

SOURCE, IMAGE = "source", "image"
_SUM = "SUM"
_FORMAT = "v1"
# Unfinished entries of processes that died; older ones than this are nobody's any more.
_STALE_SECONDS = 3600.0


def is_off() -> bool:
    """Whether WARPLOOM_CACHE=off asks for no cache on disk."""
    return os.environ.get("WARPLOOM_CACHE") == "off"


def folder() -> Path | None:
    """Where the cache lives: $WARPLOOM_CACHE, else `warploom/kernels` in the user's cache folder.

    None where there is no home folder, and for WARPLOOM_CACHE=off.
    """
    if is_off():
        return None
    if named := os.environ.get("WARPLOOM_CACHE"):
        return Path(named)
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "warploom" / "kernels"
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "warploom" / "kernels"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return caches / "warploom" / "kernels"


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored entry, as `warploom cache list` shows it."""

    kind: str
    key: str
    path: Path
    bytes: int
    made: float


class DiskCache:
    """Entries by kind and key below one folder. Safe among processes; never raises OSError."""

    def __init__(self, root: Path | None) -> None:
        self.folder = root
        self.root = root / _FORMAT if root is not None else None
        self._complained = False

    def load(self, kind: str, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None where it is absent or damaged (then it is removed)."""
        if self.root is None:
            return None
        path = self._path(kind, key)
        for _ in range(2):
            try:
                return _read(path, key)
            except FileNotFoundError:
                if not path.is_dir():
                    return None
                # Another process may have published the entry in between: look once more.
            except (OSError, ValueError, KeyError, TypeError):
                break
        if path.exists():
            self._say("C006", f"the cache entry {key[:12]} is damaged; it is built again")
            self._remove(path)
        return None

    def store(self, kind: str, key: str, files: Mapping[str, bytes]) -> bool:
        """Publish an entry; False where that is not possible (one warning a process says why)."""
        if self.root is None:
            if not is_off():
                self._say("C005", "there is no home folder for the cache", hint=_HINT)
            return False
        final = self._path(kind, key)
        temporary: Path | None = None
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".new-{os.getpid()}-", dir=self.root))
            for name, data in files.items():
                (temporary / name).write_bytes(data)
            sums = {"key": key, "files": sorted(files), "of": _digest(files)}
            (temporary / _SUM).write_bytes(json.dumps(sums).encode())
            os.rename(temporary, final)
        except OSError as why:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
            if final.is_dir():
                # Another process was first; both built the same.
                return True
            self._refused(why)
            return False
        return True

    def entries(self) -> Iterator[Entry]:
        """All entries, in the order of kind and key."""
        for kind in (SOURCE, IMAGE):
            top = self.root / kind if self.root is not None else None
            if top is None or not top.is_dir():
                continue
            for path in sorted(top.glob("??/*")):
                with contextlib.suppress(OSError):
                    size = sum(f.stat().st_size for f in path.iterdir())
                    yield Entry(kind, path.name, path, size, path.stat().st_mtime)

    def is_writable(self) -> bool:
        """Whether entries can be stored now."""
        if self.root is None:
            return False
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            os.rmdir(tempfile.mkdtemp(prefix=f".new-{os.getpid()}-", dir=self.root))
        except OSError:
            return False
        return True

    def clear(self) -> int:
        """Remove every entry and what dead processes left; returns the number of entries."""
        count = 0
        for entry in list(self.entries()):
            self._remove(entry.path)
            count += not entry.path.exists()
        self.sweep(0.0)
        return count

    def sweep(self, age: float = _STALE_SECONDS) -> None:
        """Remove unfinished entries older than `age` seconds."""
        if self.root is None or not self.root.is_dir():
            return
        for path in self.root.glob(".*-*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime >= age:
                    shutil.rmtree(path, ignore_errors=True)

    def _path(self, kind: str, key: str) -> Path:
        assert self.root is not None
        return self.root / kind / key[:2] / key

    def _remove(self, path: Path) -> None:
        """Take an entry away in one step, so that no reader sees half of it."""
        assert self.root is not None
        try:
            grave = Path(tempfile.mkdtemp(prefix=f".old-{os.getpid()}-", dir=self.root))
            os.rename(path, grave / "entry")
            shutil.rmtree(grave, ignore_errors=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)

    def _refused(self, why: OSError) -> None:
        full = why.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        reason = why.strerror or str(why)
        place = str(self.root.parent) if self.root is not None else "?"
        if full:
            self._say("C008", f"no space left for the cache in {place} ({reason})", hint=_HINT)
        else:
            self._say("C005", f"the cache in {place} cannot be written ({reason})", hint=_HINT)

    def _say(self, code: str, message: str, hint: str = "") -> None:
        """One warning a process."""
        if self._complained or os.environ.get("WARPLOOM_QUIET"):
            return
        self._complained = True
        text = report(code, message, hint=hint, severity="warning").render()
        print(text, file=sys.stderr, flush=True)


_HINT = "kernels are compiled anew in each process; set WARPLOOM_CACHE to a folder of your own"


def _read(path: Path, key: str) -> dict[str, bytes]:
    """The files of an entry; raises ValueError where they are not what was stored."""
    sums = json.loads((path / _SUM).read_bytes())
    files = {name: (path / name).read_bytes() for name in sums["files"]}
    if sums["of"] != _digest(files) or sums["key"] != key:
        raise ValueError(f"{path} does not hold what was stored")
    return files


def _digest(files: Mapping[str, bytes]) -> str:
    """The checksum of files, names and lengths included."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()
