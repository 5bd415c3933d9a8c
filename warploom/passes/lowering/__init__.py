"""Rules that turn tile operations into machine operations, one file a family. Importing this
package registers all of them."""

from warploom.passes.lowering import (
    cluster,
    copies,
    debug,
    elementwise,
    exchange,
    flags,
    lanes,
    memory,
    products,
    reductions,
    shared,
)

__all__ = [
    "cluster",
    "copies",
    "debug",
    "elementwise",
    "exchange",
    "flags",
    "lanes",
    "memory",
    "products",
    "reductions",
    "shared",
]
