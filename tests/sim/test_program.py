"""Programs: completeness, batches, threads, order, what a launch prints, faults of plain mode."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from tests.sim.programs import lowered, program_of
from warploom.ir.op import REGISTRY
from warploom.sim import program as programs
from warploom.sim.registry import Rules, shadows, simulates


def test_every_operation_of_the_machine_stage_has_a_rule():
    assert simulates.missing() == []
    assert any(op.startswith("registers.") for op in REGISTRY)


def test_rules_refuse_a_second_one():
    rules = Rules("rules")
    op = next(iter(REGISTRY.values()))
    rules(op)(lambda t, o: None)
    with pytest.raises(ValueError, match="two rules"):
        rules(op)(lambda t, o: None)
    assert rules.find(op) is not None
    assert op.OPCODE not in rules.missing()
    assert set(shadows.missing()), "most operations use the default of checked mode"


@wl.kernel
def scale(x: wl.Tensor, y: wl.Tensor, factor: wl.f32, SIZE: wl.const):
    i = wl.program_id(0)
    wl.store(y[wl.ds(i * SIZE, SIZE)], wl.load(x[wl.ds(i * SIZE, SIZE)]) * factor)


def test_batches_threads_and_order_change_nothing(monkeypatch):
    x = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    results = []
    for size, threads, seed in ((1 << 10, 1, 0), (1 << 18, 2, 0), (1 << 14, 2, 7), (1 << 22, 1, 3)):
        monkeypatch.setattr(programs, "_TILE_BYTES", size)
        monkeypatch.setattr(programs, "_threads", lambda n=threads: n)
        y = np.zeros_like(x)
        call = scale.launch(293).call(x, y, 3.0, SIZE=1024)
        program_of(call).run((293,), (x, y, 3.0), seed=seed)
        results.append(y)
    for y in results:
        assert np.array_equal(y, x * np.float32(3))


def test_threads_stay_away_from_blocks_that_read_what_others_write():
    x = np.zeros(300_000, np.float32)
    y = np.zeros_like(x)
    program = program_of(scale.launch(293).call(x, y, 2.0, SIZE=1024))
    for target, allowed in ((y, True), (x, False)):
        launch = programs.Launch("k", (293, 1, 1))
        slots = [None] * 50
        program._bind(slots, (x, target, 2.0), (293, 1, 1))
        batches = program._batches((293, 1, 1), program._plain, 0, together=False)
        split = program._may_split(slots, batches * 3, launch)
        assert split == (allowed and programs._threads() > 1)


def test_grids_of_three_extents():
    @wl.kernel
    def where(y: wl.Tensor):
        i, j, k = wl.program_id(0), wl.program_id(1), wl.program_id(2)
        place = (k * wl.num_programs(1) + j) * wl.num_programs(0) + i
        wl.store(y[wl.ds(place, 1)], wl.full((1,), i + 10 * j + 100 * k, wl.i32))

    y = np.zeros(30, np.int32)
    where[(5, 3, 2)](y)
    expected = [i + 10 * j + 100 * k for k in range(2) for j in range(3) for i in range(5)]
    assert y.tolist() == expected


def test_empty_grids_run_nothing():
    y = np.zeros(4, np.float32)
    call = scale.launch(1).call(y, y, 2.0, SIZE=4)
    assert program_of(call).run((0,), (y, y, 2.0)).barriers == 0


def test_prints_come_in_block_order(capsys):
    @wl.kernel
    def speak(x: wl.Tensor):
        i = wl.program_id(0)
        if i % 2 == 0:
            print("even", i)
        print("value", wl.load(x[i]), i > 1)
        print("tile", wl.load(x[wl.ds(0, 3)]))

    x = np.float32([0.5, -2, 3e10])
    speak[3](x)
    tile = ["tile [0] 0.5", "tile [1] -2", "tile [2] 3e+10"]
    expected = ["even 0", "value 0.5 False", *tile, "value -2 False", *tile]
    expected += ["even 2", "value 3e+10 True", *tile]
    assert capsys.readouterr().out.splitlines() == expected


def test_assertions_name_block_and_element():
    @wl.kernel
    def positive(x: wl.Tensor, SIZE: wl.const):
        t = wl.load(x[wl.program_id(0), wl.ds(0, SIZE)])
        assert t >= 0, "a negative number"

    x = np.ones((4, 100), np.float32)
    positive[4](x, SIZE=100)
    x[2, 37] = -1
    with pytest.raises(wl.CheckError) as caught:
        positive[4](x, SIZE=100)
    assert caught.value.code == "M004"
    (report,) = caught.value.reports
    assert report.message == "assertion failed in `positive`: a negative number"
    assert report.notes == ("block (2, 0, 0), element [37]",)
    assert "assert t >= 0" in report.spans[0].source()


def test_wrong_arguments_are_refused():
    x = np.zeros(8, np.float32)
    program = program_of(scale.launch(1).call(x, x, 2.0, SIZE=8))
    with pytest.raises(ValueError, match="takes 3 arguments, 2 given"):
        program.run((1,), (x, x))
    with pytest.raises(ValueError, match="f32 of rank 1 expected, f64 of rank 1 given"):
        program.run((1,), (x.astype(np.float64), x, 2.0))
    with pytest.raises(ValueError, match="rank 2 given"):
        program.run((1,), (x.reshape(2, 4), x, 2.0))


def test_barriers_are_counted():
    @wl.kernel
    def total(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
        i = wl.program_id(0)
        wl.store(y[wl.ds(i, 1)], wl.sum(wl.load(x[i, wl.ds(0, SIZE)]), 0)[None])

    x, y = np.ones((5, 4000), np.float32), np.zeros(5, np.float32)
    call = total.launch(5).call(x, y, SIZE=4000)
    declared = call.text("machine").count("sync.barrier")
    assert declared > 0
    assert program_of(call).run((5,), (x, y)).barriers == 5 * declared
    assert (y == 4000).all()


def test_a_launch_gives_the_same_bits_again():
    x = np.random.default_rng(3).standard_normal(5000).astype(np.float32)
    program = None
    outputs = []
    for _ in range(3):
        y = np.zeros_like(x)
        program = program or program_of(scale.launch(5).call(x, y, 1.1, SIZE=1024))
        program.run((5,), (x, y, 1.1))
        outputs.append(y.tobytes())
    assert len(set(outputs)) == 1


def test_storages_are_optional():
    x = np.zeros(8, np.float32)
    call = scale.launch(1).call(x, x, 2.0, SIZE=8)
    assert lowered(call, storages=False).body.ops


FORKED = """
import os, sys
import numpy as np
import warploom as wl
from tests.sim.test_program import scale
x = np.ones(300_000, np.float32)
y = np.zeros_like(x)
scale[293](x, y, 3.0, SIZE=1024)
child = os.fork()
if child == 0:
    scale[293](x, y, 2.0, SIZE=1024)
    os._exit(0 if (y == 2).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_launches_in_a_forked_child():
    """The child has none of the parent's threads and must not wait for them."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", FORKED], cwd=root, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
