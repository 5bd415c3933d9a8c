"""What is put into a debug build: something ahead of each wait and arrival, once, and nothing into
another kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from tests.language.test_clusters import passed_on
from tests.ops import flagged as flagged_cases
from tests.ops.trial import spread
from tests.runtime.test_trace import after_the_other, double_call, ring_call
from tests.runtime.watching import machine_of
from warploom.base.target import SM_90A, TARGETS
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import cluster, cp_async, flagged, flags, mbarrier, roles, sync, watch
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
from warploom.kernels.gemm.kernel import gemm
from warploom.runtime import nvrtc
from warploom.runtime.compile import machine_kernel
from warploom.testing.devices import SimDevice

SIM = SimDevice()
FLAGS = after_the_other.launch(2, cooperative=True).call(np.zeros(1, np.int32))
Y, Z = np.zeros((3, 2, 128), np.float32), np.zeros((3, 2, 128), np.float32)
CLUSTER = passed_on.launch(2, cluster=2).call(spread("f32", (2, 128)), Y, Z, 3)
WORDS = flagged_cases.one.launch(5, cooperative=True).call(
    np.zeros((1, 5, 101), np.float32),
    np.zeros((5, 101), np.int64),
    np.zeros((1, 5, 101), np.float32),
    KINDS=(wl.f32,),
    SCOPE="gpu",
)
CALLS = [
    ring_call(SIM, 5)[0],
    FLAGS,
    WORDS,
    CLUSTER,
    double_call(SIM)[0],
    gemm.example_call("pingpong"),
]

# What stands ahead of what.
AHEAD: dict[type[Op], type[Op]] = {
    mbarrier.Wait: watch.Barrier,
    flags.Poll: watch.Flag,
    flagged.Take: watch.Words,
    sync.Barrier: watch.Meet,
    sync.Arrive: watch.Meet,
    mbarrier.Arrive: watch.Arrive,
    mbarrier.Expect: watch.Arrive,
    cluster.Arrive: watch.Arrive,
    cp_async.Arrive: watch.Arrive,
    cluster.Sync: watch.At,
}


def blocks(block: Block) -> list[Block]:
    """A block and all within."""
    return [block, *(b for op in block.ops for inner in op.regions() for b in blocks(inner))]


def without(kernel: Kernel) -> Counter[str]:
    """Operations by name, but for those of the watch and what these compute."""
    found = Counter(op.OPCODE for op in walk(kernel.body) if op.FAMILY != "watch")
    for name in ("scalar.binary", "shared_memory.address", "scalar.const"):
        found.pop(name, None)
    return found


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.kernel.name)
def test_each_wait_and_arrival_has_its_own(call):
    plain, watched = machine_of(call, watched=False), machine_of(call)
    assert not any(op.FAMILY == "watch" for op in walk(plain.body))
    assert len(watched.params) == len(plain.params) + 1
    assert without(plain) == without(watched)
    seen = 0
    for block in blocks(watched.body):
        for before, op in zip(block.ops, block.ops[1:], strict=False):
            if type(op) in AHEAD:
                assert type(before) is AHEAD[type(op)] and before.loc == op.loc, op
                seen += 1
    assert seen == sum(type(op) in AHEAD for op in walk(plain.body))
    # A place is that of one wait; behind a wait that cannot be asked stands its place again.
    places = [op.place for op in walk(watched.body) if hasattr(op, "place")]
    behind = [op for op in walk(watched.body) if isinstance(op, watch.At) and op.leaves]
    assert len(places) == len(set(places)) + len(behind)
    assert not any(isinstance(op, watch.Delay) for op in walk(watched.body))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.kernel.name)
def test_the_text_comes_back(call):
    machine = machine_of(call, delays=3)
    text = print_kernel(machine)
    again = parse_kernel(text)
    verify_kernel(again)
    assert print_kernel(again) == text


def test_every_role_notes_its_end_and_begins_its_count_of_delays():
    machine = machine_of(CALLS[0], delays=9)
    (split,) = (op for op in machine.body.ops if isinstance(op, roles.Split))
    for body in split.bodies:
        assert isinstance(body.ops[-2], watch.End)
        assert sum(isinstance(op, watch.End) for op in walk(body)) == 1
    delays = [op for op in walk(machine.body) if isinstance(op, watch.Delay)]
    assert {op.seed for op in delays} == {9}
    storages = {op.at.storage for op in delays}
    assert {"steps_of_load", "steps_of_use"} <= storages
    synchronised = [op for op in walk(machine.body) if type(op) in AHEAD]
    assert len(delays) == len(synchronised)


def test_barriers_are_numbered_through_the_block():
    machine = machine_of(CALLS[0])
    waits = [op for op in walk(machine.body) if isinstance(op, watch.Barrier)]
    arrives = [op for op in walk(machine.body) if isinstance(op, watch.Arrive)]
    assert {op.first for op in waits} == {0, 3} and {op.barriers for op in waits} == {6}
    assert {(op.first, op.arrivals, op.bytes) for op in arrives} == {(0, 1, 1024), (3, 4, 0)} or {
        (op.first, op.arrivals, op.bytes) for op in arrives
    } == {(3, 1, 1024), (0, 4, 0)}


def test_an_arrival_at_a_peer_is_counted_there():
    machine = machine_of(CLUSTER)
    remote = [op for op in walk(machine.body) if isinstance(op, watch.Arrive) and op.rank]
    assert remote and all(op.cluster == (2, 1, 1) for op in remote)


@wl.kernel
def multiplied(a: wl.Tensor, c: wl.Tensor):
    full = wl.barrier(arrivals=1)
    s = wl.shared((64, 64), wl.f16, swizzle=128)
    with wl.roles():
        with wl.role("load", warps=1), wl.one_thread():
            full.expect(64 * 64 * 2)
            wl.copy_async(a[wl.ds(0, 64), wl.ds(0, 64)], s, barrier=full)
        with wl.role("math", warps=4):
            full.wait(0)
            acc = wl.dot_async(s, s.T, wl.zeros((64, 64), wl.f32)).wait()
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc)


def test_who_leaves_waits_for_its_products_first():
    call = multiplied.launch(1).call(np.zeros((64, 64), np.float16), np.zeros((64, 64), "f4"))
    machine = machine_of(call)
    drains = {op.drains for op in walk(machine.body) if isinstance(op, watch.Barrier)}
    assert drains == {True}
    assert "watch_barrier<true, true, 1, 1, 1>" in emit(machine, SM_90A).text


@pytest.mark.parametrize("delays", [-1, 7])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.kernel.name)
def test_the_compiler_takes_them_without_a_remark(call, delays):
    """Nothing is serialised or waited for by the assembler's own will."""
    machine = machine_of(call, delays=delays)
    built = nvrtc.compile_cubin(emit(machine, SM_90A), SM_90A)
    assert not [note for note in built.notes if note.code != "C003"]
    assert counted(built.ptx) == declared(machine)


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_older_architectures_too(arch):
    request = replace(double_call(SIM)[0].request, watched=True, delays=1)
    machine = machine_kernel(request, TARGETS[arch])
    assert not nvrtc.compile_cubin(emit(machine, TARGETS[arch]), TARGETS[arch]).notes
