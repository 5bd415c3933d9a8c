"""Rules that turn tile operations into machine operations, one file a family. Importing this
package registers all of them."""

from warploom.passes.lowering import debug, elementwise, exchange, memory, reductions

__all__ = ["debug", "elementwise", "exchange", "memory", "reductions"]
