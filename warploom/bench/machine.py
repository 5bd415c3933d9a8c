"""Where a measurement was made: machine, versions, commit. Reads facts, measures nothing."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tomllib
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from warploom.base.errors import error

PACKAGE = Path(__file__).resolve().parent.parent
ROOT = PACKAGE.parent
FACTS = PACKAGE / "base" / "hw"
# Distributions whose version can change a figure, by the name that files use.
_VERSIONS = {
    "numpy": ("numpy",),
    "ml_dtypes": ("ml-dtypes",),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    "cuda_core": ("cuda-core",),
    "torch": ("torch",),
    "triton": ("triton",),
}


def _said(*command: str) -> str | None:
    """What a command prints, or None where it does not exist or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@lru_cache(maxsize=1)
def gpu() -> tuple[str, str] | None:
    """(name, driver version) of the first GPU, or None."""
    line = _said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if not line:
        return None
    name, driver = line.splitlines()[0].rsplit(",", 1)
    return name.strip(), driver.strip()


def clock_mhz() -> int | None:
    """The clock of the first GPU's multiprocessors at this moment."""
    line = _said("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits")
    return int(line.splitlines()[0]) if line and line.splitlines()[0].isdigit() else None


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu() -> str:
    """The processor in words."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def name(device: str = "") -> str:
    """The name of this machine in paths: by its GPU where there is one (the first, unless its name
    is given), else by its cores."""
    found = gpu() if not device else None
    device = found[0] if found else device
    for path in sorted(FACTS.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if device and facts.get("device") == device:
            return path.stem
    if device:
        return device.lower().removeprefix("nvidia ").replace(" ", "-")
    return f"cpu{cores()}"


def facts(machine: str) -> dict[str, Any]:
    """What is written down about a machine; empty for an unknown one. The limits of WARPLOOM_HW, a
    file of `warploom hw --json`, count before those; raises LaunchError H021 where it is none."""
    path = FACTS / f"{machine}.json"
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if own := os.environ.get("WARPLOOM_HW"):
        held |= _limits_of(Path(own), machine)
    return held


def _limits_of(path: Path, machine: str) -> dict[str, Any]:
    """The measured limits of a file; none where it was measured on another kind of machine."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        limits = {name: one for name, one in data["limits"].items() if one["value"] is not None}
        return limits if data["machine"] == machine else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
        text = f"WARPLOOM_HW={path} is no file of limits: {type(why).__name__}: {why}"
        raise error("H021", text, hint="`warploom hw --json FILE` writes one") from None


def versions() -> dict[str, str]:
    """Versions of everything that can change a figure, as far as it is installed."""
    found = {"warploom": _own_version(), "python": platform.python_version()}
    for label, candidates in _VERSIONS.items():
        for distribution in candidates:
            try:
                found[label] = version(distribution)
                break
            except PackageNotFoundError:
                continue
    return found


def _own_version() -> str:
    """Of the installed package, else of the checkout."""
    try:
        return version("warploom")
    except PackageNotFoundError:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return project["project"]["version"]


def source_hash(package: Path = PACKAGE) -> str:
    """SHA-256 over the package's modules, by name in sorted order."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py"), key=lambda p: p.relative_to(package).as_posix()):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def commit() -> tuple[str | None, bool]:
    """(commit of the checkout or None, whether the package differs from it). A copy that lies in
    a folder of another repository is no checkout of that one."""
    found = _said("git", "-C", str(ROOT), "rev-parse", "HEAD")
    top = _said("git", "-C", str(ROOT), "rev-parse", "--show-toplevel")
    if found is None or top is None or not ROOT.samefile(top):
        return None, False
    changed = _said("git", "-C", str(ROOT), "status", "--porcelain", "--", "warploom")
    return found, bool(changed)


def describe(device: str) -> dict[str, Any]:
    """The head of a result file, as far as the machine decides it."""
    found = gpu() if device != "sim" else None
    return {
        "machine": name(),
        "device": found[0] if found else "simulator",
        "driver": found[1] if found else None,
        "cpu": cpu(),
        "cores": cores(),
        "versions": versions(),
        "command": " ".join(["warploom", *sys.argv[1:]]),
    }
