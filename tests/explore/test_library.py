"""The library's kernels and the steps of the GEMM example are proved, each example as it stands."""

import importlib.util
from pathlib import Path

import pytest

from tests.explore.instances import ring, ring_gemm
from warploom.runtime.jit import Kernel
from warploom.testing import exploration

EXAMPLES = Path(__file__).parents[2] / "examples" / "gemm"


# Families in which nothing waits have nothing to explore.
FEWEST = {"gemm": 5, "grouped": 2, "split": 1, "rows": 4, "collectives": 5}


@pytest.mark.parametrize("name", exploration.families(), ids=lambda name: name.split(".")[-2])
def test_the_library(name: str):
    found = exploration.explore(exploration.library_calls([name]))
    assert found["failed"] == []
    assert found["proved"] == found["instances"] >= FEWEST.get(name.split(".")[-2], 0)
    assert found["states"] == found["transitions"] + found["interleavings"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("v*.py")), ids=lambda path: path.stem)
def test_the_steps_of_the_example(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (kernel,) = (v for v in vars(module).values() if isinstance(v, Kernel))
    found = kernel.example_call().explore()
    assert found.clean, found.text()
    held = found.bounds["explore"]
    assert held["complete"]
    assert held["interleavings"] == held["distinct"] > 0


def test_what_is_not_proved_is_named():
    calls = [("right", ring_gemm(2)), ("wrong", ring(3, FLIP=0))]
    found = exploration.explore(calls)
    assert (found["instances"], found["proved"]) == (2, 1)
    assert found["failed"] == [{"call": "wrong", "codes": ["D001"]}]
