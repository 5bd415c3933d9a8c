"""`warploom check`, and the fixture of the same name."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.sim.protocols import ring
from warploom.cli.__main__ import main

HAZARDS = Path(__file__).parents[1] / "hazards"
WRONG, RIGHT = HAZARDS / "race/late_wait_broken.py", HAZARDS / "race/late_wait_fixed.py"


def test_a_right_kernel(capsys: pytest.CaptureFixture[str]):
    assert main(["check", f"{RIGHT}:ring", "--seeds", "3"]) == 0
    assert capsys.readouterr().out == "ring@default: clean (3 schedules)\n"


def test_a_wrong_kernel(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(WRONG), "--seeds", "2"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("ring@default: findings (2 schedules)")
    assert "race[R101]" in out


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(WRONG), "--seeds", "2", "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "findings"
    (one,) = found["checked"]
    assert (one["kernel"], one["example"], one["seeds"]) == ("ring", "default", 2)
    assert "R101" in {f["code"] for f in one["findings"]}
    assert all(f["spans"][0]["line"] > 0 for f in one["findings"])


@pytest.mark.parametrize("words", [["tests/sim/protocols.py"], ["nowhere.py"]])
def test_nothing_to_check(words: list[str]):
    assert main(["check", *words]) == 2


def test_at_least_one_schedule():
    assert main(["check", str(RIGHT), "--seeds", "0"]) == 2


def test_the_fixture(check):
    x = np.ones((320, 64), np.float16)
    check(ring.launch(1).call(x, np.zeros_like(x), STEPS=5), seeds=2)
    with pytest.raises(pytest.fail.Exception, match="deadlock"):
        check(ring.launch(1).call(x, np.zeros_like(x), STEPS=5, ARRIVE=0), seeds=1)


def test_one_schedule_again(capsys: pytest.CaptureFixture[str]):
    """What a run over several seeds says of a finding shows it again."""
    words = ["check", str(WRONG), "--seed", "4", "--schedule", "priorities"]
    assert main([*words, "--json", "-"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["checked"]
    assert {(f["seed"], f["schedule"]) for f in one["findings"]} == {(4, "priorities")}
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("ring@default: findings (seed 4, priorities)")
    assert "first shown by seed 4: `warploom check … --seed 4 --schedule priorities`" in out


def test_a_seed_below_zero():
    assert main(["check", str(RIGHT), "--seed", "-1"]) == 2
