"""Reports of mistakes with named barriers, votes, copies, views of shared memory and inline PTX."""

import pytest

from tests.frontend.test_roles import GET, PUT, as_kernel, in_roles, lowered

MISTAKES = {
    "P027 sync": "bar = wl.named_barrier(128)\nwith wl.one_thread():\n    bar.sync()",
    "P027 ballot": "with wl.one_thread():\n    t = wl.lane_id()",
    "P027 warp": "with wl.one_thread():\n    wl.warp_sync()",
    "P028 warps": "bar = wl.named_barrier(100)",
    "P013 named": in_roles(PUT, "bar = wl.named_barrier(128)"),
    "T022": "t = wl.shuffle(wl.arange(64), 0)",
    "T004 ballot": "t = wl.ballot(wl.thread_id())",
    "T015 lane": "t = wl.shuffle(wl.thread_id(), wl.thread_id().cast(wl.f32))",
    "T015 scope": "wl.fence('grid')",
    "T015 space": "wl.fence_async('local')",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_report(source, golden, name):
    error = source.refused(as_kernel(MISTAKES[name]), x="bf16 n1", y="bf16 n1")
    assert [report.code for report in error.reports] == [name.split()[0]], str(error)
    golden(str(error), name)


LOWERED = {
    "P028 before": in_roles(PUT, GET, before="wl.named_barrier(128).sync()"),
    "P029": in_roles(
        PUT, GET, before="wl.store(y[0, wl.ds(0, 128)], wl.thread_id().cast(wl.bf16))"
    ),
    "P028 small": in_roles(PUT, GET + "\nbar.sync()", before="bar = wl.named_barrier(threads=96)"),
    "P028 alone": "bar = wl.named_barrier(256)\nbar.sync()",
    "P028 never": in_roles(PUT, GET + "\nbar.sync()", before="bar = wl.named_barrier(160)"),
    "B011 named": "for i in wl.unroll(16):\n    wl.named_barrier(128).sync()",
}


@pytest.mark.parametrize("name", LOWERED)
def test_report_of_the_passes(source, golden, name):
    error = lowered(source, LOWERED[name])
    assert error.code == name.split()[0], str(error)
    golden(str(error), name)
