"""The shared memory of peers on the simulator: exchanges are clean under every schedule, and what
is taken out of them is found."""

from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.language.test_remote import multiplied, pushed_sums, relayed, turned
from tests.ops.remote import passed
from tests.sim.test_clusters import lowered, syncs, without
from warploom.base.diagnostics import Report
from warploom.ir.kernel import Kernel, walk
from warploom.ir.ops import remote, sync
from warploom.sim.program import prepare
from warploom.testing.golden import Golden

SEEDS = 20


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_pushes_are_clean(size):
    x = numbers((size, 33))
    y = np.zeros((4, *x.shape), np.float32)
    found = pushed_sums.launch(size, cluster=size).check(
        x, y, 4, 33, seeds=5 if size > 4 else SEEDS
    )
    assert found.clean, found.text()


def test_copies_and_views_are_clean():
    x = numbers((5, 128), np.float16)
    found = relayed.launch(2, cluster=2).check(x, np.zeros_like(x), 2, 128, seeds=SEEDS)
    assert found.clean, found.text()
    x = numbers((2, 32, 64), np.float16)
    y = np.zeros((2, 64, 16), np.float16)
    found = turned.launch(2, cluster=2).check(x, y, 1, 128, seeds=SEEDS)
    assert found.clean, found.text()
    a, b, c = numbers((64, 64), np.float16), numbers((2, 64, 64), np.float16), numbers((2, 64, 64))
    found = multiplied.launch(2, cluster=2).check(a, b, c, 0, seeds=SEEDS)
    assert found.clean, found.text()


# ---- taken out -----------------------------------------------------------------------------------


def findings(kernel: Kernel, call: Any, seed: int) -> list[Report]:
    arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in call.args]
    arguments = arguments[: len(kernel.params)]
    return prepare(kernel).run(call.launcher.grid, arguments, checked=True, seed=seed).findings


def found_by_every_schedule(kernel: Kernel, call: Any, code: str) -> str:
    """The text of the first report of a code, which each of the seeds gives."""
    texts = []
    for seed in range(SEEDS):
        reports = findings(kernel, call, seed)
        texts.append([r.render() for r in reports if r.code == code])
        assert texts[-1], (seed, [r.code for r in reports])
    return texts[0][0]


@wl.kernel
def around(x: wl.Tensor, y: wl.Tensor, HOW: wl.const):
    """y[block] = Σ x of the cluster: each block hands what it has got so far to the next one."""
    here = wl.shared((1, 32), wl.f32)
    block, size = wl.program_id(0), wl.cluster_size()
    total = wl.load(x[wl.ds(block, 1), wl.ds(0, 32)])
    passed = total
    for _ in wl.range(size - 1):
        if HOW == "store":
            here.on((wl.cluster_rank() + 1) % size).store(passed)
            wl.cluster_sync()
            passed = here.load()
        else:
            here.store(passed)
            wl.cluster_sync()
            passed = here.on((wl.cluster_rank() + 1) % size).load()
        total = total + passed
        wl.cluster_sync()
    wl.store(y[wl.ds(block, 1), wl.ds(0, 32)], total)


def ring(size: int, how: str = "store") -> Any:
    x = numbers((size, 32))
    return around.launch(size, cluster=size).call(x, np.zeros_like(x), how)


@pytest.mark.case("C07")
@pytest.mark.parametrize("how", ["store", "load"])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_ring_of_sums(device, size, how):
    x = numbers((size * 2, 32))
    y = device.put(np.zeros_like(x))
    around.launch(size * 2, cluster=size)(device.put(x), y, how)
    assert np.array_equal(device.get(y), np.repeat(x.reshape(2, size, 32).sum(1), size, 0))


@pytest.mark.case("C07")
@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_ring_without_its_first_wait(golden: Golden, size: int):
    """Nothing else lets a block know that the next one has begun."""
    call = ring(size)
    kernel = lowered(call)
    assert not findings(kernel, call, 0)
    text = found_by_every_schedule(without(kernel, syncs(kernel)[0]), call, "M032")
    if size == 2:
        golden(text)
        with pytest.raises(wl.CheckError, match="M032"):  # and without the checker
            prepare(kernel).run(call.launcher.grid, call.args[:2])


@wl.kernel
def last_words(x: wl.Tensor, y: wl.Tensor, HOW: wl.const):
    """Rank 0 reaches rank 1 last of all, and rank 1 does nothing after it has said what it has."""
    here = wl.shared((1, 32), wl.f32)
    block = wl.program_id(0)
    here.store(wl.load(x[wl.ds(block, 1), wl.ds(0, 32)]))
    wl.cluster_sync()
    if wl.cluster_rank() == 0:
        if HOW == "store":
            here.on(1).store(wl.zeros((1, 32), wl.f32))
        else:
            wl.store(y[wl.ds(block, 1), wl.ds(0, 32)], here.on(1).load())


@pytest.mark.case("C07")
@pytest.mark.parametrize("how", ["store", "load"])
def test_a_peer_that_ends_too_soon(golden: Golden, how: str):
    x = numbers((2, 32))
    call = last_words.launch(2, cluster=2).call(x, np.zeros_like(x), how)
    kernel = lowered(call)
    assert not findings(kernel, call, 0)
    golden(found_by_every_schedule(without(kernel, syncs(kernel)[-1]), call, "M031"))


def test_what_was_sent_and_multiplied_without_a_fence(golden: Golden):
    a, b, c = numbers((64, 64), np.float16), numbers((2, 64, 64), np.float16), numbers((2, 64, 64))
    call = multiplied.launch(2, cluster=2).call(a, b, c, 0)
    kernel = lowered(call)
    lost = [op for op in walk(kernel.body) if isinstance(op, sync.FenceAsync)][-1]
    golden(found_by_every_schedule(without(kernel, lost), call, "M016"))


def test_a_copy_of_what_was_not_fenced():
    x = numbers((2, 3, 64))
    call = passed.launch(2, cluster=2).call(x, np.zeros_like(x), "copy", 3, 64, 0)
    kernel = lowered(call)
    lost = [op for op in walk(kernel.body) if isinstance(op, sync.FenceAsync)]
    assert lost
    found_by_every_schedule(without(kernel, *lost), call, "M016")


def test_a_copy_of_what_was_not_written(golden: Golden):
    x = numbers((2, 3, 64))
    call = passed.launch(2, cluster=2).call(x, np.zeros_like(x), "copy", 3, 64, 0)
    kernel = lowered(call)
    stores = [op for op in walk(kernel.body) if op.OPCODE == "shared_memory.store"]
    golden(found_by_every_schedule(without(kernel, *stores), call, "M002"))


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_peer_that_is_not_there(golden: Golden, rank: int):
    @wl.kernel
    def beyond(x: wl.Tensor, rank: wl.i32):
        here = wl.shared((1, 32), wl.f32)
        here.on(rank).store(wl.load(x[wl.ds(0, 1), wl.ds(0, 32)]))

    with pytest.raises(wl.CheckError) as caught:
        beyond.launch(2, cluster=2)(numbers((1, 32)), rank)
    golden(str(caught.value))


def test_meetings_of_a_role_between_its_accesses():
    """Rounds of pushes: reads of one round stand before the pushes of the next for all warps."""
    x = numbers((2, 33))
    call = pushed_sums.launch(2, cluster=2).call(x, np.zeros((4, *x.shape), np.float32), 4, 33)
    kernel = lowered(call)
    inside = [op for op in walk(kernel.body) if isinstance(op, sync.Barrier | sync.WarpSync)]
    lost = [op for op in inside if "parts" in getattr(op, "why", "")]
    assert lost
    assert any(isinstance(op, remote.SendGroups) for op in walk(kernel.body))
    without(kernel, *lost)
    assert {r.code for seed in range(3) for r in findings(kernel, call, seed)} & {"R101", "U102"}


def test_barriers_that_no_fence_publishes_to_what_peers_send():
    x = numbers((2, 33))
    call = pushed_sums.launch(2, cluster=2).call(x, np.zeros((4, 2, 33), np.float32), 4, 33)
    kernel = lowered(call)
    (lost,) = [op for op in walk(kernel.body) if isinstance(op, sync.FenceBarrierInit)]
    found_by_every_schedule(without(kernel, lost), call, "U104")
