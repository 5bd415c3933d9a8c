"""Orders in which the blocks of a launch go over tiles: structs for `wl.tiles`."""

from warploom.kernels.schedule.kernel import Grid, Groups, Shares

__all__ = ["Grid", "Groups", "Shares"]
