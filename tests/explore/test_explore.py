"""`check --explore`: what it proves of right kernels, and what it says of wrong ones."""

import json
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from tests.explore.instances import SMALL, by_hand, handed, in_turn, ring, ring_gemm
from tests.sim.test_control import never
from warploom.cli.__main__ import main
from warploom.runtime.findings import EXPLORED, Findings

HAZARDS = Path(__file__).parents[1] / "hazards"
RIGHT = HAZARDS / "race/late_wait_fixed.py"
WRONG = HAZARDS / "deadlock/one_consumer_arrives_broken.py"


def numbers(found: Findings) -> tuple[int, int, int]:
    """States, transitions, interleavings."""
    held = found.bounds["explore"]
    return held["states"], held["transitions"], held["interleavings"]


# ---- the ring of a product ---------------------------------------------------------------------


def test_the_ring_of_a_product():
    """2 stages, 1 producer, 2 consumers, 4 steps: no race and no deadlock, in whatever order."""
    found = ring_gemm(4).explore()
    assert found.clean
    held = found.bounds["explore"]
    assert held["complete"]
    assert held["warps"] == 12
    assert (held["races"], held["deadlocks"], held["ends"]) == (0, 0, 1)
    states, transitions, interleavings = numbers(found)
    assert (transitions, interleavings) == (states - 1, 1)
    # Each warp of the consumers waits, retires and releases in each step, the producer waits and
    # announces, two copies come.
    assert states > 4 * (8 * 2 + 2 + 2)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
def test_the_same_by_hand(steps: int, stages: int):
    found = by_hand(steps, S=stages).explore()
    assert found.clean, found.text()
    assert numbers(found)[2] == 1


def test_one_consumer_counted_of_two():
    found = by_hand(4, COUNT=1).explore(limit=20_000)
    assert {"U101", "U102"} & {f.code for f in found}


# ---- reports -----------------------------------------------------------------------------------


def report(found: Findings, code: str) -> str:
    """The first report of a code."""
    return next(f.report.render() for f in found if f.code == code)


def test_a_deadlock_by_the_shortest_way(golden):
    found = by_hand(2, S=1, COUNT=3).explore()
    assert [f.code for f in found] == ["D001"]
    golden(report(found, "D001"))


def test_a_deadlock_in_some_interleavings_only(golden):
    found = in_turn(3, 1).explore()
    golden(report(found, "D001"))


def test_a_deadlock_with_one_that_has_ended(golden):
    found = ring(3, S=1, SKIP=2).explore()
    golden(report(found, "D001"))


@pytest.mark.parametrize("code", ["U101", "U102", "M011", "M012", "U103"])
def test_what_differs_between_interleavings(code: str, golden):
    found = in_turn(3, 1).explore()
    golden(report(found, code), code)


def test_bytes_that_come_in_one_phase_or_another(golden):
    found = in_turn(5, 3).explore()
    golden(report(found, "M012"))


def test_signals_of_two_rounds(golden):
    make, _ = SMALL["all count, low"]
    golden(report(make().explore(), "U105"))


def test_a_deadlock_between_blocks(golden):
    found = handed(2, AHEAD=1).explore()
    golden(report(found, "D001"))


def test_too_large(golden):
    found = ring(5).explore(limit=10)
    held = found.bounds["explore"]
    assert (held["complete"], held["states"]) == (False, 10)
    golden(report(found, "K002"))


def test_a_loop_that_does_not_end(monkeypatch: pytest.MonkeyPatch):
    """It is told, as by a checked run, and the exploration ends."""
    monkeypatch.setattr("warploom.sim.machine._MOST_CHECKED_TRIPS", 100)
    found = never.launch(1).call(np.zeros(1, np.int32)).explore()
    assert [f.code for f in found] == ["D002"]


def test_findings_say_that_they_were_explored():
    found = ring(3, FLIP=0).explore()
    assert [(f.code, f.seed, f.schedule) for f in found] == [("D001", 0, EXPLORED)]


@wl.kernel
def claimed(y: wl.Tensor, next_row: wl.Tensor, ROWS: wl.const):
    """Two roles that claim rows by an atomic counter."""
    with wl.roles(), wl.role("claim", warps=1, replicas=2):
        row = wl.atomic_add(next_row[0], 1)
        while row < ROWS:
            wl.store(y[row, wl.ds(0, 32)], wl.full((32,), 1, wl.i32))
            row = wl.atomic_add(next_row[0], 1)


def test_the_choices_of_a_run_are_named():
    y = np.zeros((3, 32), np.int32)
    found = claimed.launch(1).call(y, np.zeros(1, np.int32), ROWS=3).explore()
    assert found.clean, found.text()
    assert "for the choices of this run" in found.words
    places = found.bounds["explore"]["choices"]
    assert {"control.while"} <= {p["operation"] for p in places}
    assert all(p["line"] > 0 for p in places)


def test_a_kernel_without_synchronisation():
    x = np.ones((4, 32), np.float32)

    @wl.kernel
    def copied(x: wl.Tensor, y: wl.Tensor):
        i = wl.program_id(0)
        wl.store(y[i, wl.ds(0, 32)], wl.load(x[i, wl.ds(0, 32)]))

    found = copied.launch(4).call(x, np.zeros_like(x)).explore()
    assert found.clean
    assert found.bounds["explore"]["groups"] == 0


def test_blocks_that_do_the_same_are_explored_once():
    call = ring(3)
    call.launcher.grid = (3, 1, 1)
    held = call.explore().bounds["explore"]
    assert (held["groups"], held["distinct"]) == (3, 1)


# ---- the verb ----------------------------------------------------------------------------------


def test_the_verb_on_a_right_kernel(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(RIGHT), "--explore"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "ring@default: clean (0 races, 0 deadlocks in 1 inequivalent interleaving;"
    )


def test_the_verb_on_a_wrong_kernel(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(WRONG), "--explore", "--json", "-"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["checked"]
    assert one["verdict"] == "findings"
    assert one["bounds"]["explore"]["deadlocks"] == 1
    assert one["bounds"]["explore"]["reduced"]


def test_the_verb_with_a_limit(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(RIGHT), "--explore", "--no-reduction", "--limit", "50"]) == 1
    out = capsys.readouterr().out
    assert "stopped after 50 states" in out
    assert "[K002]" in out


@pytest.mark.parametrize(
    "words",
    [
        ["--limit", "5"],
        ["--no-reduction"],
        ["--explore", "--limit", "0"],
        ["--explore", "--seed", "1"],
    ],
    ids=str,
)
def test_options_that_do_not_fit(words: list[str]):
    assert main(["check", str(RIGHT), *words]) == 2


@wl.kernel
def waits_for_nobody(y: wl.Tensor, flag: wl.Tensor):
    """A wait for a flag that the launch leaves as it is."""
    wl.wait(flag[0], at_least=2)
    wl.store(y[wl.ds(0, 32)], wl.full((32,), 1, wl.i32))


@pytest.mark.parametrize("held", [1, 2])
def test_a_flag_that_nobody_writes(held: int):
    flag, y = np.full(1, held, np.int32), np.zeros(32, np.int32)
    found = waits_for_nobody.launch(1).call(y, flag).explore()
    assert [f.code for f in found] == (["D001"] if held < 2 else [])
