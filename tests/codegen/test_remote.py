"""What accesses to peers compile to: the instructions that the machine operations declare, without
a fence, in the form that each dtype and width has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.language.test_remote import multiplied, pushed_sums, relayed, turned
from tests.ops.remote import DTYPES, passed
from warploom.base.dtypes import BY_NAME
from warploom.base.target import SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.runtime import nvrtc
from warploom.runtime.compile import machine_kernel


def exchanged(dtype: str, how: str, shape: tuple[int, int] = (3, 64)) -> Any:
    x = np.zeros((2, *shape), BY_NAME[dtype].numpy)
    return passed.launch(2, cluster=2).call(x, x.copy(), how, *shape, 0)


def calls() -> dict[str, Any]:
    x, half = np.zeros((2, 33), np.float32), np.zeros((2, 64, 64), np.float16)
    made = {
        "sums": pushed_sums.launch(2, cluster=2).call(x, np.zeros((4, 2, 33), np.float32), 4, 33),
        "relay": relayed.launch(2, cluster=2).call(half[0], half[1], 2, 64),
        "views": turned.launch(2, cluster=2).call(half, half.copy(), 1, 128),
        "operand": multiplied.launch(2, cluster=2).call(
            half[0], half, np.zeros((2, 64, 64), np.float32), 0
        ),
    }
    for how in ("load", "store", "send"):
        made |= {f"{how} {dtype}": exchanged(dtype, how) for dtype in DTYPES}
    made |= {"copy": exchanged("bf16", "copy"), "send wide": exchanged("f32", "send", (8, 256))}
    return made


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_cubins(name: str) -> None:
    """No note, no spill, and the instructions that the machine operations declare."""
    lowered = machine_kernel(CALLS[name].request, SM_90A)
    made = nvrtc.compile_cubin(emit(lowered, SM_90A), SM_90A)
    assert not made.notes, "\n".join(note.render() for note in made.notes)
    assert counted(made.ptx) == declared(lowered)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("send f32", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"),
        ("send bf16", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32"),
        ("send f8e4m3", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32"),
        ("send wide", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"),
        ("load i32", "ld.shared::cluster."),
        ("store f16", "st.shared::cluster."),
        (
            "copy",
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
        ),
    ],
)
def test_forms(name: str, form: str) -> None:
    ptx = CALLS[name].text("ptx")
    assert form in ptx
    # What came is acquired from the cluster; sending it costs no fence.
    later = name.startswith(("send", "copy"))
    assert ("mbarrier.try_wait.parity.acquire.cluster" in ptx) == later
    assert "fence.acq_rel" not in ptx
    assert "mapa.shared::cluster.u32" in ptx
