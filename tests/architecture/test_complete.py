"""Nothing without a test: passes, examples, kernel families, rules, verbs, suites."""

import re
from pathlib import Path

import pytest

from warploom.bench import suites
from warploom.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "warploom"
TESTS = ROOT / "tests"


def modules(folder: str, *without: str) -> list[str]:
    names = {path.stem for path in (PACKAGE / folder).glob("*.py")}
    return sorted(names - {"__init__", *without})


def test_every_pass_has_a_test_file() -> None:
    passes = modules("passes")
    assert passes, "no pass found: this test looks in the wrong place"
    tested = {path.stem.removeprefix("test_") for path in (TESTS / "passes").glob("test_*.py")}
    text = "\n".join(p.read_text(encoding="utf-8") for p in (TESTS / "passes").glob("*.py"))
    missing = [
        name for name in passes if name not in tested and not re.search(rf"\b{name}\b", text)
    ]
    assert not missing, f"no test in tests/passes names {missing}"


def test_every_kernel_family_has_tests_and_a_reference() -> None:
    families = [p.parent for p in (PACKAGE / "kernels").glob("*/kernel.py")]
    assert families, "no kernel family found: this test looks in the wrong place"
    for family in families:
        assert (TESTS / "kernels" / f"test_{family.name}.py").exists(), f"no test of {family.name}"
        assert (family / "reference.py").exists(), f"{family.name} has no NumPy reference"


def test_every_example_is_run_by_a_test() -> None:
    examples = sorted((ROOT / "examples").rglob("*.py"))
    assert examples, "no example found"
    text = "\n".join(p.read_text(encoding="utf-8") for p in TESTS.rglob("test_*.py"))
    all_run = "examples" in text and re.search(r"glob\(.*\.py", text)
    for example in examples:
        assert all_run or example.stem in text, f"no test runs {example.name}"


@pytest.mark.parametrize("side", ["sim", "codegen"])
def test_rule_files_bear_the_names_of_operation_families(side: str) -> None:
    families = set(modules("ir/ops"))
    rules = set(modules(f"{side}/rules"))
    assert rules, f"no rule file in {side}/rules"
    assert rules <= families, f"{side}/rules has files that no family has: {rules - families}"


def test_every_verb_and_suite_has_its_module() -> None:
    with_parser = {
        path.stem
        for path in (PACKAGE / "cli").glob("*.py")
        if re.search(r"^def add_parser\(", path.read_text(encoding="utf-8"), re.M)
    }
    assert {verb.name for verb in VERBS} == with_parser
    suite_files = {path.stem for path in (PACKAGE / "bench" / "suites").glob("*.py")}
    assert {name.replace("-", "_") for name in suites.NAMES} == suite_files - {"__init__"}


def test_cases_are_listed_once_and_proven() -> None:
    listed = re.findall(r"^- (C\d+) ", (TESTS / "cases.md").read_text(encoding="utf-8"), re.M)
    assert listed, "tests/cases.md lists no case"
    assert len(listed) == len(set(listed)), "a case stands twice in tests/cases.md"
    text = "\n".join(
        p.read_text(encoding="utf-8") for p in TESTS.rglob("*.py") if p != Path(__file__)
    )
    marked = set(re.findall(r"\bcase\(([^)]*)\)", text))
    used = {number for marks in marked for number in re.findall(r"C\d+", marks)}
    used |= {p.name[:3].upper() for p in TESTS.glob("hazards/*/c[0-9][0-9]_*.py")}
    assert used <= set(listed), f"cases that cases.md does not list: {sorted(used - set(listed))}"
    assert set(listed) <= used, f"cases without a test: {sorted(set(listed) - used)}"
