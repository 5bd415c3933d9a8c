"""Every small example, of the library and of examples/: clean, or with the report it plants."""

import importlib
import importlib.util
import pkgutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom import kernels

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
STEPS = sorted((ROOT / "examples" / "gemm").glob("v*.py"))
# What is planted: kernel@example and the code of its one finding.
MISTAKES = {"add_pieces@mistake": "M002"}
LONGEST_S = 2.0


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"tested_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_examples() -> dict[str, Any]:
    names = [m.name for m in pkgutil.walk_packages(kernels.__path__, "warploom.kernels.")]
    modules = [importlib.import_module(n) for n in names if n.endswith(".kernel")]
    named = [("", module) for module in [*modules, *(load(path) for path in SCRIPTS)]]
    named += [(f"{path.stem}.", load(path)) for path in STEPS]
    found = {}
    for prefix, module in named:
        for kernel in vars(module).values():
            if isinstance(kernel, wl.Kernel):
                for name, make in kernel.examples.items():
                    if name != "bench":
                        found[f"{prefix}{kernel.name}@{name}"] = make
    return found


EXAMPLES = small_examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_checked(name):
    findings = EXAMPLES[name](wl.Make()).check()
    if name in MISTAKES:
        assert [f.code for f in findings] == [MISTAKES[name]], findings.text()
    else:
        assert findings.clean, findings.text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_in_two_seconds(name):
    call = EXAMPLES[name](wl.Make())
    call.run()
    start = time.perf_counter()
    call.run()
    assert time.perf_counter() - start < LONGEST_S


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_scripts_print_what_they_promise(path, capsys):
    load(path).main()
    printed = capsys.readouterr().out
    wanted = {
        "01_add": "equal to NumPy: True",
        "02_softmax": "largest difference to NumPy:",
        "03_matvec": "largest difference to NumPy:",
        "04_read_the_report": "never written",
    }
    assert wanted[path.stem] in printed
    if "largest difference" in printed:
        assert float(printed.rsplit(":", 1)[1]) < 2e-5


@pytest.mark.parametrize("shape", [(200, 72, 136), (130, 300, 64), (1, 8, 8), (257, 40, 328)])
@pytest.mark.parametrize("path", STEPS, ids=lambda p: p.stem)
def test_each_step_multiplies(device, path, shape):
    """The ladder of examples/gemm: ragged sizes, sums that are exact."""
    m, n, k = shape
    draw = np.random.default_rng(shape)
    a, b = (draw.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n))
    c = device.empty((m, n), np.float32)
    load(path).product(device.put(a), device.put(b), c)
    assert np.array_equal(device.get(c), a.astype(np.float64) @ b.T.astype(np.float64))


def test_steps_are_numbered_and_short():
    """One idea a step, each small enough to read: what is new shows in a diff."""
    assert [path.stem.partition("_")[0] for path in STEPS] == [f"v{i}" for i in range(len(STEPS))]
    for path in STEPS:
        lines = path.read_text(encoding="utf-8").splitlines()
        code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
        assert len(code) <= 100, path.name
