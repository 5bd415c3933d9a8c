"""The layers: import-linter's contracts hold, and imports stand at the top of modules."""

import ast
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "warploom"

# Modules that may import inside a function, and what: loading it late is the point there.
LATE_IMPORTS = {
    "runtime/driver.py": {"cuda"},
    "runtime/nvrtc.py": {"cuda"},
    "testing/torch_ops.py": {"torch"},
}
# What any module may load late: extras that the base install does not have.
EXTRAS = {"tokenizers", "jinja2", "safetensors", "gguf", "huggingface_hub"}


def test_the_contracts_of_import_linter_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0, capsys.readouterr().out


def late_imports(tree: ast.Module) -> set[tuple[int, str]]:
    """(line, module) of each import inside a function."""
    found: set[tuple[int, str]] = set()
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                found |= {(node.lineno, alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.lineno, node.module or "."))
    return found


def test_no_import_hides_in_a_function() -> None:
    hidden: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        allowed = LATE_IMPORTS.get(name, set()) | EXTRAS
        for line, module in sorted(late_imports(ast.parse(path.read_text(encoding="utf-8")))):
            if module not in allowed and module.split(".")[0] not in allowed:
                hidden.append(f"{name}:{line} imports {module}")
    assert not hidden, "\n".join(hidden)


def test_every_folder_of_the_package_is_a_package() -> None:
    bare = {
        path.parent.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    }
    assert not bare, f"no __init__.py in {sorted(bare)}: neither wheel nor linter sees them"
