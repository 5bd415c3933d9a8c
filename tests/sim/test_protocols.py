"""Mistakes with barriers, copies and products, as users see them: deadlocks, bytes, arrivals,
order."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from tests.sim.protocols import early, ring, through_shared
from warploom.sim.actors import SCHEDULES

BYTES = 64 * 64 * 2
ROWS = 64 * 5


def tiles() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, 64)).astype(ml_dtypes.bfloat16)


def checked(**options: Any) -> list[Any]:
    """Reports of the ring in checked mode over four seeds."""
    x = tiles()
    found = ring.launch(1).check(x, np.zeros_like(x), STEPS=5, seeds=4, **options)
    return [f.report for f in found.found]


def raised(**options: Any) -> wl.CheckError:
    """What the ring raises in plain mode."""
    x = tiles()
    with pytest.raises(wl.CheckError) as caught:
        ring[1](x, np.zeros_like(x), STEPS=5, **options)
    return caught.value


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 6])
def test_the_ring_is_right(stages: int):
    x = tiles()
    for steps in (0, 1, stages, 5):
        y = np.zeros_like(x)
        found = ring.launch(1).check(x, y, STEPS=steps, S=stages, seeds=4)
        assert not found.found, [f.report.render() for f in found.found]
        assert (y[: 64 * steps] == x[: 64 * steps]).all()


# ---- deadlocks ---------------------------------------------------------------------------------


def test_deadlock_by_a_missing_arrival(golden):
    golden(str(raised(ARRIVE=0)))


def test_deadlock_by_a_wrong_parity(golden):
    golden(str(raised(FLIP=0)))


def test_deadlock_by_bytes_that_never_come(golden):
    golden(str(raised(BYTES=BYTES + 64)))


@pytest.mark.parametrize("options", [{"ARRIVE": 0}, {"FLIP": 0}, {"BYTES": BYTES + 64}], ids=str)
def test_a_deadlock_is_found_under_every_schedule(options: dict[str, Any]):
    assert {r.code for r in checked(**options)} == {"D001"}


def test_other_blocks_go_on_after_a_deadlock():
    x = tiles()
    found = ring.launch(3).check(x, np.zeros_like(x), STEPS=5, ARRIVE=0)
    # All blocks write the same tiles.
    assert {f.report.code for f in found.found} == {"R102", "D001"}


# ---- books -------------------------------------------------------------------------------------


def test_bytes_that_nobody_announced(golden):
    golden(str(raised(BYTES=BYTES // 2)))


def test_bytes_that_nobody_announced_under_every_schedule():
    assert {r.code for r in checked(BYTES=BYTES // 2)} == {"M012"}


def test_too_many_arrivals(golden):
    golden(str(raised(ARRIVE=2)))


def test_a_tile_read_before_it_arrived():
    assert "R101" in {r.code for r in checked(WAIT=False)}


# ---- order -------------------------------------------------------------------------------------


def product(retire: bool) -> tuple[list[Any], float]:
    """Reports on four seeds, and the largest error of the last run."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    found = early.launch(1).check(a, b, c, STEPS=4, RETIRE=retire, seeds=4)
    error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64).T).max()
    return [f.report for f in found.found], float(error)


def test_a_slot_handed_back_after_its_product():
    reports, error = product(True)
    assert not reports
    assert error < 1e-3


def test_a_slot_handed_back_before_its_product(golden):
    reports, _ = product(False)
    assert {r.code for r in reports} == {"R101", "U102"}
    golden(next(r for r in reports if r.code == "R101").render(), "race")
    golden(next(r for r in reports if r.code == "U102").render(), "wait")


def written_out(**options: Any) -> tuple[list[Any], bool]:
    """Reports on four seeds, and whether the last result is right."""
    x = tiles()[:64]
    y = np.zeros_like(x)
    found = through_shared.launch(1).check(x, y, seeds=4, **options)
    return [f.report for f in found.found], bool((y == x + x).all())


def test_a_tile_written_out_and_used_again():
    assert written_out() == ([], True)


def test_a_tile_used_again_before_it_was_read(golden):
    reports, _ = written_out(READS=False)
    assert [r.code for r in reports] == ["R101"]
    golden(reports[0].render())


def test_a_block_that_ends_before_its_copies(golden):
    reports, _ = written_out(WAIT=False)
    assert [r.code for r in reports] == ["M013"]
    golden(reports[0].render())


@wl.kernel
def polled(x: wl.Tensor, y: wl.Tensor):
    tile, full = wl.shared((64, 64), x.dtype), wl.barrier(1)
    with wl.one_thread():
        full.expect(64 * 64 * 4)
        wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile, full)
    tries = 0
    while not full.test(0):
        tries = tries + 1
    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.load())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_copy_that_somebody_asks_for_comes_some_time(schedule: str):
    """As late as possible is not never: who polls can always go on."""
    x, y = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    found = polled.launch(1).call(x, y).check(2, schedule=schedule)
    assert found.clean, found.text()
    assert (y == x).all()
