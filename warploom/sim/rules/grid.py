"""Launches run one after the other here: nothing is left to wait for."""

from __future__ import annotations

from warploom.ir.ops import grid
from warploom.sim.registry import simulates
from warploom.sim.translate import Translator


@simulates(grid.LaunchDependents)
def launch_dependents(t: Translator, op: grid.LaunchDependents) -> None:
    """The next launch begins when this one has ended."""


@simulates(grid.WaitForPrevious)
def wait_for_previous(t: Translator, op: grid.WaitForPrevious) -> None:
    """The launch before this one has ended."""
