"""`warploom explain X`: a kernel, a function `wl.exp`, an operation `family.op`, or an error code.

`--coverage` lists, operation by operation, who declares, simulates, prints and tests it.
"""

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import warploom.codegen.rules
import warploom.ir.ops
import warploom.sim.rules  # noqa: F401  (rules enter the tables when they are imported)
from warploom.base.diagnostics import shown_path
from warploom.base.errors import CODES, LETTERS, error
from warploom.cli import explain_kernel, json_file
from warploom.cli.verbs import FINE, NO
from warploom.codegen.registry import emits
from warploom.ir.op import REGISTRY, Op, Stage
from warploom.language.context import VOCABULARY
from warploom.sim.registry import shadows, simulates

SCHEMA = 1
_SHOWN = 12  # test files on the page of an operation
_TESTS = Path(__file__).parents[2] / "tests"
_ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "explain",
        description="Explain a kernel, a function of the language (wl.exp), an operation "
        "(family.op) or an error code (R101).",
        epilog="exit codes: 0 fine, 1 --coverage found a hole, 2 there is no such thing",
    )
    parser.add_argument("what", nargs="?", metavar="X", help="kernel, function, operation or code")
    parser.add_argument("--coverage", action="store_true", help="all operations and their rules")
    parser.add_argument("--arch", default="", help="architecture of a kernel; default sm_90a")
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Explain; returns the exit code."""
    code = FINE
    if options.coverage:
        data, lines = coverage()
        code = NO if data["holes"] else FINE
    elif not options.what:
        text = "nothing to explain"
        hint = "give a kernel, a function, an operation, a code, or --coverage"
        raise error("H021", text, hint=hint)
    elif re.fullmatch(r"[A-Z]\d{3}", options.what):
        data, lines = _code(options.what)
    elif ":" not in options.what and ".py" not in options.what:
        name = options.what.removeprefix("wl.").removesuffix("()")
        explained = _function if name in VOCABULARY else operation
        data, lines = explained(name)
    else:
        data, lines = explain_kernel.explain(options.what, options.arch)
    if options.json:
        json_file.write(options.json, {"schema": SCHEMA, **data})
    if options.json != "-":
        print("\n".join(lines))
    return code


Explained = tuple[dict[str, Any], list[str]]


def _code(word: str) -> Explained:
    found = CODES.get(word)
    if found is None:
        near = ", ".join(code for code in CODES if code[0] == word[0]) or ", ".join(LETTERS)
        raise error("H021", f"there is no error {word}", hint=f"there are {near}")
    area, cls = LETTERS[word[0]]
    data = {"code": word, "title": found.title, "text": found.paragraph, "class": cls.__name__}
    lines = [f"{word}: {found.title}", f"({area}; wl.{cls.__name__})", "", found.paragraph]
    if report := _report(word):
        data["example"] = report
        lines += ["", "an example:", "", report]
    return data, lines


def _report(word: str) -> str:
    """A report with this code as docs/errors.md shows it; nothing where that page is not here."""
    if not _ERRORS.is_file():
        return ""
    text = _ERRORS.read_text(encoding="utf-8")
    found = re.search(rf"^### {word} .*?(?=^##|\Z)", text, re.M | re.S)
    shown = re.search(r"^```\n(.*?)\n```$", found[0], re.M | re.S) if found else None
    return shown[1] if shown else ""


def _function(name: str) -> Explained:
    """A function of the language: how it is called, and its page of the manual."""
    function = VOCABULARY[name]
    parameters = inspect.signature(function).parameters.values()
    plain = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    signature = f"wl.{name}{plain}"
    text = inspect.cleandoc(function.__doc__ or "")
    return {"function": f"wl.{name}", "signature": signature, "text": text}, [signature, "", text]


def operation(opcode: str) -> Explained:
    """Declaration, rules and tests of an operation, together on one page."""
    op = REGISTRY.get(opcode)
    if op is None:
        family = opcode.split(".")[0]
        near = [name for name in REGISTRY if name.split(".")[0] == family] or [
            name for name in REGISTRY if name.endswith(f".{opcode}")
        ]
        families = ", ".join(sorted({n.split(".")[0] for n in REGISTRY}))
        hint = f"there are: {', '.join(near)}" if near else f"the families are {families}"
        raise error("H021", f"there is no operation `{opcode}`", hint=hint)
    facts = _facts(op)
    lines = [opcode, "", inspect.cleandoc(op.__doc__ or ""), ""]
    lines += [f"stages    {', '.join(facts['stages'])}", f"executes  {facts['executes']}"]
    lines += [f"effects   {', '.join(facts['effects']) or 'none'}", f"since     {facts['since']}"]
    lines += [f"  {f['name']}: {f['kind']}" for f in facts["fields"]]
    sources = {
        "declaration": _source(op),
        "simulator": _source(simulates.find(op)),
        "shadow": _source(shadows.find(op)),
        "CUDA": _source(emits.rule_of(op)),
    }
    for name, source in sources.items():
        if source:
            lines += ["", f"{name} ({source['place']})", source["text"].rstrip()]
    tests = _tests(opcode)
    lines += ["", "tests"] + [f"  {place}" for place in tests[:_SHOWN] or ["none in this checkout"]]
    if len(tests) > _SHOWN:
        lines += [f"  and {len(tests) - _SHOWN} more files: --json lists them"]
    return {"operation": opcode, **facts, "sources": sources, "tests": tests}, lines


def _facts(op: type[Op]) -> dict[str, Any]:
    return {
        "stages": [s.name.lower() for s in Stage if s in op.STAGES and s.name],
        "executes": op.EXECUTES.value,
        "effects": sorted(e.value for e in op.EFFECTS),
        "since": op.SINCE,
        "dtypes": [t.name for t in op.DTYPES],
        "fields": [{"name": f.name, "kind": f.kind.value} for f in op.FIELDS],
    }


def _source(found: type | Callable[..., Any] | None) -> dict[str, str] | None:
    """Text and place of a class or function."""
    if found is None:
        return None
    item: Any = found if isinstance(found, type) else inspect.unwrap(found)
    lines, first = inspect.getsourcelines(item)
    file = inspect.getsourcefile(item) or "?"
    return {"place": f"{shown_path(file)}:{first}", "text": "".join(lines)}


def _tests(opcode: str) -> list[str]:
    """The first line of each test file that names an operation, its own cases before the rest."""
    word = re.compile(rf"(?<![\w.]){re.escape(opcode)}(?![\w.])")
    found: list[tuple[bool, str]] = []
    for path, text in _test_texts():
        if match := word.search(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((path.parent.name != "ops", f"{shown_path(str(path))}:{line}"))
    return [place for _, place in sorted(found)]


@cache
def _test_texts() -> tuple[tuple[Path, str], ...]:
    """The test files of this checkout; none where Warploom is installed without them."""
    paths = sorted(_TESTS.rglob("*.py")) if _TESTS.is_dir() else []
    return tuple((path, path.read_text(encoding="utf-8")) for path in paths)


def coverage() -> Explained:
    """Every operation with what it has; a hole is a rule or a case of a declared dtype that is not.

    Cases are those of tests/ops; where Warploom is installed without its tests, only rules count.
    """
    cases = _cases()
    rows: list[dict[str, Any]] = []
    holes: list[str] = []
    for opcode, op in sorted(REGISTRY.items()):
        row: dict[str, Any] = {"operation": opcode, "documented": bool(op.__doc__)}
        if Stage.MACHINE in op.STAGES:
            row["simulator"] = simulates.find(op) is not None
            row["cuda"] = emits.rule_of(op) is not None
        row["dtypes"] = [t.name for t in op.DTYPES]
        row["cases"] = len(cases.get(opcode, ())) if cases is not None else None
        rows.append(row)
        missing = [k for k in ("documented", "simulator", "cuda") if row.get(k) is False]
        if cases is not None:
            tested = cases.get(opcode, [])
            missing += [f"case of {name}" for name in row["dtypes"] if name not in tested]
            missing += ["case"] if not tested else []
        holes += [f"{opcode}: no {name}" for name in missing]
    width = max(len(row["operation"]) for row in rows)
    lines = []
    for row in rows:
        marks = [k for k in ("documented", "simulator", "cuda") if row.get(k)]
        count = f"{row['cases']} cases" if cases is not None else "tests are not here"
        lines.append(f"{row['operation']:{width}}  {' '.join(marks)}  {count}")
    lines += ["", *(f"hole: {hole}" for hole in holes)] if holes else ["", "no hole"]
    return {"operations": rows, "holes": holes}, lines


def _cases() -> dict[str, list[str]] | None:
    """The dtypes of the cases of each operation, from tests/ops of this checkout."""
    folder = _TESTS / "ops"
    names = [p.stem for p in sorted(folder.glob("*.py")) if not p.stem.startswith(("test_", "_"))]
    if not names:
        return None
    sys.path.insert(0, str(_TESTS.parent))
    found: dict[str, list[str]] = {}
    for name in names:
        for case in getattr(importlib.import_module(f"tests.ops.{name}"), "CASES", ()):
            found.setdefault(case.op, []).append(case.dtype)
    return found
