"""What launches hand on: zero when it begins anew, on the simulator and on a (made-up) GPU."""

import ctypes
import gc
from dataclasses import dataclass

import numpy as np
import pytest

from tests.runtime.fake_cuda import FakeCuda, installed
from warploom.ir.kernel import Kept
from warploom.runtime import kept
from warploom.runtime.arrays import View

ENTRIES = [Kept(0, "i32", 32, 0), Kept(1, "i64", 2, 1, (16,))]


@dataclass
class Held:
    """Arguments, as far as they matter here."""

    source: str = ""
    names: tuple[str, ...] = ()
    values: tuple[View, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()


def seen(view: View) -> np.ndarray:
    """The memory of a view, which is the host's also where the GPU is made up."""
    size = view.dtype.bytes * int(np.prod(view.shape))
    memory = (ctypes.c_byte * size).from_address(view.address)
    return np.frombuffer(memory, np.int8)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("place", ["sim", "gpu:0"])
def test_all_that_is_handed_on_is_zeroed(monkeypatch, place: str, own: bool) -> None:
    with installed(monkeypatch, FakeCuda()):
        held = kept.KeptOnHost(ENTRIES) if place == "sim" else kept.KeptOnGpu(ENTRIES, 0)
        views = held.behind(Held(), 3, 0, own).values
        assert [v.shape for v in views] == [(32,), (5, 16)]
        gc.collect()
        for view in views:
            seen(view)[:] = 7
        kept.begin_anew("gpu:1")
        assert all((seen(view) == 7).all() for view in views)
        kept.begin_anew(place)
        assert not any(seen(view).any() for view in views)
        assert own or held.behind(Held(), 3, 0, own).values == [*views]
