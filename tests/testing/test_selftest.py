"""What `warploom selftest` counts and judges. (What it counts of: the tests that it runs.)"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warploom.base.errors import LaunchError
from warploom.cli.__main__ import main
from warploom.testing import selftest
from warploom.testing.mutation import library

REPORT = """<testsuites><testsuite>
<testcase file="tests/hazards/test_hazards.py" name="test_wrong[a/one_broken]" />
<testcase file="tests/hazards/test_hazards.py" name="test_wrong[a/two_broken]">
<failure>no</failure></testcase>
<testcase file="tests/hazards/test_hazards.py" name="test_right[a/one_fixed]" />
<testcase file="tests/hazards/test_hazards.py" name="test_right[a/two_fixed]">
<error>no</error></testcase>
<testcase file="tests/hazards/test_hazards.py" name="test_found[here]" />
<testcase file="tests/hazards/test_hazards.py" name="test_other"><skipped /></testcase>
</testsuite></testsuites>"""


LIBRARY: dict[str, Any] = {"instances": 2, "proved": 2, "failed": []}


def silent(text: str) -> None:
    """Nothing."""


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Tests that end as REPORT says; gives what they were called with."""
    called: list[tuple[str, ...]] = []

    def tested(*words: str) -> list[selftest.Case]:
        called.append(words)
        return selftest.cases_of(REPORT)

    monkeypatch.setattr(selftest, "tested", tested)
    monkeypatch.setattr(selftest.exploration, "explore", lambda: dict(LIBRARY))
    return called


def test_a_report_of_tests_is_read():
    cases = selftest.cases_of(REPORT)
    assert [case.passed for case in cases] == [True, False, True, False, True]
    assert cases[0].name == "test_wrong[a/one_broken]"


def test_pairs_are_counted(reported):
    found = selftest.hazards(False, 0, silent)
    assert (found["pairs"], found["caught"], found["false_alarms"]) == (2, 1, 1)
    assert found["missed"] == ["test_wrong[a/two_broken]"]
    assert found["alarmed"] == ["test_right[a/two_fixed]"]
    assert reported == [("tests/hazards", "--ignore", "tests/hazards/blind")]


def test_planted_faults_are_counted(reported):
    found = selftest.blind(False, 0, silent)
    assert (found["planted"], found["found"], found["false_alarms"]) == (1, 1, 1)


def test_explored_instances_are_counted(reported):
    found = selftest.explore(False, 0, silent)
    assert found["tests"] == 5 and len(found["failed"]) == 2
    assert found["library"] == LIBRARY
    selftest.explore(True, 0, silent)
    marks = [words[-1] for words in reported]
    assert marks == ["not gpu and not soak and not slow", "not gpu and not soak"]


def test_the_tests_of_a_folder_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "t").mkdir()
    text = "def test_wrong():\n    assert False\n\ndef test_right():\n    pass\n"
    (tmp_path / "t" / "test_it.py").write_text(text)
    monkeypatch.setattr(selftest, "ROOT", tmp_path)
    cases = selftest.tested("t")
    assert {(case.name, case.passed) for case in cases} == {
        ("test_wrong", False),
        ("test_right", True),
    }
    with pytest.raises(LaunchError, match="there is no elsewhere beside the package"):
        selftest.tested("elsewhere")


GOOD: dict[str, dict[str, Any]] = {
    "hazards": {"pairs": 80, "caught": 80, "false_alarms": 0, "seconds": 1.0},
    "mutation": {
        **{"counted": 100, "caught": 98, "equivalent": 3, "unreached": 1, "not_tried": 0},
        **{"sampled": {"token": {"tried": 60, "of": 400}}},
        **{"false_alarms": 0, "survived": [], "seconds": 1.0},
    },
    "blind": {"planted": 40, "found": 38, "false_alarms": 0, "seconds": 1.0},
    "explore": {"tests": 30, "failed": [], "library": LIBRARY, "seconds": 1.0},
    "fuzz": {"kernels": 10, "differences": [], "seconds": 1.0},
}


def test_what_is_enough():
    assert selftest.shortcomings(GOOD) == []
    lines = dict(selftest.summary(GOOD))
    assert len(lines) == 5
    assert "; token sampled: 60 of 400" in lines["mutation"]


@pytest.mark.parametrize(
    ("part", "counts", "text"),
    [
        ("hazards", {"caught": 79}, "hazards: 79 of 80 pairs caught, 100% are wanted"),
        ("hazards", {"pairs": 0, "caught": 0}, "hazards: 0 of 0 pairs caught"),
        ("hazards", {"false_alarms": 1}, "hazards: 1 false alarms"),
        ("mutation", {"caught": 97}, "mutation: 97 of 100 mutants caught, 98% are wanted"),
        ("mutation", {"counted": 0, "caught": 0}, "mutation: 0 of 0 mutants caught"),
        ("mutation", {"false_alarms": 2}, "mutation: 2 false alarms"),
        ("blind", {"found": 37}, "blind: 37 of 40 faults found, 95% are wanted"),
        ("explore", {"tests": 0}, "explore: nothing ran"),
        ("explore", {"failed": ["x"]}, "explore: 1 tests failed"),
        ("explore", {"library": {"failed": [{}]}}, "explore: 1 examples are not proved"),
        ("fuzz", {"differences": [[1, "chain", "why"]]}, "fuzz: 1 differences from NumPy"),
        ("fuzz", {"kernels": 0}, "fuzz: nothing ran"),
    ],
)
def test_what_is_not(part: str, counts: dict[str, Any], text: str):
    (line,) = selftest.shortcomings({**GOOD, part: {**GOOD[part], **counts}})
    assert line.startswith(text)


def test_random_kernels_are_a_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(selftest, "_KERNELS", 3)
    found = selftest.run(["fuzz"], seed=40)
    assert found["fuzz"]["kernels"] == 3 and found["fuzz"]["differences"] == []
    assert found["fuzz"]["seconds"] > 0


def test_mutants_are_a_part(monkeypatch: pytest.MonkeyPatch):
    few = [i for i in library.instances() if i.name.startswith("one/")]
    monkeypatch.setattr("warploom.testing.mutation.run.instances", lambda wanted: few)
    monkeypatch.setattr(selftest, "_MUTATION", 0.0)
    found = selftest.run(["mutation"])["mutation"]
    assert (found["counted"], found["false_alarms"]) == (0, 0)
    assert found["not_tried"] == 20  # there was no time, and it says so


def test_the_verb_writes_the_file(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(selftest, "_KERNELS", 2)
    assert main(["selftest", "--part", "fuzz", "--json", f"{tmp_path}/"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fuzz  2 kernels, 0 differences")
    record = json.loads((tmp_path / "selftest.json").read_text())
    assert record["suite"] == "selftest" and record["fuzz"]["kernels"] == 2
    assert len(record["source"]) == 64 and record["full"] is False and "hazards" not in record


def test_a_run_goes_on_from_its_file(tmp_path: Path, monkeypatch, capsys):
    ran: list[str] = []

    def part(name: str) -> Any:
        def run(full: bool, seed: int, tell: Any) -> dict[str, Any]:
            ran.append(name)
            if name == "blind" and len(ran) == 2:
                raise KeyboardInterrupt
            return {k: v for k, v in GOOD[name].items() if k != "seconds"}

        return run

    for name in selftest.PARTS:
        monkeypatch.setitem(selftest.PARTS, name, part(name))
    target = tmp_path / "s.json"
    words = ["selftest", "--json", str(target), "--resume", "--part", "hazards", "--part", "blind"]
    assert main(words) == 130  # cut short: what had been counted is kept
    assert "blind" not in json.loads(target.read_text())
    assert main(words) == 0 and ran == ["hazards", "blind", "blind"]
    record = json.loads(target.read_text())
    assert record["hazards"]["pairs"] == 80 and record["blind"]["planted"] == 40
    assert main([*words, "--seed", "1"]) == 0 and ran[3:] == ["hazards", "blind"]
    record["source"] = "another"
    target.write_text(json.dumps(record))
    assert main(words) == 0 and ran[5:] == ["hazards", "blind"]
    assert main(["selftest", "--resume"]) == 2
    assert "--resume goes on from a file" in capsys.readouterr().err


def test_the_verb_says_no(monkeypatch, capsys):
    def none(full: bool, seed: int, tell: Any) -> dict[str, Any]:
        return {"pairs": 2, "caught": 1, "false_alarms": 0, "missed": ["x"], "alarmed": []}

    monkeypatch.setitem(selftest.PARTS, "hazards", none)
    assert main(["selftest", "--part", "hazards"]) == 1
    assert "1 of 2 pairs caught, 100% are wanted" in capsys.readouterr().out
    assert main(["selftest", "--seed", "-1"]) == 2
