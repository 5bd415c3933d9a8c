"""Pairs of kernels in folders beside this file, wrong and right: the wrong one is reported at the
lines that its comments `# expect: CODE LINE…` name, on every seed; the right one is silent."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from warploom.base.diagnostics import Report
from warploom.runtime.jit import Kernel

HERE = Path(__file__).parent
BROKEN = sorted(HERE.glob("*/*_broken.py"))
FIXED = sorted(HERE.glob("*/*_fixed.py"))
SEEDS = range(20)
CASE = re.compile(r"/(c\d\d)_")


def named(paths: list[Path]) -> list[object]:
    """The paths as parameters with short names, marked with the case that a name begins with."""
    found: list[object] = []
    for path in paths:
        case = CASE.search(path.as_posix())
        marks = [pytest.mark.case(case[1].upper())] if case else []
        found.append(pytest.param(path, id=path.relative_to(HERE).as_posix()[:-3], marks=marks))
    return found


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def kernel_of(path: Path) -> Kernel:
    """The only kernel in a file."""
    (kernel,) = (v for v in vars(module(path)).values() if isinstance(v, Kernel))
    return kernel


def expected(path: Path) -> list[tuple[str, set[int]]]:
    """Codes and lines from the comments of a file."""
    found = re.findall(r"^# expect: (\w\d+)((?: \d+)+)$", path.read_text(), re.MULTILINE)
    return [(code, set(map(int, lines.split()))) for code, lines in found]


def reports(kernel: Kernel, seed: int) -> list[Report]:
    """What one schedule of the example shows."""
    return [f.report for f in kernel.example_call().check(first_seed=seed)]


def test_every_wrong_kernel_has_a_right_one():
    assert len(BROKEN) >= 60
    bare = {p.as_posix().replace("_broken", "") for p in BROKEN}
    assert bare == {p.as_posix().replace("_fixed", "") for p in FIXED}


@pytest.mark.parametrize("path", named(BROKEN))
def test_wrong(path: Path, golden):
    kernel, wanted = kernel_of(path), expected(path)
    assert wanted
    for seed in SEEDS:
        found = reports(kernel, seed)
        told = [(r.code, {s.line for s in r.spans}) for r in found]
        for code, lines in wanted:
            assert any(c == code and lines <= at for c, at in told), (seed, code, lines, told)
        if seed == 0:
            # What is unstable comes first: it explains the rest.
            codes = {code for code, _ in wanted}
            assert found[0].code in codes or found[0].code[0] == "U", found[0].render()
            first = next(r for r in found if r.code == wanted[0][0])
            golden(first.render(), path.relative_to(HERE).as_posix().replace("/", "-")[:-10])


@pytest.mark.parametrize("path", named(FIXED))
def test_right(path: Path):
    kernel = kernel_of(path)
    for seed in SEEDS:
        found = reports(kernel, seed)
        assert not found, (seed, [r.render() for r in found])
