"""Where the blocks of a cluster wait for each other without being told: after their barriers are
made, before they end, and with what scope they wait for peers."""

import numpy as np
import pytest

import warploom as wl
from tests.frontend.test_clusters import each, met, n_steps, own, piped, whole
from tests.language.test_clusters import crossed, passed_on, shared_sums
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import cluster, mbarrier, sync
from warploom.ir.ops.roles import Split
from warploom.ir.parser import parse_kernel


def machine(call) -> Kernel:
    return parse_kernel(call.text("machine"))


def ends(kernel: Kernel) -> dict[str, Op]:
    """The last operation of every role that has any."""
    (split,) = (op for op in kernel.body.ops if isinstance(op, Split))
    bodies = zip(split.names, split.bodies, strict=True)
    return {name: body.ops[-2] for name, body in bodies if len(body.ops) > 1}


def syncs(kernel: Kernel) -> list[cluster.Sync]:
    return [op for op in walk(kernel.body) if isinstance(op, cluster.Sync)]


X = np.zeros((32, 128), np.float32)
SHARED = shared_sums.launch(2, cluster=2).call(
    X, np.zeros((2, 1, 32, 32), np.float32), 1, 4, 2, 0, 1
)


def test_pipes_of_a_cluster_are_guarded_at_both_ends():
    kernel = machine(SHARED)
    # Who hands slots back to peers; copies to peers are over when these have waited for them.
    closing = {n: op for n, op in ends(kernel).items() if isinstance(op, cluster.Sync)}
    assert [(name, op.ordered) for name, op in closing.items()] == [("add", True)]
    first = syncs(kernel)[0]
    assert not first.ordered
    before = kernel.body.ops[: kernel.body.ops.index(first)]
    assert any(isinstance(op, sync.FenceBarrierInit) for op in walk(Block((), before)))
    assert not any(isinstance(op, sync.Barrier) and op.threads == 384 for op in walk(kernel.body))


@pytest.mark.parametrize(
    "call",
    [
        shared_sums.launch(2).call(X, np.zeros((2, 1, 32, 32), np.float32), 1, 4, 2, 0, 1),
        piped.launch(2, cluster=2).call(np.zeros((16, 64), np.int32), 1, own, n_steps),
        piped.launch(2).call(np.zeros((16, 64), np.int32), 1, whole, n_steps),
    ],
)
def test_blocks_that_reach_nobody_do_not_wait(call):
    assert not syncs(machine(call))
    assert "barrier.cluster" not in call.text("cuda")


def test_what_stands_at_the_end_already_is_not_repeated():
    y = np.zeros((3, 2, 128), np.float32)
    x = np.zeros((2, 128), np.float32)
    kernel = machine(passed_on.launch(2, cluster=2).call(x, y, y.copy(), 3))
    assert len(syncs(kernel)) == 3  # barriers made, in the loop, at the end
    assert len(syncs(machine(met.launch(2, cluster=2).call(3, each, each)))) == 2


@wl.kernel
def hands_over(y: wl.Tensor):
    tile, came = wl.shared((1, 32), wl.i32), wl.barrier()
    with wl.one_thread():
        came.expect(32 * 4)
    mine = wl.arange(32)[None, :] + wl.cluster_rank()
    wl.store_async(tile.on((wl.cluster_rank() + 1) % wl.cluster_size()), mine, came)
    came.wait(0)
    wl.store(y[wl.ds(wl.program_id(0), 1), wl.ds(0, 32)], tile.load())


def test_who_waits_for_what_is_sent_need_not_wait_for_the_senders():
    """Bytes are over when they are waited for; a barrier of the cluster says nothing of them."""
    y = np.zeros((4, 32), np.int32)
    call = hands_over.launch(4, cluster=4).call(y)
    assert [op.ordered for op in syncs(machine(call))] == [False]
    assert call.check().clean
    assert y[:, 0].tolist() == [3, 0, 1, 2]


@wl.kernel
def ends_by_itself(y: wl.Tensor):
    done = wl.barrier(1, arrivals=wl.cluster_size())
    for rank in wl.unroll(wl.cluster_size()):
        done.on(rank).arrive()
    done.wait(0)
    wl.store(y[wl.program_id(0), wl.ds(0, 1)], wl.full((1,), wl.cluster_rank(), wl.i32))
    wl.cluster_sync()


def test_a_barrier_at_the_end_is_enough():
    y = np.zeros((4, 1), np.int32)
    call = ends_by_itself.launch(4, cluster=4).call(y)
    assert len(syncs(machine(call))) == 2
    assert call.check().clean
    assert y.ravel().tolist() == [0, 1, 2, 3]


def waits(kernel: Kernel) -> list[str]:
    return [op.scope for op in walk(kernel.body) if isinstance(op, mbarrier.Wait)]


def test_waits_for_what_peers_ordered_have_the_cluster_as_scope():
    """Slots that threads have read are handed back in order, those that products have read are not:
    their release needs no fence."""
    assert sorted(waits(machine(SHARED))) == ["block", "cluster"]
    a = np.zeros((128, 64), np.float16)
    products = crossed.launch((4, 2), cluster=(2, 1)).call(
        a, np.zeros((256, 64), np.float16), np.zeros((128, 256), np.float32), 2
    )
    assert waits(machine(products)) == ["block", "block"]
    assert not any(op.ordered for op in walk(machine(products).body) if type(op) is cluster.Arrive)
    x = np.zeros((2, 128), np.float32)
    y = np.zeros((3, 2, 128), np.float32)
    assert waits(machine(passed_on.launch(2, cluster=2).call(x, y, y.copy(), 3))) == ["cluster"]
