"""A word by which the host ends the waits of running launches for each other's blocks
(`wl.stop_at`). Knows no kernel."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

from warploom.base.dtypes import i32
from warploom.runtime import driver, kept, places
from warploom.runtime.arrays import SIM, View


class Stop:
    """A word in memory that a device and the host both reach: `Stop("gpu:0")`, on the simulator
    `Stop()`. Pass it to a kernel as the tensor of `wl.stop_at`."""

    def __init__(self, device: str = SIM) -> None:
        self.place = SIM if device == SIM else f"gpu:{places.gpu_number(device)}"
        if self.place == SIM:
            self._word = np.zeros(1, np.int32)
            address = self._word.ctypes.data
        else:
            number = places.gpu_number(self.place)
            address = driver.allocate_shared(number, 4)
            weakref.finalize(self, driver.free_shared, number, address).atexit = False
            self._word = np.ctypeslib.as_array((ctypes.c_int32 * 1).from_address(address))
            self._word[0] = 0
        host = self._word if self.place == SIM else None
        self._view = View(i32, (1,), (1,), address, self.place, True, self._word, host)

    def __warploom_view__(self) -> View:
        return self._view

    @property
    def asked(self) -> bool:
        """Whether waits shall end."""
        return bool(self._word[0])

    def ask(self) -> None:
        """Let waits of launches that look here end: those under way, and those to come."""
        self._word[0] = 1

    def clear(self) -> None:
        """Wait for the launches of the device, and begin anew: what launches hand on is zero, as
        before the first of them, so the next one is right whatever the stopped ones have left."""
        if self.place != SIM:
            driver.synchronize(places.gpu_number(self.place))
        kept.begin_anew(self.place)
        self._word[0] = 0
