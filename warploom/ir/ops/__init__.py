"""Operation declarations, one file a family. Importing this package registers all of them."""

from warploom.ir.ops import (
    control,
    debug,
    global_memory,
    index,
    lanes,
    mbarrier,
    registers,
    roles,
    scalar,
    shared,
    shared_memory,
    sync,
    tensor,
    tile,
    tma,
    wgmma,
)

__all__ = [
    "control",
    "debug",
    "global_memory",
    "index",
    "lanes",
    "mbarrier",
    "registers",
    "roles",
    "scalar",
    "shared",
    "shared_memory",
    "sync",
    "tensor",
    "tile",
    "tma",
    "wgmma",
]
