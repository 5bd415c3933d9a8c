"""Which values may be unwritten: what was read from memory, and what it flows into."""

import numpy as np
import pytest

import warploom as wl
from tests.sim.programs import lowered, program_of
from warploom.ir.kernel import walk
from warploom.ir.ops import control, global_memory
from warploom.sim.shadow import mark_unwritten
from warploom.sim.translate import Translator


@wl.kernel
def carried(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    i = wl.program_id(0)
    a, b = wl.zeros((32,), wl.f32), wl.zeros((32,), wl.f32)
    for k in wl.range(n):
        a = b
        b = wl.load(x[k + i, wl.ds(0, 32)])
    wl.store(y[i, wl.ds(0, 32)], a)


def call(n: int):
    x, y = np.ones((4, 32), np.float32), np.zeros((1, 32), np.float32)
    return carried.launch(1).call(x, y, n), x, y


@pytest.mark.parametrize("storages", [False, True])
def test_what_was_read_and_what_it_flows_into(storages: bool):
    kernel = lowered(call(2)[0], storages=storages)
    t = Translator(kernel, checked=True)
    (loop,) = (op for op in walk(kernel.body) if isinstance(op, control.For))
    (load,) = (op for op in walk(kernel.body) if isinstance(op, global_memory.Load))
    assert t.slot(load.result) in t.loose
    assert all(t.slot(v) in t.loose for v in loop.carried)
    assert t.slot(load.tensor) not in t.loose
    assert t.slot(load.base) not in t.loose or not storages, "addresses come from arguments"
    assert Translator(kernel, checked=False).loose == frozenset()


@pytest.mark.parametrize("storages", [False, True])
@pytest.mark.parametrize(("trips", "found"), [(0, 0), (1, 0), (2, 1), (3, 0)])
def test_a_carried_value_is_as_written_as_what_it_holds(trips: int, found: int, storages: bool):
    """The row that was never written is the first one: `a` holds it after two trips only."""
    made, x, y = call(trips)
    unwritten = np.empty((4, 32), np.float32)
    mark_unwritten(unwritten)
    program = program_of(made, storages=storages)
    store = program_of(carried.launch(1).call(x, unwritten[1:], 3))
    for row in (1, 2, 3):
        store.run((1,), (x, unwritten[row : row + 1], 3))
    findings = program.run((1,), (unwritten, y, trips), checked=True).findings
    assert [f.code for f in findings] == ["M002"] * found
