"""Runs the code blocks of a page as a reader would: in one folder, from top to bottom.

- ```python with a first line `# NAME.py` is saved under that name; another one is run.
- ```console holds commands after `$ ` and what they print. A line `…` stands for any lines, `…`
  inside a line for any characters. `$ echo $?` asks for the exit code of the command before.
- ```diff changes the files that its `--- NAME.py` line names.
- Any other kind (plain fences too) is for reading only.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Block:
    """One fenced block: its kind, its text, the line where it begins."""

    kind: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    found: list[Block] = []
    kind, held, start = None, [], 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if kind is None:
                kind, held, start = line[3:].strip(), [], number
            else:
                found.append(Block(kind, "\n".join(held) + "\n", start))
                kind = None
        elif kind is not None:
            held.append(line)
    assert kind is None, f"{page}: the block at line {start} never ends"
    return found


class Reader:
    """Someone who types what a page says, in `folder`."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.code = 0
        tools = folder / ".tools"
        tools.mkdir()
        for name, module in (("warploom", "-m warploom"), ("python", "")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
            tool.chmod(0o755)
        for name in ("examples", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "WARPLOOM_DEVICE": "sim",
            "NO_COLOR": "1",
        }

    def read(self, block: Block) -> None:
        """Do what a block says and compare with what it shows."""
        if block.kind == "python":
            self._python(block)
        elif block.kind == "console":
            self._console(block)
        elif block.kind == "diff":
            self._diff(block)

    def _run(self, command: list[str] | str) -> str:
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _python(self, block: Block) -> None:
        named = re.match(r"# ([\w/]+\.py)\n", block.text)
        path = self.folder / (named[1] if named else f"block_{block.line}.py")
        path.write_text(block.text, encoding="utf-8")
        if not named:
            output = self._run([sys.executable, str(path)])
            assert self.code == 0, f"{self.page}:{block.line} fails\n{output}"

    def _console(self, block: Block) -> None:
        parts = re.split(r"^\$ (.*)\n", block.text, flags=re.M)
        assert not parts[0].strip(), f"{self.page}:{block.line}: output before a command"
        for command, expected in zip(parts[1::2], parts[2::2], strict=True):
            shown = f"{self.code}\n" if command == "echo $?" else self._run(command)
            where = f"{self.page}:{block.line}: $ {command}"
            assert matches(expected, shown), f"{where}\nexpected\n{expected}\ngot\n{shown}"

    def _diff(self, block: Block) -> None:
        named = re.search(r"^--- ([\w/]+\.py)$", block.text, re.M)
        assert named, f"{self.page}:{block.line}: a diff names its file: --- NAME.py"
        path = self.folder / named[1]
        text = path.read_text(encoding="utf-8")
        lines = [line for line in block.text.splitlines() if not line.startswith(("---", "+++"))]
        old = "\n".join(line[1:] for line in lines if line[:1] in "- ")
        new = "\n".join(line[1:] for line in lines if line[:1] in "+ ")
        assert text.count(old) == 1, f"{self.page}:{block.line}: found {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")


def matches(expected: str, shown: str) -> bool:
    """Whether an output is what a page shows; `…` stands for what differs from run to run."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(part) for part in line.rstrip().split("…"))
            pattern += r"[ \t]*\n"
    return re.fullmatch(pattern, shown.rstrip("\n") + "\n") is not None
