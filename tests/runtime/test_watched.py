"""Debug builds: a launch that stands still comes back, and tells what the simulator tells of it."""

from __future__ import annotations

import ctypes
import time
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.hazards.test_hazards import BROKEN, HERE, expected, kernel_of, named
from tests.runtime.test_trace import ring_call
from tests.runtime.watching import machine_of, notes_for, run
from warploom.base.errors import CheckError, LaunchError, error
from warploom.ir import watch as words
from warploom.ir.kernel import walk
from warploom.ir.ops import watch
from warploom.ir.roles import split_of
from warploom.runtime import driver, watched
from warploom.runtime import variant as variants
from warploom.runtime.launch import Call, Launcher
from warploom.runtime.variant import SimVariant
from warploom.sim.program import prepare
from warploom.sim.stopped import report_of

# Kernels that stand still on the default schedule, whatever else is wrong with them.
STILL = [
    *("deadlock/no_arrival", "deadlock/c03_three", "deadlock/one_consumer_arrives"),
    *("deadlock/producer_parity", "deadlock/counts_three_consumers", "bytes/too_many"),
    *("flags/target_too_high", "flags/skips_a_round", "cluster/c06_mask_of_one"),
]


def told(ended: Any, call: Call) -> Any:
    """The report that is made of the notes of a launch."""
    ways = call.launcher.ways
    return report_of(ended.machine, call.launcher.grid, ended.notes, together=ways.cooperative)


# Those that are not refused before they run.
RUN = [path for path in BROKEN if all(code[0] in "MURD" for code, _ in expected(path))]


def gist(report):
    """What a report says. Of a deadlock: who waits where, for what. The notes of a launch do not
    say who of several has come already, and so who is still able to."""
    if report.code != "D001":
        return report.render()
    waits = {note for note in report.notes if " waits at line " in note}
    return {(s.file, s.line, s.column, s.role) for s in report.spans}, waits


@pytest.mark.parametrize("path", named(RUN))
def test_the_notes_of_a_hazard_say_what_the_simulator_says(path):
    """A deadlock is read from the notes, another fault comes as without them, word for word."""
    plain = run(kernel_of(path).example_call(), watched=False)
    call = kernel_of(path).example_call()
    ended = run(call)
    found = told(ended, call) or ended.raised
    assert (found is None) == (plain.raised is None)
    if found is not None and plain.raised is not None:
        assert gist(found) == gist(plain.raised)
        assert (found.code == "D001") == bool(ended.notes[words.STOPPED])


@pytest.mark.parametrize("name", STILL)
def test_these_stand_still(name):
    call = kernel_of(HERE / f"{name}_broken.py").example_call()
    found = told(run(call), call)
    assert found is not None and found.code == "D001"


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4])
def test_delays_change_nothing_but_the_order(seed):
    """A kernel that is right computes the same; one that stands still does so for the same
    reason."""
    call, out, x = ring_call(SimArrays(), 9)
    ended = run(call, delays=seed, seed=seed)
    assert ended.raised is None and not ended.notes[words.STOPPED]
    assert (out == x).all()
    still = kernel_of(HERE / "deadlock/no_arrival_broken.py").example_call()
    found = told(run(still, delays=seed, seed=seed), still)
    assert "lacks 4 of 4 arrivals" in found.render()


@wl.kernel
def in_order_of_coming(count: wl.Tensor, order: wl.Tensor):
    mine = wl.barrier(2, arrivals=1)
    with wl.roles(), wl.role("come", warps=1, replicas=2) as r:
        for i in wl.range(0, 8):
            with wl.one_thread():
                mine[r].arrive()
            wl.store(order[wl.atomic_add(count[0], 1)], r)
            mine[r].wait(i % 2)


def test_delays_change_who_comes_first():
    orders = set()
    for seed in range(-1, 8):
        order = np.full(16, -1, np.int32)
        ended = run(in_order_of_coming.launch(1).call(np.zeros(1, np.int32), order), delays=seed)
        assert ended.raised is None and sorted(order) == [0] * 8 + [1] * 8
        orders.add(tuple(order.tolist()))
    assert len(orders) >= 5


class SimArrays:
    """Arrays of the simulator under the names of a device."""

    name = "sim"
    put = staticmethod(np.copy)
    empty = staticmethod(np.zeros)


def test_blocks_without_notes_are_watched_too():
    path = HERE / "flags/target_too_high_broken.py"
    call = kernel_of(path).example_call()
    ended = run(call, blocks=1)
    found: Any = told(ended, call)
    assert found.notes[0] == "block (0, 0, 0)"
    assert sum(" waits at line " in note for note in found.notes) == 1
    none = run(kernel_of(path).example_call(), blocks=0)
    assert none.notes[words.STOPPED] and told(none, call) is None


# ---- notes by hand -------------------------------------------------------------------------------


def still() -> tuple[Call, Any]:
    call = kernel_of(HERE / "deadlock/no_arrival_broken.py").example_call()
    return call, run(call)


def row_of(ended: Any, role: str) -> slice:
    """The words of the first warp of a role."""
    split = split_of(ended.machine)
    first = split.first[split.names.index(role)]
    at = words.HEAD + words.ROWS + words.ROW * first
    return slice(at, at + words.ROW)


def test_bytes_of_which_nobody_knows_how_many():
    """The word of an mbarrier that is not as it is known: the report says so, and shows it."""
    path = HERE / "bytes/too_many_broken.py"
    call = kernel_of(path).example_call()
    ended = run(call)
    row = row_of(ended, "write")
    assert "lacks 8,192 of 16,384 bytes" in told(ended, call).render()
    ended.notes[row][3] = 0x1234
    text = told(ended, call).render()
    assert "lacks some of 16,384 bytes (the barrier's word is 0x0000000000001234)" in text


def test_warps_of_a_role_that_stand_at_different_places():
    call, ended = still()
    row = row_of(ended, "write")
    ended.notes[row.start + words.ROW] = 0  # the second warp has not come anywhere
    assert "`write` waits at line 24 for `full[0]`" in told(ended, call).render()
    ended.notes[row.start + words.ROW : row.stop + words.ROW] = ended.notes[row_of(ended, "load")]
    text = told(ended, call).render()
    assert "`write` waits at line 24 for `full[0]`, parity 1" in text and "(warps 0, 2, 3)" in text
    assert "for `empty[0]`, parity 0" in text and "(warp 1)" in text


def test_who_waits_for_the_rest_of_its_role_is_not_named():
    """One thread waits for a flag, and the warps of the block for that thread."""
    call = kernel_of(HERE / "flags/target_too_high_broken.py").example_call()
    ended = run(call)
    own = (op for op in walk(ended.machine.body) if isinstance(op, watch.Meet))
    meet = next(op for op in own if op.threads == 128)
    before = told(ended, call).render()
    at = words.HEAD + words.ROWS + words.ROW
    for row in range(at, at + 3 * words.ROW, words.ROW):
        ended.notes[row : row + words.ROW] = [meet.place << 1 | 1, meet.id, 128, 0]
    assert told(ended, call).render() == before


def test_a_launch_that_had_to_be_stopped_is_told_from_one_block():
    """Warps that came to a wait and did not leave stand there."""
    call, ended = still()
    for role in ("load", "write"):
        row = row_of(ended, role)
        if role == "write":
            ended.notes[row.start : row.start + 4 * words.ROW : words.ROW] &= ~1
    grid = call.launcher.grid
    before = watched.told(ended.machine, grid, ended.notes, 2.0, False, caught=False)
    after = watched.told(ended.machine, grid, ended.notes, 0.5, False, caught=True)
    assert "`write` waits" not in before.render()
    assert "`write` waits at line 24 for `full[0]`" in after.render()
    assert "took more than 0.5 seconds on the GPU" in after.notes[-1]
    assert "cannot use the GPU any more" in after.notes[-1]
    assert "the launch was left" in before.notes[-1]


def test_nothing_to_tell():
    call = ring_call(SimArrays(), 3)[0]
    machine = machine_of(call)
    notes = notes_for(machine, 1)
    assert report_of(machine, (1, 1, 1), notes) is None
    notes[words.STOPPED] = 1  # and nobody noted anything
    assert report_of(machine, (1, 1, 1), notes) is None


@pytest.mark.parametrize("state", [(4, 0, 4, 0), (1, 16384, 3, 1), (0, -512, 1, 2), (0, 1, 9, 7)])
def test_the_word_of_an_mbarrier(state):
    pending, lacks, count, phase = state
    word = words.written_word(pending, lacks, count, phase)
    assert -(1 << 63) <= word < 1 << 63
    assert words.read_word(word) == (pending, lacks, count)


def test_the_word_of_a_new_mbarrier_is_that_of_the_hardware():
    """As the assembler writes it for `mbarrier.init` of 32 arrivals."""
    assert words.written_word(32, 0, 32, 0) == 0x7FFF0000_001FFFC0


@pytest.mark.parametrize(
    ("word", "state"),
    [
        (0x7FFFF800_001FFFFE, (1, 0, 1)),  # new, one arrival a phase
        (0xFFFFF800_001FFFFE, (1, 0, 1)),  # the same in an odd phase
        (0xFFFFE800_001FFFFA, (3, 0, 3)),
        (0x000003FC_001FFFFE, (0, 8192, 1)),  # the arrival has come, and bytes are to come
        (0x7FFFFA00_00200002, (1, 1048575, 1048575)),  # all arrivals but one, the most bytes
    ],
)
def test_words_that_an_h200_held(word, state):
    """Read from shared memory behind `mbarrier` operations: (pending, lacks, arrivals)."""
    assert words.read_word(word) == state
    assert words.written_word(*state, word >> 63) == word - (word >> 63 << 64)


# ---- the launch ----------------------------------------------------------------------------------


@pytest.fixture
def pretended(monkeypatch):
    """A GPU whose launches the simulator makes; gives what was launched."""
    launched: list[tuple[Any, np.ndarray]] = []

    class Pretended(SimVariant):
        def launch(self, grid, arguments, stream, ways=None):
            launched.append((self.kernel, arguments.values[-1].host))
            super().launch(grid, arguments, stream, ways)

    def build(request, place):
        machine = variants.compiler.machine_kernel(request, variants.compiler.targets.DEFAULT)
        return Pretended(machine, prepare(machine))

    kept: list[np.ndarray] = []

    def allocate(device: int, size: int) -> int:
        kept.append(np.zeros(size // 8, np.int64))
        return kept[-1].ctypes.data

    monkeypatch.setattr(variants, "build", build)
    monkeypatch.setattr(watched, "target_for", lambda device: variants.compiler.targets.DEFAULT)
    monkeypatch.setattr(watched.memory, "to_device", lambda array, place: array)
    monkeypatch.setattr(watched.memory, "to_numpy", lambda array: array)
    monkeypatch.setattr(driver, "allocate_shared", allocate)
    monkeypatch.setattr(driver, "free_shared", lambda device, address: None)
    monkeypatch.setattr(driver, "synchronize", lambda device: None)
    return launched


def launch(call: Call, **options: Any) -> None:
    """Launch a call as a debug build on the pretended GPU."""
    old = call.launcher
    kernel = old.kernel.options(**{"debug": True, **options})
    launcher = Launcher(kernel, old.grid, old.warps, None, old.cluster, old.ways)
    watched.launch(launcher, replace(call.arguments, place="gpu:0"))


def test_a_launch_raises_what_it_was_told(pretended):
    call = kernel_of(HERE / "deadlock/no_arrival_broken.py").example_call()
    with pytest.raises(CheckError) as raised:
        launch(call, debug=0.25)
    assert raised.value.code == "D001"
    assert "took more than 0.25 seconds on the GPU" in str(raised.value)
    ((machine, notes),) = pretended
    assert machine.watched and machine.delays == -1
    assert notes[words.LIMIT] == 250_000_000 and notes[words.COPY]


def test_a_launch_that_ends_says_nothing(pretended):
    call, out, x = ring_call(SimArrays(), 6)
    launch(call, delays=11)
    assert (out == x).all()
    ((machine, notes),) = pretended
    assert machine.delays == 11
    assert len(notes) == words.HEAD + words.words(machine.warps, 6)
    launch(call, delays=11)
    assert len(pretended) == 2


def test_a_launch_that_was_stopped_is_told_from_the_copy(pretended, monkeypatch):
    call = kernel_of(HERE / "deadlock/no_arrival_broken.py").example_call()
    ended = run(call)

    def broken(device: int) -> None:
        _, notes = pretended[-1]
        size = len(notes) - words.HEAD + 1
        memory = (ctypes.c_int64 * size).from_address(int(notes[words.COPY]))
        held = np.ctypeslib.as_array(memory)
        held[0], held[1:] = 1, ended.notes[words.HEAD :]
        raise error("H023", "waiting for the GPU failed")

    monkeypatch.setattr(driver, "synchronize", broken)
    with pytest.raises(CheckError, match="cannot use the GPU any more"):
        launch(call)


def test_another_failure_is_not_taken_for_a_deadlock(pretended, monkeypatch):
    def broken(device: int) -> None:
        raise error("H023", "waiting for the GPU failed")

    monkeypatch.setattr(driver, "synchronize", broken)
    with pytest.raises(LaunchError, match="failed"):
        launch(ring_call(SimArrays(), 3)[0])


def test_many_blocks_have_no_more_notes_than_fit(pretended, monkeypatch):
    monkeypatch.setattr(watched, "_MOST_BYTES", 4096)

    call = many.launch(1000).call(np.zeros(1000, np.float32))
    launch(call)
    ((_, notes),) = pretended
    assert 8 * len(notes) <= 4096 + 8 * words.HEAD
    assert prod(call.launcher.grid) == 1000


def test_an_empty_grid_is_no_launch(pretended):
    launch(many.launch(0).call(np.zeros(0, np.float32)))
    assert not pretended


@wl.kernel
def many(x: wl.Tensor):
    wl.store(x[wl.ds(wl.program_id(0), 1)], wl.full((1,), 1.0, wl.f32))


# ---- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"debug": "yes"}, "True, or the seconds"),
        ({"debug": -1}, "True, or the seconds"),
        ({"debug": 1e9}, "True, or the seconds"),
        ({"debug": True, "delays": -1}, "a seed from 0"),
        ({"debug": True, "delays": True}, "a seed from 0"),
        ({"debug": True, "delays": 1 << 31}, "a seed from 0"),
        ({"delays": 3}, "this is no debug build"),
    ],
)
def test_options_that_do_not_go(options, text):
    with pytest.raises(LaunchError, match=text) as refused:
        many.options(**options)
    assert refused.value.code == "H021"


def test_a_debug_build_is_checked_on_the_simulator_by_its_seed():
    path = HERE / "deadlock/no_arrival_broken.py"
    call = kernel_of(path).example_call()
    kernel = call.kernel.options(debug=True, delays=4)
    with pytest.raises(CheckError):
        kernel.launch(call.launcher.grid)(*call.args, **call.kwargs)
    assert kernel.options().delays == 4 and kernel.options().debug == 2.0


# ---- on a GPU ------------------------------------------------------------------------------------


def on_gpu(path: str) -> tuple[Any, Any]:
    """The example of a hazard on the GPU, as a debug build, and what the simulator says of it."""
    kernel = kernel_of(HERE / f"{path}_broken.py")
    plain = run(kernel.example_call(), watched=False)
    return kernel, plain.raised


@pytest.mark.gpu
@pytest.mark.parametrize("path", STILL)
def test_a_gpu_that_stands_still_comes_back_with_the_report(path):
    kernel, expected = on_gpu(path)
    call = kernel.example_call(device="gpu")
    old = call.launcher
    launcher = Launcher(
        kernel.options(debug=True), old.grid, old.warps, None, old.cluster, old.ways
    )
    began = time.monotonic()
    with pytest.raises(CheckError) as raised:
        launcher(*call.args, **call.kwargs)
    assert time.monotonic() - began < 10
    (found,) = raised.value.reports
    assert found.code == expected.code == "D001"
    assert gist(found) == gist(expected) and "on the GPU" in found.notes[-1]
    # The process goes on.
    x = wl.to_device(np.zeros(4, np.float32))
    many[4](x)
    assert (wl.to_numpy(x) == 1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(4))
def test_a_gpu_computes_the_same_under_delays(seed, device):
    call, out, x = ring_call(device, 12)
    kernel = call.kernel.options(debug=True, delays=seed)
    kernel.launch(1)(*call.args, **call.kwargs)
    assert (device.get(out) == x).all()
