"""Clusters on the simulator: what goes wrong between blocks is reported with ranks and blocks, and
with the inserted waits taken out again, what they are there for."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.language.test_clusters import crossed, product, shared_sums
from warploom.base.target import SM_90A
from warploom.ir import cluster as shape
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import cluster, scalar, tma
from warploom.ir.ops.shared_memory import MATRIX_BITS
from warploom.runtime.compile import machine_kernel
from warploom.sim.program import prepare
from warploom.testing.golden import Golden


@wl.kernel
def halves(
    x: wl.Tensor,
    y: wl.Tensor,
    ANNOUNCED: wl.const = None,
    MASK: wl.const = None,
    WAIT: wl.const = True,
):
    """Each block of a cluster copies a part of a tile to all. ANNOUNCED: the rank that announces
    bytes, all by default; MASK: to whom it copies; WAIT: for the copies."""
    tile = wl.shared((32, 64), x.dtype)
    full = wl.barrier()
    PART = 32 // wl.cluster_size()
    at = wl.cluster_rank() * PART
    with wl.one_thread():
        rank = wl.cluster_rank()
        if rank == (rank if ANNOUNCED is None else ANNOUNCED):
            full.expect(32 * 64 * x.dtype.bytes)
        everyone = wl.cluster_mask(0, 1, 2) if MASK is None else MASK
        part = tile[wl.ds(at, PART), :]
        window = x[wl.ds(at, PART), wl.ds(0, 64)]
        wl.copy_async(window, part, barrier=full, multicast=everyone)
    if WAIT:
        full.wait(0)
        row = wl.program_id(0) + wl.num_programs(0) * wl.program_id(1)
        wl.store(y[row, wl.ds(0, 32), wl.ds(0, 64)], tile.load())


def arrays(blocks: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    return x, np.zeros((blocks, 32, 64), np.float32)


@pytest.mark.parametrize("grid", [(2, 1), (1, 2), (4, 1), (1, 4), (2, 2)])
def test_all_blocks_get_all_parts(grid):
    x, y = arrays(grid[0] * grid[1] * 2)
    whole = (grid[0] * 2, grid[1])
    assert halves.launch(whole, cluster=grid).check(x, y, seeds=5).clean
    assert (y == x).all()


def reported(golden: Golden, code: str, launcher: Any, *args: Any, **options: Any) -> None:
    found = launcher.check(*args, **options)
    assert [f.code for f in found] == [code]
    golden(found.text())


@pytest.mark.case("C06")
def test_bytes_announced_in_one_rank_only(golden: Golden):
    reported(golden, "D001", halves.launch(4, cluster=4), *arrays(4), ANNOUNCED=0)


@pytest.mark.case("C06")
def test_a_mask_of_one_rank_only(golden: Golden):
    reported(golden, "D001", halves.launch((1, 2), cluster=(1, 2)), *arrays(2), MASK=1)


@pytest.mark.case("C06")
def test_a_grid_that_is_not_made_of_whole_clusters(golden: Golden):
    with pytest.raises(wl.LaunchError) as caught:
        halves.launch((6, 3), cluster=(4, 1))
    golden(str(caught.value))


def test_a_mask_computed_to_name_nobody(golden: Golden):
    @wl.kernel
    def beyond(x: wl.Tensor, n: wl.i32):
        tile = wl.shared((32, 64), x.dtype)
        full = wl.barrier()
        with wl.one_thread():
            full.expect(32 * 64 * x.dtype.bytes)
            wl.copy_async(x[wl.ds(0, 32), wl.ds(0, 64)], tile, barrier=full, multicast=1 << n)
        full.wait(0)

    with pytest.raises(wl.CheckError) as caught:
        beyond.launch(2, cluster=2)(arrays(1)[0], 2)
    golden(str(caught.value))


# ---- what the inserted waits are for -----------------------------------------------------------


def lowered(call: Any) -> Kernel:
    launcher = call.launcher
    return machine_kernel(
        call.kernel.request(call.arguments, launcher.warps, launcher.cluster), SM_90A
    )


def blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in walk(block):
        yield from op.regions()


def without(kernel: Kernel, *lost: Op) -> Kernel:
    for block in blocks(kernel.body):
        block.ops[:] = [op for op in block.ops if op not in lost]
    return kernel


def syncs(kernel: Kernel) -> list[Op]:
    return [op for op in walk(kernel.body) if isinstance(op, cluster.Sync)]


def codes(call: Any, kernel: Kernel, seeds: int = 12) -> tuple[set[str], str]:
    """All codes that some seed finds, and the text of the first report."""
    launcher, found = call.launcher, []
    arguments = [a for a in call.args if isinstance(a, np.ndarray | int)]
    for seed in range(seeds):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        copies = copies[: len(kernel.params)]
        run = prepare(kernel).run(launcher.grid, copies, checked=True, seed=seed)
        found += run.findings
    return {f.code for f in found}, found[0].render() if found else ""


@wl.kernel
def around(y: wl.Tensor):
    """Each block tells the next one and waits for the last."""
    told = wl.barrier()
    told.on((wl.cluster_rank() + 1) % wl.cluster_size()).arrive()
    told.wait(0)
    wl.store(y[wl.program_id(0), wl.ds(0, 1)], wl.full((1,), 1, wl.i32))


def told(size: int) -> Any:
    return around.launch(size, cluster=size).call(np.zeros((size, 1), np.int32))


@pytest.mark.case("C07")
@pytest.mark.parametrize("size", [2, 4, 8])
def test_peers_before_their_barriers_are_made(golden: Golden, size: int):
    """Taken out: the wait after the barriers are made."""
    call = told(size)
    kernel = lowered(call)
    assert codes(call, kernel)[0] == set()
    found, text = codes(call, without(kernel, syncs(kernel)[0]))
    assert "M010" in found
    if size == 2:
        golden(text)


@wl.kernel
def sends(y: wl.Tensor):
    """Rank 0 tells all others, who wait; it does not wait for anybody."""
    done = wl.barrier()
    if wl.cluster_rank() == 0:
        for rank in wl.unroll(1, wl.cluster_size()):
            done.on(rank).arrive()
    elif wl.cluster_rank() > 1:
        done.wait(0)
    wl.store(y[wl.program_id(0), wl.ds(0, 1)], wl.full((1,), 1, wl.i32))


@pytest.mark.case("C07")
@pytest.mark.parametrize("size", [2, 4, 8])
def test_peers_after_their_end(golden: Golden, size: int):
    """Taken out: the wait at the end. Rank 1 does not wait for what rank 0 tells it."""
    call = sends.launch(size, cluster=size).call(np.zeros((size, 1), np.int32))
    kernel = lowered(call)
    assert codes(call, kernel)[0] == set()
    found, text = codes(call, without(kernel, syncs(kernel)[-1]), 30)
    assert "M031" in found
    if size == 2:
        golden(text)


def test_arrivals_of_peers_are_ordered_before_the_end():
    """At the wait at the end too: else an arrival may come when its block has gone."""
    call = sends.launch(2, cluster=2).call(np.zeros((2, 1), np.int32))
    kernel = lowered(call)
    syncs(kernel)[-1].ordered = False
    assert codes(call, kernel)[0] == {"M031"}


def test_a_copy_that_arrives_after_the_end(golden: Golden):
    """The block waits at its end for its peers, not for copies on their way to it: its own, and
    those of its peers."""
    call = halves.launch(2, cluster=2).call(*arrays(2), WAIT=False)
    found, text = codes(call, lowered(call))
    assert found == {"M013", "M031"}
    golden(text)


# ---- ranks and schedules -----------------------------------------------------------------------


def test_blocks_of_a_grid_by_cluster_and_rank():
    assert shape.of_grid((2, 1, 1), (1, 1, 1)) == [[0], [1]]
    assert shape.of_grid((4, 1, 1), (2, 1, 1)) == [[0, 1], [2, 3]]
    assert shape.of_grid((2, 4, 1), (2, 2, 1)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert shape.of_grid((2, 2, 2), (1, 1, 2)) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert shape.of_grid((0, 2, 1), (1, 2, 1)) == []


def test_steps_lead_to_the_blocks_of_a_mask():
    """Masks and steps, which are computed apart, name the same blocks from every rank."""
    for of in ((2, 1, 1), (1, 2, 1), (2, 2, 1), (4, 2, 1), (2, 2, 2), (3, 2, 1)):
        for axes in ((), (0,), (1,), (2,), (0, 1), (0, 1, 2)):
            for rank in range(shape.size(of)):
                at = [shape.coordinate(of, rank, axis) for axis in range(3)]
                alike = {
                    other
                    for other in range(shape.size(of))
                    if all(
                        shape.coordinate(of, other, axis) == at[axis]
                        for axis in range(3)
                        if axis not in axes
                    )
                }
                reached = set()
                for step in shape.steps(of, axes):
                    there = [
                        (at[axis] + shape.coordinate(of, step, axis)) % of[axis]
                        for axis in range(3)
                    ]
                    reached.add(sum(n * shape.pitch(of, axis) for axis, n in enumerate(there)))
                first = min(alike)
                assert reached == alike
                assert {first + b for b in range(8) if shape.bits(of, axes) >> b & 1} == alike


@pytest.mark.parametrize("seed", range(8))
def test_every_schedule_gives_the_same(seed):
    x = (np.arange(32 * 32 * 5, dtype=np.float32) % 31).reshape(32, -1)
    y = np.zeros((4, 2, 32, 32), np.float32)
    call = shared_sums.launch((2, 2), cluster=(2, 2)).call(x, y, 1, 5, 2, 1, 2)
    kernel = lowered(call)
    run = prepare(kernel).run((2, 2), (x, y, 1, 5), checked=True, seed=seed)
    assert not run.findings
    assert (y == x.reshape(32, 5, 32).sum(1)).all()


def test_a_source_that_waits_for_its_own_consumers_only():
    """Taken out: the arrivals at peers, with counts to match. Some schedule overwrites an item that
    a peer still reads, or brings bytes that its phase has no place for."""
    x = (np.arange(32 * 32 * 9, dtype=np.float32) % 31).reshape(32, -1)
    y = np.zeros((2, 1, 32, 32), np.float32)
    call = shared_sums.launch(2, cluster=2).call(x, y, 1, 9, 2, 0, 1)
    kernel = lowered(call)
    away = [op for op in walk(kernel.body) if isinstance(op, cluster.Arrive)]
    assert away
    without(kernel, *away)
    for op in walk(kernel.body):
        if hasattr(op, "arrivals") and op.arrivals == 4:
            op.arrivals = 2
    wrong = set()
    for seed in range(20):
        wrong |= {
            f.code
            for f in prepare(kernel).run((2, 1), (x, y, 1, 9), checked=True, seed=seed).findings
        }
    assert wrong & {"M012", "R101"}


def test_addresses_bear_the_rank_and_descriptors_have_no_place_for_it():
    """Taken out: the mask between an address and a descriptor. Rank 0 does not notice."""
    a, b = np.ones((64, 192), np.float16), np.ones((128, 192), np.float16)
    call = crossed.launch(2, cluster=2).call(a, b, np.zeros((64, 128), np.float32), 2)
    kernel = lowered(call)
    masks = [op for op in walk(kernel.body) if isinstance(op, scalar.Binary) and op.kind == "and"]
    own = [op for op in masks if getattr(op.rhs.owner, "number", 0) == (1 << MATRIX_BITS) - 1]
    assert codes(call, kernel, 1)[0] == set()
    assert own
    for op in walk(kernel.body):
        op.replace_operands(lambda v: next((m.lhs for m in own if m.result is v), v))
    found, text = codes(call, kernel, 1)
    assert found == {"M001"}
    assert "an operand leaves the block's shared memory" in text
    assert "rank 1" in text


def test_products_by_hand_are_clean_on_every_seed():
    a = np.ones((128, 192), np.float16)
    b = np.ones((128, 192), np.float16)
    c = np.zeros((128, 128), np.float32)
    found = product.launch((4, 2), cluster=2).check(a, b, c, 64, 32, 64, 2, seeds=6)
    assert found.clean, found.text()
    assert any(
        isinstance(op, tma.LoadBox) and op.multicast is not None
        for op in walk(lowered(product.launch(4, cluster=2).call(a, b, c, 64, 32, 64, 2)).body)
    )
