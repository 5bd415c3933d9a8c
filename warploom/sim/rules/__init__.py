"""Rules of the simulator, one file an operation family. Importing this package registers them."""

from warploom.sim.rules import (
    cluster,
    control,
    debug,
    flags,
    global_memory,
    grid,
    index,
    lanes,
    mbarrier,
    registers,
    roles,
    scalar,
    shared_memory,
    sync,
    tma,
    wgmma,
)

__all__ = [
    "cluster",
    "control",
    "debug",
    "flags",
    "global_memory",
    "grid",
    "index",
    "lanes",
    "mbarrier",
    "registers",
    "roles",
    "scalar",
    "shared_memory",
    "sync",
    "tma",
    "wgmma",
]
