"""Memory of library kernels: shared by the launches of a stream, apart for captured ones."""

import numpy as np
import pytest

import warploom as wl
from warploom.runtime import arrays, workspace


@wl.kernel
def counted(counts: wl.Tensor, numbers: wl.Tensor, seen: wl.Tensor):
    """Every block counts; the last one notes it and resets the counter."""
    i = wl.program_id(0)
    wl.store(numbers[i], 1.0)
    if wl.atomic_add(counts[0], 1, order="acq_rel") == wl.num_programs(0) - 1:
        total = 0.0
        for k in wl.range(wl.num_programs(0)):
            total = total + wl.load(numbers[k])
        wl.store(seen[0], wl.load(seen[0]) + total)
        wl.store(counts[0], 0)


def test_on_the_simulator_it_is_fresh():
    view = arrays.read(np.zeros(4, np.float32), "x")
    numbers, counts = workspace.for_launch(view, (3, 5), 7)
    assert numbers.shape == (3, 5) and numbers.dtype == np.float32
    assert counts.tolist() == [0] * 7 and counts.dtype == np.int32
    assert workspace.for_launch(view, (3, 5), 7)[1] is not counts


@pytest.mark.gpu
def test_launches_of_a_stream_share_it():
    x = wl.to_device(np.zeros(1, np.float32))
    view = arrays.read(x, "x")
    one, two = (workspace.for_launch(view, (64,), 3) for _ in range(2))
    assert one[0].address == two[0].address and one[1].address == two[1].address
    small, large = workspace.for_launch(view, (8,), 1), workspace.for_launch(view, (1 << 16,), 900)
    assert small[0].address == one[0].address and large[0].size == 1 << 16
    assert not wl.to_numpy(large[1]).any()
    for _ in range(5):
        numbers, counts = workspace.for_launch(view, (40,), 1)
        counted[40](counts, numbers, x)
    assert wl.to_numpy(x)[0] == 200


@pytest.mark.gpu
def test_recorded_launches_have_their_own():
    x, y = (wl.to_device(np.zeros(1, np.float32)) for _ in range(2))
    view, made = arrays.read(x, "x"), []

    def step():
        for out in (x, y):
            numbers, counts = workspace.for_launch(view, (40,), 1)
            made.append((numbers.address, counts.address))
            counted[40](counts, numbers, out)

    graph = wl.graph(step)
    assert len(set(made[2:])) == 2 and not set(made[2:]) & set(made[:2])
    for _ in range(3):
        graph.replay()
    assert wl.to_numpy(x)[0] == wl.to_numpy(y)[0] == 160


@pytest.mark.gpu
@pytest.mark.torch
def test_torch_graphs_and_streams_have_their_own():
    torch = pytest.importorskip("torch")
    x = torch.zeros(3, device="cuda")
    outs = [x[i : i + 1] for i in range(3)]

    def step(out):
        numbers, counts = workspace.for_launch(arrays.read(out, "x"), (40,), 1)
        counted[40](counts, numbers, out)
        return counts

    step(outs[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = [step(outs[1]), step(outs[2])]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = step(outs[0])
    for _ in range(10):
        graph.replay()
        with torch.cuda.stream(side):
            step(outs[0])
    torch.cuda.synchronize()
    assert x.tolist() == [480.0, 400.0, 400.0]
    places = {arrays.read(c, "c").address for c in (*captured, other, step(outs[0]))}
    assert len(places) == 4
