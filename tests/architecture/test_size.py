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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "no docstring"
