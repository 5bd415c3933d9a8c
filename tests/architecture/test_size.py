"""Small modules and small functions: 450 lines are noted, 600 refused; a function has up to 60."""

import ast
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTED, REFUSED, FUNCTION = 450, 600, 60
MODULES = sorted((ROOT / "warploom").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "golden" not in path.parts)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_modules_stay_readable() -> None:
    sizes = {name_of(p): len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES + TESTS}
    large = {name: size for name, size in sizes.items() if size > NOTED}
    if noted := {name: size for name, size in large.items() if size <= REFUSED}:
        warnings.warn(f"large modules: {noted}", stacklevel=1)
    assert not [name for name in large if name not in noted], f"split these: {large}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_stay_readable(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    long: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A docstring is the user's manual: it may be as long as it needs.
            first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
            size = (node.end_lineno or 0) - first.lineno + 1
            if size > FUNCTION:
                long.append(f"{node.name} at line {node.lineno} has {size} lines")
    assert not long, "; ".join(long)


# Kernels that are to read like a program -> lines at most, with what they inline from their file;
# blank lines, comments and docstrings do not count.
_INLINED = ("brought", "filled", "multiplied", "summed", "promoted", "written")
KERNELS = {"kernels/gemm/kernel.py": ((*_INLINED, "gemm"), 120)}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_reads_like_a_program(name: str) -> None:
    functions, most = KERNELS[name]
    text = (ROOT / "warploom" / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    size = 0
    for function in functions:
        node = found[function]
        manual = node.body[0] if ast.get_docstring(node) else None
        for number in range(node.lineno, (node.end_lineno or 0) + 1):
            in_manual = manual and manual.lineno <= number <= (manual.end_lineno or 0)
            line = lines[number - 1].strip()
            size += bool(line) and not line.startswith("#") and not in_manual
    assert 0 < size <= most, f"{name}: {size} lines"
    inlined = {
        node.name
        for node in found.values()
        if any(ast.unparse(mark) == "wl.function" for mark in node.decorator_list)
    }
    assert inlined <= set(functions), f"not counted: {inlined - set(functions)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "no docstring"
