"""The command for the GPU half: its verdicts, table and exit codes, on a small project."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import os, time, pytest
pytestmark = pytest.mark.gpu

def test_good(): pass
def test_bad(): assert 1 == 2
def test_absent(): pytest.skip("needs two GPUs")
def test_lost(request):
    with open(request.config.workerinput["warploom_notes"], "a") as notes:
        notes.write(request.node.nodeid + "\\tillegal address\\n")
    os._exit(86)
def test_hangs(): time.sleep(60)
"""
# A GPU is pretended, and the project replaced by the small one.
DRIVER = """
import sys; sys.path.insert(0, {tests!r})
import run_gpu
from pathlib import Path
run_gpu.gpu_name = lambda: "Pretended GPU"
run_gpu.ROOT, run_gpu.TIMEOUT_S = Path({project!r}), 4
run_gpu.DEFAULTS = ["-p", "no:warploom.testing.plugin"] + [
    word.replace("60", "4").replace("6", "2") for word in run_gpu.DEFAULTS]
sys.argv = ["run_gpu.py", *{arguments!r}]
sys.exit(run_gpu.main())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "part").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\nmarkers = ['gpu', 'soak']\naddopts = ['--strict-markers']\n"
    )
    (tmp_path / "tests" / "part" / "test_kinds.py").write_text(TESTS)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = DRIVER.format(
        tests=str(ROOT / "tests"), project=str(project), arguments=list(arguments)
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


# What the GPU says after each test, in the place of a real one.
SETTLING = """
import os, pytest
from warploom.testing import devices

class Settled:
    broken = False
    def synchronise(self):
        if Settled.broken:
            raise RuntimeError("an illegal\\naddress")

devices.GpuDevice = Settled
"""
CONTEXTS = """
import pytest
from warploom.testing import devices

@pytest.mark.gpu
def test_breaks(): devices.GpuDevice.broken = True
@pytest.mark.gpu
def test_after(): assert not devices.GpuDevice.broken
@pytest.mark.gpu
def test_crashes():
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_broken_context_is_booked_to_its_test_and_the_rest_goes_on(project: Path) -> None:
    (project / "tests" / "part" / "test_kinds.py").write_text(CONTEXTS)
    (project / "conftest.py").write_text(SETTLING)
    plugin = ("-p", "warploom.testing.plugin", "--timeout", "60")
    result = run(project, *plugin, "--out", "gpu.json", "-n", "1")
    assert result.returncode == 1, result.stdout + result.stderr
    record = json.loads((project / "gpu.json").read_text())
    found = {f["test"].split("::")[1]: f for f in record["failures"]}
    assert set(found) == {"test_breaks", "test_crashes"}
    text = found["test_breaks"]["text"]
    assert text == "GPU context lost: RuntimeError: an illegal address"
    # A worker that dies at once, without a note, has not hung.
    assert found["test_crashes"]["outcome"] == "failed"
    assert record["folders"]["tests/part"]["passed"] == 1


# Three tests that use the fixture `device`, of which two say that they need a GPU.
DEVICES = """
import pytest

@pytest.mark.gpu
def test_marked(device): pass
@pytest.mark.gpu
@pytest.mark.parametrize("seed", [1, 2])
def test_seeds(device, seed): pass
def test_both(device): pass
"""


@pytest.mark.parametrize("expression", ["gpu", "gpu or not gpu"])
def test_a_test_marked_gpu_gets_no_simulator(project: Path, expression: str) -> None:
    (project / "tests" / "part" / "test_kinds.py").write_text(DEVICES)
    plugin = ("-p", "warploom.testing.plugin", "-n", "0", "--collect-only", "-q")
    lines = run(project, *plugin, "-m", expression).stdout.splitlines()
    found = {line.split("::")[1] for line in lines if line.startswith("tests/part/")}
    both = {"test_both[sim]"} if "not" in expression else set()
    gpu = {"test_marked[gpu]", "test_seeds[gpu-1]", "test_seeds[gpu-2]", "test_both[gpu]"}
    assert found == gpu | both, lines


def test_the_time_limit_of_the_caller_counts(project: Path) -> None:
    result = run(project, "--timeout", "1", "-n", "1", "-k", "hangs", "--out", "gpu.json")
    assert result.returncode == 1
    (failure,) = json.loads((project / "gpu.json").read_text())["failures"]
    assert failure["outcome"] == "hung"


def test_an_interrupt_is_130_and_keeps_what_had_run(project: Path) -> None:
    (project / "tests" / "part" / "test_kinds.py").write_text(
        "import pytest\n\n@pytest.mark.gpu\ndef test_good(): pass\n"
        "@pytest.mark.gpu\ndef test_gives_up(): raise KeyboardInterrupt\n"
    )
    result = run(project, "-n", "0", "--out", "gpu.json")
    assert result.returncode == 130, result.stdout
    record = json.loads((project / "gpu.json").read_text())
    assert record["exit"] == 130 and record["folders"]["tests/part"]["passed"] == 1


def test_stopping_at_the_first_failure_is_no_interrupt(project: Path) -> None:
    assert run(project, "-n", "1", "-x", "-k", "bad or good").returncode == 1


def test_a_test_by_its_name_and_a_wrong_option(project: Path) -> None:
    name = "tests/part/test_kinds.py::test_good"
    result = run(project, "-n", "0", name)
    assert result.returncode == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("tests/part "))
    assert row.split()[1:5] == ["1", "0", "0", "0"]
    assert run(project, "--no-such-option").returncode == 2


@pytest.mark.slow
def test_each_outcome_is_told_apart(project: Path) -> None:
    result = run(project, "--out", "made/gpu.json")
    assert result.returncode == 1, result.stdout + result.stderr
    record = json.loads((project / "made" / "gpu.json").read_text())
    row = record["folders"]["tests/part"]
    counts = {key: row[key] for key in ("passed", "failed", "hung", "skipped")}
    assert counts == {"passed": 1, "failed": 2, "hung": 1, "skipped": 1}, record
    found = {f["test"].split("::")[1]: f for f in record["failures"]}
    assert found["test_hangs"]["outcome"] == "hung"
    assert found["test_lost"]["text"] == "GPU context lost: illegal address"
    assert record["device"] == "Pretended GPU"
    assert record["exit"] == 1
    assert "hung: tests/part/test_kinds.py::test_hangs" in result.stdout


def test_a_passing_selection_is_0_and_an_empty_one_2(project: Path) -> None:
    assert run(project, "-n", "0", "-k", "good").returncode == 0
    assert run(project, "-n", "0", "-k", "absent").returncode == 2, "skipped is not run"
    (project / "tests" / "test_broken.py").write_text("import a_package_that_is_not_there\n")
    broken = run(project, "-n", "2", "-k", "good")
    assert broken.returncode == 1, broken.stdout
    assert "failed: tests/test_broken.py" in broken.stdout
    (project / "tests" / "test_broken.py").unlink()
    nothing = run(project, "-n", "0", "-m", "gpu and soak")
    assert nothing.returncode == 2
    assert "no test ran" in nothing.stdout


def test_without_a_gpu_it_is_2() -> None:
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import run_gpu\n"
    script += "run_gpu.gpu_name = lambda: None\nsys.exit(run_gpu.main())"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "no GPU here" in result.stderr
