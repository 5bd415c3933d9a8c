"""The GPU half of the tests: python tests/run_gpu.py [--out FILE] [pytest arguments]

Nothing needs to be installed: the checkout is put on the path. Prints one table (a row a folder)
and writes it as JSON with --out. Exit codes: 0 all passed, 1 something failed or hung, 2 no GPU
or no test ran, 130 interrupted (what had run by then is shown and written).
"""

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 60
COLUMNS = ("passed", "failed", "hung", "skipped")
DEFAULTS = [
    *("-m", "gpu", "-n", "6", "--timeout", str(TIMEOUT_S), "--timeout-method", "thread"),
    *("--max-worker-restart", "200", "--continue-on-collection-errors"),
]


@dataclass
class Result:
    """What became of one test."""

    outcome: str
    seconds: float = 0.0
    text: str = ""


@dataclass
class Collector:
    """Gathers outcomes in the controlling process, from the reports of all workers."""

    notes: Path
    results: dict[str, Result] = field(default_factory=dict)
    limit_s: float = TIMEOUT_S
    interrupted: bool = False
    ended: set[str] = field(default_factory=set)
    started: dict[str, float] = field(default_factory=dict)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Know the time limit, which the caller may have changed."""
        self.limit_s = float(config.getoption("timeout", None) or TIMEOUT_S)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that somebody gave up. (xdist stops by an exception of its own that is one.)"""
        self.interrupted = self.interrupted or excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to write why it leaves."""
        node.workerinput["warploom_notes"] = str(self.notes)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported holds tests that did not run: that is a failure."""
        if report.failed:
            self.results[report.nodeid] = Result("failed", text=str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember when a test began: a worker that is killed cannot say."""
        self.started[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Remember which tests came to their end."""
        self.ended.add(nodeid)

    def outcomes(self) -> dict[str, Result]:
        """The results, without those of tests that were cut off before anything went wrong."""
        return {i: r for i, r in self.results.items() if i in self.ended or r.outcome != "passed"}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a test's phases."""
        result = self.results.setdefault(report.nodeid, Result("passed"))
        result.seconds += report.duration
        if report.failed:
            result.outcome, result.text = self._verdict(report)
        elif report.skipped and result.outcome == "passed":
            result.outcome, result.text = "skipped", str(report.longrepr)

    def _verdict(self, report: pytest.TestReport) -> tuple[str, str]:
        """Failed, or hung: a worker that died after the time limit, without a note."""
        text = str(report.longrepr)
        if report.when != "???":
            return ("hung" if text.lstrip().startswith("Timeout") else "failed"), text
        reason = dict(self._reasons()).get(report.nodeid)
        if reason is not None:
            return "failed", f"GPU context lost: {reason}"
        waited = time.monotonic() - self.started.get(report.nodeid, time.monotonic())
        return ("hung" if waited >= 0.9 * self.limit_s else "failed"), text

    def _reasons(self) -> list[tuple[str, str]]:
        """(test, reason) for each worker that left by itself."""
        if not self.notes.exists():
            return []
        lines = self.notes.read_text(encoding="utf-8").splitlines()
        return [(test, reason) for test, _, reason in (line.partition("\t") for line in lines)]


def folder_of(nodeid: str) -> str:
    """The folder of a test, as the table names it."""
    return Path(nodeid.split("::")[0]).parent.as_posix()


def table_of(results: dict[str, Result]) -> dict[str, dict[str, float]]:
    """Counts and seconds by folder."""
    table: dict[str, dict[str, float]] = {}
    for nodeid, result in sorted(results.items()):
        row = table.setdefault(folder_of(nodeid), dict.fromkeys((*COLUMNS, "seconds"), 0))
        row[result.outcome] += 1
        row["seconds"] = round(row["seconds"] + result.seconds, 3)
    return table


def render(table: dict[str, dict[str, float]]) -> str:
    """The table as text, with a line of sums."""
    total = {key: sum(row[key] for row in table.values()) for key in (*COLUMNS, "seconds")}
    width = max(len("folder"), *(len(name) for name in (*table, "all")))
    lines = ["  ".join(["folder".ljust(width), *(f"{c:>7}" for c in (*COLUMNS, "seconds"))])]
    for name, row in [*table.items(), ("all", total)]:
        counts = "  ".join(f"{row[column]:7.0f}" for column in COLUMNS)
        lines.append(f"{name.ljust(width)}  {counts}  {row['seconds']:7.1f}")
    return "\n".join(lines)


def gpu_name() -> str | None:
    """The name of the first GPU by the driver's own library, or None."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int(0)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return None
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, 256, 0)
    return name.value.decode()


def commit() -> str | None:
    """The commit of the checkout, where it is one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def without_cpu_half() -> list[str]:
    """Leave out folders that only ever hold tests of the CPU half, with their own packages."""
    return [f"--ignore={ROOT / 'tests' / name}" for name in ("architecture", "docs", "first_hour")]


def pytest_arguments(extra: list[str]) -> list[str]:
    """The arguments of the run; what the caller gives comes last and so wins."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    sys.path.insert(0, str(ROOT))
    places = [
        word for word in extra if not word.startswith("-") and (ROOT / word.split("::")[0]).exists()
    ]
    fixed = ["--rootdir", str(ROOT), *DEFAULTS, *without_cpu_half()]
    return [*fixed, *extra, *([] if places else [str(ROOT / "tests")])]


def main() -> int:
    """Run, print, write; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], allow_abbrev=False)
    parser.add_argument("--out", type=Path, help="write the table and every failure as JSON")
    options, extra = parser.parse_known_args()
    name = gpu_name()
    if name is None:
        print("run_gpu: no GPU here", file=sys.stderr)
        return 2
    out = options.out.resolve() if options.out else None
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(Path(folder) / "notes")
        began = time.monotonic()
        code = int(pytest.main(pytest_arguments(extra), plugins=[collector]))
    results = collector.outcomes()
    table = table_of(results)
    bad = {i: r for i, r in results.items() if r.outcome in ("failed", "hung")}
    print("\n" + (render(table) if table else "no test ran"))
    for nodeid, result in bad.items():
        print(f"{result.outcome}: {nodeid}")
    if collector.interrupted:
        code = 130
    elif not any(row[c] for row in table.values() for c in COLUMNS if c != "skipped"):
        code = 2
    elif bad or code:
        code = 1
    if out:
        record = {
            "schema": 1,
            "device": name,
            "host": platform.machine(),
            "commit": commit(),
            "seconds": round(time.monotonic() - began, 1),
            "exit": code,
            "folders": table,
            "failures": [
                {"test": i, "outcome": r.outcome, "text": r.text[-4000:]} for i, r in bad.items()
            ],
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
