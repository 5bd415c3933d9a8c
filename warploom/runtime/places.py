"""Device words: `sim`, `gpu`, `gpu:1`. Only `default` may touch the driver."""

from __future__ import annotations

import os
import re

from warploom.base.errors import error
from warploom.runtime import driver
from warploom.runtime.arrays import SIM


def parse(word: str) -> str:
    """The place that a device word means: "sim" or "gpu:N"; raises LaunchError H021."""
    if word == SIM:
        return SIM
    if re.fullmatch(r"gpu(:\d+)?", word):
        return word if ":" in word else f"{word}:0"
    raise error("H021", f"there is no device `{word}`", hint="give sim, gpu, or gpu:N")


def gpu_number(word: str) -> int:
    """The number of the GPU that a device word means."""
    place = parse(word)
    if place == SIM:
        raise error(
            "H021",
            "the simulator's arrays are NumPy's: nothing has to be copied",
            hint="pass the NumPy array itself",
        )
    return int(place[4:])


def default() -> str:
    """The place of tools that are told none: WARPLOOM_DEVICE, else a GPU where one is usable."""
    named = os.environ.get("WARPLOOM_DEVICE")
    if named:
        return parse(named)
    return "gpu:0" if driver.is_usable() else SIM
