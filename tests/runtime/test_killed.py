"""A process that is killed while it replays a graph of exchanges leaves nothing behind that the
next stumbles over: epochs live in the memory of a process."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.kernels import collectives
from warploom.kernels.collectives import reference

BLOCKS, SHARE, ROUNDS = 8, 32, 20
ROOT = Path(__file__).resolve().parents[2]
REPLAYS = """
    import numpy as np
    import warploom as wl
    from warploom.kernels import collectives

    x = wl.to_device(np.zeros({n}, np.float32))
    out = wl.device_empty(({blocks}, {n}), wl.f32)
    graph = wl.graph(lambda: collectives.exchange(x, out, {share}, {rounds}, "{way}"))
    print("ready", flush=True)
    while True:
        graph.replay()
"""


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["counter", "flagged"])
def test_a_process_killed_between_replays(way: str) -> None:
    n = BLOCKS * SHARE
    host = np.random.default_rng(0).standard_normal(n, np.float32)
    x, out = wl.to_device(host), wl.device_empty((BLOCKS, n), wl.f32)
    graph = wl.graph(lambda: collectives.exchange(x, out, SHARE, ROUNDS, way))
    wanted = np.broadcast_to(reference.exchange(host, SHARE, ROUNDS), (BLOCKS, n))
    script = textwrap.dedent(REPLAYS).format(
        n=n, blocks=BLOCKS, share=SHARE, rounds=ROUNDS, way=way
    )
    for _ in range(2):
        command = [sys.executable, "-c", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            time.sleep(0.1)
            other.kill()
        for _ in range(3):
            graph.replay()
            assert np.array_equal(wl.to_numpy(out), wanted)
