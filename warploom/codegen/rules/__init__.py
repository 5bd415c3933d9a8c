"""Rules of the emitter, one file a family of operations. Importing this package registers them."""

from warploom.codegen.rules import (
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
