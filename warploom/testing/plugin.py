"""The pytest plug-in: fixtures `device` and `golden`, and care for the GPU between tests.

Loaded through its entry point where Warploom is installed, and by `pytest_plugins` of a conftest
where it is not. Which tests run by default is the project's business, not the plug-in's.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warploom.testing import devices
from warploom.testing.golden import Golden, golden_folder, unused

USED = "golden used"
CHANGED = "golden changed"
# The exit status of a worker that leaves because its GPU context is lost.
LOST_CONTEXT = 86


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the plug-in."""
    group = parser.getgroup("warploom")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden texts of the selected tests and print each difference",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers that the fixtures set, and the bookkeeping of goldens."""
    config.addinivalue_line("markers", "gpu: needs a GPU")
    if config.getoption("--update-golden") and os.environ.get("CI") == "true":
        raise pytest.UsageError("--update-golden refuses under CI=true: goldens change by hand")
    config.pluginmanager.register(GoldenLedger(config), "warploom-golden-ledger")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave a test that is itself marked `gpu` to the GPU: `device` never gives it the simulator.

    What such a test does may take the simulator hours, and `-m gpu` would select both.
    """
    simulated = [item for item in items if _asks_for_both(item)]
    if simulated:
        config.hook.pytest_deselected(items=simulated)
        items[:] = [item for item in items if not _asks_for_both(item)]


def _asks_for_both(item: pytest.Item) -> bool:
    """Whether a test needs a GPU and is about to get the simulator."""
    call = getattr(item, "callspec", None)
    on_simulator = call is not None and call.params.get("device") == "sim"
    return on_simulator and item.get_closest_marker("gpu") is not None


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Compare a text with its golden file: `golden(text)` or `golden(text, "name")`."""
    folder = golden_folder(request.config.rootpath, request.node.path)
    update = bool(request.config.getoption("--update-golden"))
    one = Golden(folder, request.node.name.removeprefix("test_"), update)
    yield one
    properties = request.node.user_properties
    properties += [(USED, path) for path in one.used]
    properties += [(CHANGED, text) for text in one.differences]


@pytest.fixture
def check() -> Callable[..., None]:
    """Check a call on many schedules: `check(k.launch(grid).call(…), seeds=20)` fails with the
    reports of what was found."""

    def checked(call: Any, seeds: int = 20) -> None:
        __tracebackhide__ = True
        found = call.check(seeds=seeds)
        if not found.clean:
            pytest.fail(found.text(), pytrace=False)

    return checked


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> devices.Device:
    """The simulator and, where the test is selected for it, the GPU."""
    return devices.SimDevice() if request.param == "sim" else devices.GpuDevice()


@pytest.fixture(autouse=True)
def _settled_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Wait for the GPU after each test marked `gpu`, so that its error is booked to it.

    A context that has seen a fault is lost for the process: the worker ends, and xdist starts
    a fresh one for the tests that are left.
    """
    yield
    if request.node.get_closest_marker("gpu") is None:
        return
    try:
        devices.GpuDevice().synchronise()
    except Exception as error:
        _leave(request.config, request.node.nodeid, f"{type(error).__name__}: {error}")


def _leave(config: pytest.Config, nodeid: str, reason: str) -> None:
    """End this process while the test still counts as running, so that it gets the blame."""
    message = f"GPU context lost in {nodeid}: {reason}"
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        pytest.exit(message, returncode=LOST_CONTEXT)
    if notes := worker.get("warploom_notes"):
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(f"{nodeid}\t{' '.join(reason.split())}\n")
    print(message, file=sys.stderr, flush=True)
    os._exit(LOST_CONTEXT)


class GoldenLedger:
    """Finds goldens that no test reads any more, over all workers of a run.

    Only test files that ran whole count: all their tests selected and run to their end, none
    failed or skipped. Tests that are left out because they need a GPU do not matter, since goldens
    come from the CPU.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.before: dict[str, Path] = {}
        self.complete: dict[str, int] = {}  # tests of each file that is selected whole
        self.finished: dict[str, set[str]] = {}
        self.troubled: set[str] = set()
        self.used: set[str] = set()
        self.changes: list[str] = []
        self.stale: list[Path] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Remember what was collected, before anything is deselected."""
        self.before = {i.nodeid: i.path for i in items if i.get_closest_marker("gpu") is None}
        return (yield)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the test files of which every test is left."""
        left = {item.nodeid for item in session.items}
        partial = {path for nodeid, path in self.before.items() if nodeid not in left}
        for argument in self.config.args:
            if "::" in str(argument):
                partial.add((self.config.invocation_params.dir / argument.split("::")[0]).resolve())
        root = self.config.rootpath
        whole = [path for path in self.before.values() if path not in partial]
        self.complete = Counter(path.relative_to(root).as_posix() for path in whole)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what each test used, from the reports that workers send."""
        file = report.nodeid.split("::")[0]
        if not report.passed:
            self.troubled.add(file)
        if report.when == "teardown":
            self.finished.setdefault(file, set()).add(report.nodeid)
            self.used |= {str(value) for key, value in report.user_properties if key == USED}
            self.changes += [str(v) for key, v in report.user_properties if key == CHANGED]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over from a worker which of its test files ran whole."""
        self.complete |= getattr(node, "workeroutput", {}).get("warploom_complete", {})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A golden that nobody reads fails the run; under --update-golden it goes."""
        if self.is_worker:
            output: dict[str, Any] = self.config.workeroutput  # type: ignore[attr-defined]
            output["warploom_complete"] = dict(self.complete)
            return
        root = self.config.rootpath
        whole = {
            root / file
            for file, count in self.complete.items()
            if file not in self.troubled and len(self.finished.get(file, ())) >= count
        }
        self.stale = unused(root, whole, self.used)
        if self.config.getoption("--update-golden"):
            for path in self.stale:
                path.unlink()
        elif self.stale and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print changed and unused goldens."""
        for text in self.changes:
            terminalreporter.write_sep("-", "golden rewritten")
            terminalreporter.write_line(text)
        update = self.config.getoption("--update-golden")
        for path in self.stale:
            what = "removed, no test reads it" if update else "unused (pytest --update-golden)"
            terminalreporter.write_line(f"golden {path.relative_to(self.config.rootpath)}: {what}")
