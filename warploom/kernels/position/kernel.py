"""Adds a number to a short vector of positions, in place, in one block."""

import warploom as wl

MOST = 1024


@wl.kernel
def advance(positions: wl.Tensor, by: wl.i32, BT: wl.const):
    """positions[t] += by."""
    wl.launch_dependents()
    wl.wait_for_previous()
    wl.store(positions[wl.ds(0, BT)], wl.load(positions[wl.ds(0, BT)]) + by)


@advance.example
def _advance(make):
    return advance.launch(1).call(make.zeros((5,), wl.i32), 1, BT=8)
