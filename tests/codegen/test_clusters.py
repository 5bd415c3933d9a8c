"""What kernels with clusters print and compile to: ranks, peers' addresses, forms of arrivals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.language.test_clusters import crossed, dealt, passed_on, product, shared_sums
from warploom.base.target import SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.runtime import nvrtc
from warploom.runtime.compile import machine_kernel
from warploom.testing.golden import Golden


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def calls() -> dict[str, Any]:
    half = {"dtype": np.float16}
    operands = zeros(128, 128, **half), zeros(256, 128, **half), zeros(128, 256)
    return {
        "told": passed_on.launch(2, cluster=2).call(zeros(2, 128), *[zeros(3, 2, 128)] * 2, 3),
        "by hand": product.launch((8, 2), cluster=4).call(*operands, 64, 32, 64, 2),
        "read by threads": shared_sums.launch((2, 2), cluster=(2, 2)).call(
            zeros(32, 160), zeros(4, 1, 32, 32), 1, 5, 3, 1, 1
        ),
        "read by products": crossed.launch((4, 2), cluster=(4, 2)).call(*operands, 3),
        "dealt": dealt.launch(4, cluster=4).call(
            zeros(32, 160), zeros(4, 2, 32, 32), zeros(4, 2, 8, 32), 5, 3
        ),
    }


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_cubins(name: str) -> None:
    """No note, no spill, and the instructions that the machine operations declare."""
    lowered = machine_kernel(CALLS[name].request, SM_90A)
    made = nvrtc.compile_cubin(emit(lowered, SM_90A), SM_90A)
    assert not made.notes, "\n".join(note.render() for note in made.notes)
    assert counted(made.ptx) == declared(lowered)
    assert counted(made.ptx)["barrier.cluster"] >= 4
    assert re.search(r"\.reqnctapercluster \d, \d, \d|\.explicitcluster", made.ptx)


@pytest.mark.parametrize("name", CALLS)
def test_fences_stand_where_threads_have_read_or_written(name: str) -> None:
    """Retired products need no order: their release costs no fence of the whole GPU."""
    ptx = CALLS[name].text("ptx")
    ordered = "mbarrier.arrive.release.cluster.shared::cluster.b64" in ptx
    assert ordered == (name != "read by products")
    assert ordered == ("mbarrier.try_wait.parity.acquire.cluster" in ptx)


def test_text(golden: Golden) -> None:
    """A pipe that four blocks fill: its peers are found once, ahead of the loop."""
    text = CALLS["read by products"].text("cuda")
    golden(text[text.index('extern "C"') :])


def test_descriptors_without_the_rank() -> None:
    """Addresses bear the rank in a cluster; what a descriptor takes of them is 18 bits."""
    operands = zeros(64, 64, dtype=np.float16), zeros(128, 64, dtype=np.float16), zeros(64, 128)
    for cluster, masks in ((1, 0), (2, 2)):
        text = crossed.launch(2, cluster=cluster).call(*operands, 2).text("cuda")
        assert text.count("& 262143;") == masks
