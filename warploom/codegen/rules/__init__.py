"""Rules of the emitter, one file a family of operations. Importing this package registers them."""

from warploom.codegen.rules import (
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
