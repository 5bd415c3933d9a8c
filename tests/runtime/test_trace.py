"""Launches whose events are noted: counts and order of the events, what a trace leaves out, and
that nothing is put into a kernel that is not traced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import LaunchError
from warploom.base.target import SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.kernels.gemm.kernel import gemm
from warploom.runtime import nvrtc
from warploom.runtime.compile import machine_kernel

STAGES = 3


@wl.kernel
def ringed(x: wl.Tensor, y: wl.Tensor, S: wl.const):
    ring = wl.pipe(S, slots=[wl.shared((8, 64), wl.bf16)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, x.shape[0], 8):
                with ring.put() as held:
                    wl.copy_async(x[wl.ds(k, 8), wl.ds(0, 64)], held)
        with wl.role("use", warps=2, replicas=2) as r:
            for k in wl.range(0, x.shape[0], 8):
                with ring.get() as held:
                    wl.store(y[r, wl.ds(k, 8), wl.ds(0, 64)], held.load())


def ring_call(device: Any, steps: int, stages: int = STAGES) -> tuple[Any, Any, np.ndarray]:
    x = np.arange(8 * steps * 64).reshape(8 * steps, 64).astype(ml_dtypes.bfloat16)
    out = device.empty((2, 8 * steps, 64), x.dtype)
    return ringed.launch(1).call(device.put(x), out, S=stages), out, x


@pytest.mark.parametrize("steps", [0, 1, STAGES - 1, STAGES, STAGES + 1, 2 * STAGES + 1])
def test_every_role_tells_what_it_did(device, steps):
    call, out, x = ring_call(device, steps)
    trace = call.trace()
    assert (device.get(out) == x).all()
    assert not trace.full
    count = Counter((row.role, row.replica, row.event) for row in trace)
    for role, replica in (("load", 0), ("use", 0), ("use", 1)):
        assert count[role, replica, "begin"] == count[role, replica, "end"] == 1
        assert count[role, replica, "wait"] == count[role, replica, "turn"] == steps
        assert count[role, replica, "arrive"] == (steps if role == "use" else 0)
        own = [row for row in trace if (row.role, row.replica) == (role, replica)]
        assert own[0].event == "begin" and own[-1].event == "end"
        clocks = [row.clock for row in own]
        assert clocks == sorted(clocks)
        waits = [row for row in own if row.event == "wait"]
        ring = "ring_empty" if role == "load" else "ring_full"
        assert [row.what for row in waits] == [f"{ring}[{k % STAGES}]" for k in range(steps)]
        assert all(row.waited is not None and row.waited >= 0 for row in waits)
        turns = [row.what for row in own if row.event == "turn"]
        assert turns == [f"k = {8 * k}" for k in range(steps)]
    assert min((row.clock for row in trace), default=0) == 0


def test_an_item_is_taken_after_it_was_waited_for(device):
    trace = ring_call(device, 7)[0].trace()
    # The producer needs item k - STAGES back, from both consumers: it goes on after their arrivals.
    puts = [row for row in trace if row.role == "load" and row.event == "wait"]
    for replica in (0, 1):
        back = [r for r in trace if (r.replica, r.event) == (replica, "arrive") and r.role == "use"]
        for put, release in zip(puts[STAGES:], back, strict=False):
            assert put.waited is not None
            # The arrival is noted just before it is made.
            assert put.clock + put.waited > release.clock


def test_one_stage_has_a_barrier_and_no_number(device):
    trace = ring_call(device, 2, stages=1)[0].trace()
    assert {row.what for row in trace if row.event == "wait"} == {"ring_empty", "ring_full"}


@pytest.mark.parametrize("name", ["default", "pingpong", "cluster"])
def test_a_product_waits_for_copies_products_and_other_blocks(device, name):
    trace = gemm.example_call(name, "sim" if device.name == "sim" else "gpu").trace(blocks=2)
    assert not trace.full
    waits = {(row.role, row.what.partition("[")[0]) for row in trace if row.event == "wait"}
    assert {("load", "ring_empty"), ("math", "ring_full"), ("math", "products")} <= waits
    assert (("math", "the cluster") in waits) == (name == "cluster")
    ends = [row for row in trace if row.event == "end"]
    assert len(ends) == 2 * 3 and {row.replica for row in ends if row.role == "math"} == {0, 1}
    assert all(row.waited is not None for row in trace if row.event == "wait")


@wl.kernel
def doubled(x: wl.Tensor, N: wl.const):
    start = wl.program_id(0) * 4 * N + wl.program_id(1) * 2 * N
    for i in wl.range(0, 2):
        window = x[wl.ds(start + i * N, N)]
        wl.store(window, wl.load(window) * 2.0)


def double_call(device: Any, blocks: int = 6) -> tuple[Any, Any]:
    x = device.put(np.arange(16 * 2 * blocks, dtype=np.float32))
    return doubled.launch((blocks // 2, 2)).call(x, N=16), x


@pytest.mark.parametrize("asked", [1, 4, 6, 100])
def test_a_kernel_without_roles_and_the_first_blocks(device, asked):
    call, x = double_call(device)
    trace = call.trace(blocks=asked)
    assert (device.get(x) == 2 * np.arange(192)).all()
    assert [row.block for row in trace] == [b for b in range(min(asked, 6)) for _ in range(4)]
    for block in range(min(asked, 6)):
        own = [(row.event, row.what) for row in trace if row.block == block]
        assert own == [("begin", ""), ("turn", "i = 0"), ("turn", "i = 1"), ("end", "")]
    assert all(row.role == "" for row in trace)


def test_more_events_than_there_is_place_for(device):
    call, out, x = ring_call(device, 5)
    trace = call.trace(events=4)
    assert (device.get(out) == x).all()
    assert set(trace.full) == {"block 0, load 0", "block 0, use 0", "block 0, use 1"}
    assert "block 0, load 0 had more events" in trace.text()
    assert all(row.event != "end" for row in trace)
    # Begin and turn, then a wait and how it ended.
    assert [row.event for row in trace if row.role == "load"] == ["begin", "turn", "wait"]
    exact = call.trace(events=2 + 5 * 3)
    assert "block 0, load 0" not in exact.full and "block 0, use 0" in exact.full


def test_an_empty_grid_has_no_events(device):
    x = device.put(np.ones(16, np.float32))
    assert len(doubled.launch((0, 2)).call(x, N=16).trace()) == 0


@pytest.mark.parametrize("wrong", [{"blocks": 0}, {"events": 0}, {"events": 2.0}, {"blocks": True}])
def test_what_cannot_be_asked_for(wrong):
    x = np.ones(16, np.float32)
    with pytest.raises(LaunchError, match="a number from 1 to"):
        doubled.launch(1).call(x, N=16).trace(**wrong)


def test_the_tables(device):
    trace = ring_call(device, 4)[0].trace()
    first, _, head, *lines = trace.text().splitlines()
    unit = "operations" if device.name == "sim" else "cycles"
    assert first == f"ringed, clocks in {unit}"
    assert head.split() == ["role", unit, "waited", "for", "in", "all", "times"]
    table = {line.split()[0] + line.split()[1]: line.split()[3::2] for line in lines[:3]}
    assert {name: row[-1] for name, row in table.items()} == {
        "load0": "4",
        "use0": "4",
        "use1": "4",
    }
    data = trace.json()
    assert len(data["rows"]) == len(trace) and data["unit"] == unit and data["full"] == []


@wl.kernel
def after_the_other(flags: wl.Tensor):
    if wl.program_id(0) == 0:
        wl.signal(flags[0], 1)
    else:
        wl.wait(flags[0], at_least=1)


def test_a_launch_that_is_refused_is_not_traced(device):
    flags = device.put(np.zeros(1, np.int32))
    for ways, code in (({}, "H040"), ({"cooperative": True, "pdl": True}, "H032")):
        launch = after_the_other.launch(2, **ways)
        for attempt in (launch.call(flags).run, launch.call(flags).trace):
            with pytest.raises(LaunchError) as refused:
                attempt()
            assert refused.value.code == code
    assert not device.get(flags).any()
    after_the_other.launch(2, cooperative=True).call(flags).trace()
    assert device.get(flags).tolist() == [1]


def test_the_option_tells_after_each_launch(device, capsys):
    x = double_call(device, 2)[1]
    traced = doubled.options(trace=True)
    traced[(1, 2)](x, N=16)
    assert (device.get(x) == 2 * np.arange(64)).all()
    assert "doubled, clocks in" in capsys.readouterr().err


def test_nothing_is_put_into_a_kernel_that_is_not_traced():
    for call in (gemm.example_call("bench"), gemm.example_call()):
        plain = machine_kernel(call.request, SM_90A)
        traced = machine_kernel(replace(call.request, trace=64), SM_90A)
        one, other = emit(plain, SM_90A), emit(traced, SM_90A)
        assert "clock" not in one.text and "record_event" not in one.text
        built = nvrtc.compile_cubin(other, SM_90A)
        assert not built.notes and counted(built.ptx) == declared(traced)
        # What a traced kernel has besides are its events alone.
        kept = [line for line in other.text.splitlines() if line in one.text]
        assert len(kept) >= len(one.text.splitlines()) * 0.9
        assert len(plain.params) + 1 == len(traced.params)
