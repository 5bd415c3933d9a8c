"""Rules that turn tile operations into machine operations, one file a family. Importing this
package registers all of them."""

from warploom.passes.lowering import (
    cluster,
    copies,
    cp_async,
    debug,
    descriptor,
    elementwise,
    exchange,
    flagged,
    flags,
    lanes,
    layouts,
    memory,
    mma,
    products,
    ptx,
    reductions,
    remote,
    shared,
)

__all__ = [
    "cluster",
    "copies",
    "cp_async",
    "debug",
    "descriptor",
    "elementwise",
    "exchange",
    "flagged",
    "flags",
    "lanes",
    "layouts",
    "memory",
    "mma",
    "products",
    "ptx",
    "reductions",
    "remote",
    "shared",
]
