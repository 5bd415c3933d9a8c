"""Orders in which the blocks of a launch go over tiles: structs for `wl.tiles`."""

from warploom.kernels.schedule.kernel import Dynamic, Grid, Groups, Shares

__all__ = ["Dynamic", "Grid", "Groups", "Shares"]
