"""`warploom doctor`: what this machine can run, and what to install. Exit code 0 unless something
that is installed does not work."""

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from warploom.base.target import target_of
from warploom.cli import json_file
from warploom.cli.verbs import FINE, NO
from warploom.runtime import cache, compile, driver, nvrtc

SCHEMA = 1
# Extra, and the packages that it brings.
EXTRAS = {
    "base": ("numpy", "ml-dtypes"),
    "cu13": ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"),
    "cu12": ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc-cu12"),
    "engine": ("tokenizers", "jinja2", "safetensors", "gguf"),
    "sass": ("nvidia-cuda-nvdisasm",),
}


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "doctor", description="Say what this machine can run, and what to install."
    )
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Look and print; returns the exit code."""
    facts = examine()
    if options.json:
        json_file.write(options.json, facts)
    if options.json != "-":
        for line in text(facts):
            print(line)
    return NO if facts["faults"] else FINE


def installed(package: str) -> str | None:
    """The version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def examine() -> dict[str, Any]:
    """All facts, as plain data: `faults` does not work, `advice` could be better."""
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {e: {p: installed(p) for p in names} for e, names in EXTRAS.items()},
        "faults": [],
        "advice": [],
    }
    facts["gpu"] = _gpu(facts)
    facts["nvrtc"] = _nvrtc(facts)
    store = compile.disk()
    folder = cache.folder()
    facts["cache"] = {"folder": str(folder) if folder else None, "writable": store.is_writable()}
    if not facts["cache"]["writable"]:
        facts["advice"].append(
            "the cache folder cannot be written: set WARPLOOM_CACHE to a folder of your own"
        )
    return facts


def _gpu(facts: dict[str, Any]) -> dict[str, Any]:
    problem = driver.problem()
    if problem is not None:
        report = problem.reports[0]
        if driver.is_likely():
            facts["advice"].append(report.hint or report.message)
        return {"usable": False, "why": report.message}
    major, minor = driver.driver_version()
    found: list[dict[str, Any]] = []
    for index in range(driver.device_count()):
        one = driver.facts(index)
        target = target_of(one.capability)
        found.append(
            {
                "index": index,
                "name": one.name,
                "capability": f"{one.capability[0]}.{one.capability[1]}",
                "memory_gb": round(one.memory_bytes / 1e9, 1),
                "target": target.arch if target else None,
            }
        )
        if target is None:
            facts["advice"].append(f"GPU {index} ({one.name}) is not supported")
    return {"usable": True, "cuda": f"{major}.{minor}", "devices": found}


def _nvrtc(facts: dict[str, Any]) -> dict[str, Any]:
    """NVRTC's version against the driver's: code of a newer CUDA does not load."""
    if nvrtc.installed_version() == "none":
        if facts["gpu"]["usable"]:
            extra = "cu13" if facts["gpu"]["cuda"].startswith("13") else "cu12"
            facts["advice"].append(f"pip install 'warploom[{extra}]' fits this driver")
        elif platform.system() != "Darwin":
            facts["advice"].append(
                "pip install 'warploom[cu13]' compiles for GPUs, without one too"
            )
        return {"version": None}
    found = nvrtc.installed_version()
    if facts["gpu"]["usable"]:
        cuda = facts["gpu"]["cuda"]
        if _numbers(found)[:2] > _numbers(cuda)[:2]:
            facts["faults"].append(
                f"NVRTC {found} is newer than the driver (CUDA {cuda}): install "
                f"warploom[{'cu12' if cuda.startswith('12') else 'cu13'}] or a newer driver"
            )
    return {"version": found}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def text(facts: dict[str, Any]) -> list[str]:
    """The facts for people."""
    lines = [f"python     {facts['python']} on {facts['system']}"]
    for extra, packages in facts["packages"].items():
        have = [f"{name} {found}" for name, found in packages.items() if found]
        lack = [name for name, found in packages.items() if not found]
        shown = ", ".join(have) or "nothing"
        lines.append(f"{extra:10} {shown}" + (f"; absent: {', '.join(lack)}" if lack else ""))
    lines.append(f"nvrtc      {facts['nvrtc']['version'] or 'not installed'}")
    gpu = facts["gpu"]
    if gpu["usable"]:
        lines.append(f"driver     CUDA {gpu['cuda']}")
        for one in gpu["devices"]:
            runs = f"compiles for {one['target']}" if one["target"] else "not supported"
            lines.append(f"gpu:{one['index']}      {one['name']}, {one['memory_gb']} GB, {runs}")
    else:
        lines.append(f"gpu        none: {gpu['why']}")
    lines.append("simulator  ready")
    where = facts["cache"]["folder"] or "none"
    state = "writable" if facts["cache"]["writable"] else "not writable"
    lines.append(f"cache      {where} ({state})")
    lines += [f"fault: {line}" for line in facts["faults"]]
    lines += [f"advice: {line}" for line in facts["advice"]]
    return lines
