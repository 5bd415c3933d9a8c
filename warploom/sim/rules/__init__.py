"""Rules of the simulator, one file an operation family. Importing this package registers them."""

from warploom.sim.rules import (
    control,
    debug,
    global_memory,
    index,
    lanes,
    registers,
    scalar,
    shared_memory,
    sync,
)

__all__ = [
    "control",
    "debug",
    "global_memory",
    "index",
    "lanes",
    "registers",
    "scalar",
    "shared_memory",
    "sync",
]
