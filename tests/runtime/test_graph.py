"""Graphs on the simulator: launches are recorded, not run; a replay sees what arrays then hold."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import LaunchError


@wl.kernel
def add_one(x: wl.Tensor, y: wl.Tensor, N: wl.const = 8):
    start = wl.program_id(0) * N
    wl.store(y[wl.ds(start, N)], wl.load(x[wl.ds(start, N)]) + 1)


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(16, dtype=np.float32)
    return x, np.zeros_like(x), np.zeros_like(x)


def test_a_chain_of_launches_is_replayed() -> None:
    x, y, z = arrays()

    def step() -> None:
        add_one[2](x, y)
        add_one[2](y, z)

    graph = wl.graph(step)
    assert (graph.place, graph.launches) == ("sim", 2)
    assert np.array_equal(z, x + 2), "the function ran once"
    x[...] = 5
    before = wl.stats().simulated_launches
    graph.replay()
    assert (z == 7).all()
    assert wl.stats().simulated_launches == before + 2


def test_bound_launches_are_recorded_too() -> None:
    x, y, _ = arrays()
    bound = add_one[2].bound(x, y)
    calls: list[int] = []

    def step() -> None:
        calls.append(len(calls))
        bound()

    graph = wl.graph(step)
    y[...] = 0
    graph.replay()
    assert np.array_equal(y, x + 1)
    assert calls == [0, 1]


def test_recording_runs_nothing_and_counts_nothing() -> None:
    x, y, _ = arrays()
    before = wl.stats().simulated_launches
    wl.graph(lambda: add_one[2](x, y))
    assert wl.stats().simulated_launches == before + 1


def test_an_empty_grid_is_part_of_a_graph() -> None:
    x, y, _ = arrays()
    graph = wl.graph(lambda: add_one[0](x, y))
    graph.replay()
    assert (y == 0).all()


def test_what_the_function_raises_comes_out_and_nothing_stays_recording() -> None:
    x, y, _ = arrays()
    times = iter(range(2))

    def step() -> None:
        add_one[2](x, y)
        if next(times) == 1:
            raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        wl.graph(step)
    y[...] = 0
    add_one[2](x, y)
    assert np.array_equal(y, x + 1)


def test_graphs_do_not_nest() -> None:
    x, y, _ = arrays()
    times = iter(range(2))

    def inner() -> None:
        add_one[2](x, y)

    def outer() -> None:
        inner()
        if next(times) == 1:
            wl.graph(inner)

    with pytest.raises(LaunchError, match="another graph"):
        wl.graph(outer)
