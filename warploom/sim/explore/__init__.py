"""Exploration: all interleavings of the synchronisation of a small launch, by the hardware's rules.
Knows nothing of the order of accesses: that is `order`."""
