"""What a pass places for barriers, registers, fences and the matrix unit, broken one by one: the
reports, with places of the source."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.sim.protocols import early, ring, through_shared, turned
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import control, mbarrier, roles, sync, wgmma
from warploom.runtime.compile import machine_kernel
from warploom.sim.program import prepare


def lowered(call: Any) -> Kernel:
    """The machine IR of a call."""
    return machine_kernel(call.kernel.request(call.arguments, call.launcher.warps), SM_90A)


def blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in walk(block):
        yield from op.regions()


def dropped(kernel: Kernel, kind: type[Op], keep: int = 0) -> Kernel:
    """The kernel without the operations of a kind, but the first `keep` of them."""
    found = [op for op in walk(kernel.body) if isinstance(op, kind)]
    assert len(found) > keep
    for block in blocks(kernel.body):
        block.ops[:] = [op for op in block.ops if op not in found[keep:]]
    return kernel


def every(kernel: Kernel, kind: type[Op], **fields: Any) -> Kernel:
    """The kernel with other attributes of the operations of a kind."""
    found = [op for op in walk(kernel.body) if isinstance(op, kind)]
    assert found
    for op in found:
        for name, value in fields.items():
            setattr(op, name, value)
    return kernel


def report_of(call: Any, kernel: Kernel, code: str, checked: bool = False) -> str:
    """The one report of a run, or what it raises in plain mode."""
    arguments = [a for a in call.args if isinstance(a, np.ndarray)]
    if checked:
        found = prepare(kernel).run((1,), arguments, checked=True).findings
        assert {f.code for f in found} == {code}
        return found[0].render()
    with pytest.raises(wl.CheckError) as caught:
        prepare(kernel).run((1,), arguments)
    assert caught.value.code == code
    return str(caught.value)


# ---- barriers ----------------------------------------------------------------------------------


def ring_call() -> Any:
    x = np.ones((320, 64), np.float16)
    return ring.launch(1).call(x, np.zeros_like(x), STEPS=5)


def test_a_barrier_that_was_not_made(golden):
    call = ring_call()
    golden(report_of(call, dropped(lowered(call), mbarrier.Init, keep=3), "M010"))


def test_a_barrier_that_is_made_twice(golden):
    call = ring_call()
    kernel = lowered(call)
    for block in blocks(kernel.body):
        made = [op for op in block.ops if isinstance(op, mbarrier.Init)]
        for op in made[:1]:
            block.ops.insert(block.ops.index(made[-1]), op)
    golden(report_of(call, kernel, "M010"))


def test_barriers_that_are_used_before_all_know_of_them(golden):
    call = ring_call()
    kernel = dropped(lowered(call), sync.Barrier)
    found = prepare(kernel).run((1,), list(call.args), checked=True).findings
    assert [f.code for f in found] == ["U104"] * 4
    golden(found[0].render())


def test_barriers_that_no_fence_publishes_to_copies(golden):
    call = ring_call()
    kernel = dropped(lowered(call), sync.FenceBarrierInit)
    found = prepare(kernel).run((1,), list(call.args), checked=True).findings
    assert [f.code for f in found] == ["U104"]  # those that copies complete on
    golden(found[0].render())


@pytest.mark.case("C11")
def test_a_slot_that_is_refilled_after_loads_needs_a_fence():
    call = ring_call()
    kernel = dropped(lowered(call), sync.FenceAsync)
    found = prepare(kernel).run((1,), list(call.args), checked=True).findings
    assert [f.code for f in found] == ["M016"]
    assert "`slots` is not ordered with an ordinary read before" in found[0].message


def test_one_thread_that_hands_back_for_all_needs_the_lanes_to_have_met():
    call = ring_call()
    kernel = every(lowered(call), control.OneThread, per="role")
    for op in [op for op in walk(kernel.body) if isinstance(op, mbarrier.Init)]:
        op.arrivals = 1
    found = prepare(kernel).run((1,), list(call.args), checked=True).findings
    assert {"R101", "U102"} <= {f.code for f in found}


# ---- registers, named barriers -----------------------------------------------------------------


def turned_call() -> Any:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    return turned.launch(1).call(x, np.zeros_like(x))


def test_replicas_turn_their_tiles():
    call = turned_call()
    x, y = call.args
    assert not prepare(lowered(call)).run((1,), [x, y], checked=True).findings
    for at in (0, 32):
        assert (y[at : at + 32] == x[at : at + 32] + x[at : at + 32].T).all()


def test_registers_that_are_set_the_wrong_way(golden):
    call = turned_call()
    kernel = lowered(call)
    for block in blocks(kernel.body):
        for op in [op for op in block.ops if isinstance(op, roles.SetRegisters)]:
            again = roles.SetRegisters(count=op.count + 40, grow=False)
            again.loc = op.loc
            block.ops.insert(block.ops.index(op) + 1, again)
    golden(report_of(call, kernel, "M017"))


def test_replicas_at_one_barrier(golden):
    call = turned_call()
    golden(report_of(call, every(lowered(call), sync.Barrier, per_replica=False), "M018"))


# ---- the matrix unit ---------------------------------------------------------------------------


def product_call() -> Any:
    a, b = (np.ones((64, 256), np.float16) for _ in range(2))
    return early.launch(1).call(a, b, np.zeros((64, 64), np.float32), STEPS=4)


def test_an_accumulator_that_is_read_in_flight(golden):
    call = product_call()
    golden(report_of(call, every(lowered(call), wgmma.WaitGroup, pending=1), "M014"))


def test_a_product_without_a_fence(golden):
    call = product_call()
    golden(report_of(call, dropped(lowered(call), wgmma.Fence), "M015"))


# ---- order with the copy engine ----------------------------------------------------------------


def written_out_call() -> Any:
    x = np.ones((64, 64), np.float16)
    return through_shared.launch(1).call(x, np.zeros_like(x))


@pytest.mark.parametrize(("kind", "code"), [(sync.FenceAsync, "M016"), (sync.Barrier, "R101")])
def test_a_copy_that_is_not_ordered(kind: type[Op], code: str, golden):
    call = written_out_call()
    golden(report_of(call, dropped(lowered(call), kind), code, checked=True))
