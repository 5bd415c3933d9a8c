"""Pairs of kernels in folders beside this file, wrong and right: the wrong one is reported at the
lines that its comments `# expect: CODE LINE…` name, on every seed; the right one is silent.

What the compiler places by itself cannot be forgotten in a source. There a comment `# without:
OPCODE LINE` (and `in ROLE`) takes the machine operations away that come from a line.
"""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import warploom as wl
from warploom.base.diagnostics import Report
from warploom.base.target import DEFAULT
from warploom.ir.kernel import Kernel as MachineKernel
from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op
from warploom.ir.roles import split_of
from warploom.runtime.compile import machine_kernel
from warploom.runtime.jit import Kernel
from warploom.runtime.variant import SimVariant
from warploom.sim.program import prepare

HERE = Path(__file__).parent
BROKEN = sorted(HERE.glob("*/*_broken.py"))
FIXED = sorted(HERE.glob("*/*_fixed.py"))
SEEDS = range(20)
CASE = re.compile(r"/(c\d\d)_")
# What makes a kernel one of the hardware's level, and what shows roles and pipes.
RAW = re.compile(r"wl\.(barrier|named_barrier|copy_commit|copy_wait|threads_\w+)\(")


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


def taken_away(path: Path) -> list[tuple[str, int, str]]:
    """What the comments of a file take from its machine IR: operation, line, role."""
    form = r"^# without: ([\w.]+) (\d+)(?: in (\w+))?$"
    found = re.findall(form, path.read_text(), re.MULTILINE)
    return [(opcode, int(line), role) for opcode, line, role in found]


def blocks(block: Block) -> Iterator[Block]:
    """A block and all that stand in it."""
    yield block
    for op in walk(block):
        yield from op.regions()


def without(kernel: MachineKernel, opcode: str, line: int, role: str) -> None:
    """Take operations of a line, and of a role, out of a kernel."""

    def goes(op: Op) -> bool:
        return op.OPCODE == opcode and op.loc.line == line

    split = split_of(kernel)
    inside = kernel.body
    if role:
        assert split is not None
        inside = split.bodies[split.names.index(role)]
    assert any(map(goes, walk(inside))), (opcode, line, role)
    for block in blocks(inside):
        block.ops[:] = [op for op in block.ops if not goes(op)]


class Trial:
    """The example of a file: `reports(seed)` is what one schedule of it shows."""

    def __init__(self, path: Path) -> None:
        self.kernel = kernel_of(path)
        self.edits = taken_away(path)
        self.variant: SimVariant | None = None
        if self.edits:
            made = machine_kernel(self.kernel.example_call().request, DEFAULT)
            for edit in self.edits:
                without(made, *edit)
            self.variant = SimVariant(made, prepare(made))

    def reports(self, seed: int) -> list[Report]:
        call = self.kernel.example_call()
        if self.variant is not None:
            launcher = call.launcher
            return self.variant.check(launcher.grid, call.arguments, seed, launcher.ways).findings
        try:
            return [f.report for f in call.check(first_seed=seed)]
        except wl.Error as refused:
            return list(refused.reports)


def bare(path: Path) -> str:
    """The name of a pair: folder and file without the ending."""
    return path.relative_to(HERE).as_posix().removesuffix("_broken.py").removesuffix("_fixed.py")


def test_every_wrong_kernel_has_a_right_one():
    assert len(BROKEN) >= 100
    assert set(map(bare, BROKEN)) == set(map(bare, FIXED))


def table() -> list[tuple[str, list[str], list[str]]]:
    """The rows of the table beside this file: class, pairs by hand, pairs of the other levels."""
    rows = re.findall(r"^\| (.+?) \| (.*?) ?\| (.*?) ?\|$", (HERE / "README.md").read_text(), re.M)
    return [(name, raw.split(), roles.split()) for name, raw, roles in rows[1:]]


def test_every_pair_stands_in_the_table_under_its_class_and_level():
    rows = table()
    assert len(rows) > 40 and all(raw or roles for _, raw, roles in rows)
    named_there = {pair for _, raw, roles in rows for pair in (*raw, *roles)}
    assert named_there == set(map(bare, BROKEN))
    for _, raw, roles in rows:
        assert len(set(raw + roles)) == len(raw + roles)
        for pair in roles:
            assert not RAW.search((HERE / f"{pair}_broken.py").read_text()), pair


def test_the_cases_that_the_checker_closes_have_pairs():
    cases = {
        name[:3]: raw + roles for name, raw, roles in table() if CASE.match(f"/{name[:3]}_".lower())
    }
    assert set(cases) == {"C01", "C03", "C04", "C06", "C07", "C08", "C09", "C11", "C13"}
    marked = {m[1].upper() for m in map(CASE.search, (p.as_posix() for p in BROKEN)) if m}
    assert marked == set(cases)


@pytest.mark.parametrize("path", named(BROKEN))
def test_wrong(path: Path, golden):
    trial, wanted = Trial(path), expected(path)
    assert wanted
    for seed in SEEDS:
        found = trial.reports(seed)
        told = [(r.code, {s.line for s in r.spans}) for r in found]
        for code, lines in wanted:
            assert any(c == code and lines <= at for c, at in told), (seed, code, lines, told)
        if seed == 0:
            # What is unstable comes first: it explains the rest.
            codes = {code for code, _ in wanted}
            assert found[0].code in codes or found[0].code[0] == "U", found[0].render()
            first = next(r for r in found if r.code == wanted[0][0])
            golden(first.render(), bare(path).replace("/", "-"))


@pytest.mark.parametrize("path", named(FIXED))
def test_right(path: Path):
    trial = Trial(path)
    assert trial.variant is None
    for seed in SEEDS:
        found = trial.reports(seed)
        assert not found, (seed, [r.render() for r in found])
