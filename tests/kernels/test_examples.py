"""Every small example, of the library and of examples/: clean, or with the report it plants."""

import importlib
import importlib.util
import pkgutil
import time
from pathlib import Path
from typing import Any

import pytest

import warploom as wl
from warploom import kernels

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
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
    found = {}
    for module in [*modules, *(load(path) for path in SCRIPTS)]:
        for kernel in vars(module).values():
            if isinstance(kernel, wl.Kernel):
                for name, make in kernel.examples.items():
                    if name != "bench":
                        found[f"{kernel.name}@{name}"] = make
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
