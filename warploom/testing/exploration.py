"""Explores the examples of the library: what of their synchronisation is proved, in numbers.

Knows no kernel by name; how exploration works is `sim.explore`'s business.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

from warploom import kernels
from warploom.runtime.jit import Kernel
from warploom.runtime.launch import Call

# Examples of a size that is measured, and of programs too long to be visited in all orders.
_LARGE = ("bench", "whole")


def families() -> list[str]:
    """The modules of the library that hold kernels."""
    found = pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
    return [info.name for info in found if info.name.endswith(".kernel")]


def library_calls(names: Iterable[str] | None = None) -> Iterator[tuple[str, Call]]:
    """The small examples of the library's kernels on the simulator, with their names; of some of
    its `families`, or of all."""
    for name in families() if names is None else names:
        for kernel in vars(importlib.import_module(name)).values():
            if isinstance(kernel, Kernel):
                for example in kernel.examples:
                    if example not in _LARGE:
                        yield f"{kernel.name}@{example}", kernel.example_call(example)


def explore(calls: Iterable[tuple[str, Call]] | None = None) -> dict[str, Any]:
    """Explore calls (those of the library unless given), as `selftest` reports it: how many have
    synchronisation, how many are proved, what was visited, and what was found in the others."""
    sums = dict.fromkeys(("instances", "proved", "states", "transitions", "interleavings"), 0)
    failed: list[dict[str, Any]] = []
    for name, call in library_calls() if calls is None else calls:
        found = call.explore()
        numbers = found.bounds.get("explore", {"groups": 0})
        if not numbers["groups"] and found.clean:
            continue  # nothing waits in it
        sums["instances"] += 1
        sums["proved"] += found.clean
        for what in ("states", "transitions", "interleavings"):
            sums[what] += numbers[what]
        if not found.clean:
            failed.append({"call": name, "codes": [f.code for f in found]})
    return {**sums, "failed": failed}
