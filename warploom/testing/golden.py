"""Golden texts: one file a text, compared exactly, rewritten only when asked.

Knows nothing of pytest: the plug-in decides which tests ran and which goldens belong to them.
A golden of test file `tests/a/test_b.py` lives at `tests/golden/a/test_b/<name>.txt`.
"""

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path


class GoldenMismatch(AssertionError):
    """A text differs from its golden, or has none yet."""


def golden_folder(root: Path, test_file: Path) -> Path:
    """The folder with the goldens of one test file."""
    tests = root / "tests"
    inside = test_file.relative_to(tests if test_file.is_relative_to(tests) else root)
    return tests / "golden" / inside.with_suffix("")


def file_name(name: str) -> str:
    """A name that every file system takes: parametrised tests carry brackets and slashes."""
    return re.sub(r"[^A-Za-z0-9_.=+-]+", "-", name).strip("-") or "golden"


def difference(old: str, new: str, label: str) -> str:
    """A unified diff of two texts, with `label` as the name of both sides."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{label} (golden)", f"{label} (now)", lineterm=""
    )
    return "\n".join(lines)


@dataclass
class Golden:
    """What the fixture `golden` gives: call it with the text.

    The name of the file is the test's own name; a test with several texts names each.
    """

    folder: Path
    default_name: str
    update: bool = False
    used: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def __call__(self, text: str, name: str | None = None) -> None:
        """Compare `text` with its golden; raises GoldenMismatch with the diff."""
        path = self.folder / (file_name(name or self.default_name) + ".txt")
        new = text.rstrip("\n") + "\n"
        label = f"{self.folder.name}/{path.name}"
        if str(path) in self.used:
            raise GoldenMismatch(f"two texts of one test share the golden {label}: name each")
        self.used.append(str(path))
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == new:
            return
        shown = difference(old or "", new, label)
        if self.update:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8", newline="\n")
            self.differences.append(shown)
            return
        what = "differs from its golden" if old is not None else "has no golden yet"
        raise GoldenMismatch(f"the text {what}\n{shown}\n(accept it with: pytest --update-golden)")


def unused(root: Path, complete: set[Path], used: set[str]) -> list[Path]:
    """Goldens of the test files in `complete` that no test read."""
    found: list[Path] = []
    for test_file in sorted(complete):
        folder = golden_folder(root, test_file)
        if folder.is_dir():
            found += [path for path in sorted(folder.glob("*.txt")) if str(path) not in used]
    return found
