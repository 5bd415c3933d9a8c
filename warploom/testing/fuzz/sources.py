"""Random kernels of level 2: source texts that are written to a file, imported and run like those
of a user. Knows not what stands in them."""

from __future__ import annotations

import copy
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from warploom.runtime import memory
from warploom.runtime.launch import Launcher
from warploom.testing.fuzz import chain, chain_text, product, product_text
from warploom.testing.fuzz.tiles import bits

FAMILIES = {
    "chain": (chain.drawn, chain_text.text_of),
    "product": (product.drawn, product_text.text_of),
}


class Source:
    """A program of one of the families."""

    level = 2

    def __init__(self, family: str, made: Any) -> None:
        self.family, self.made = family, made

    @classmethod
    def of(cls, family: str, seed: int) -> Source:
        """The program of a seed."""
        return cls(family, FAMILIES[family][0](seed))

    def text(self) -> str:
        """The file, which runs by itself."""
        return FAMILIES[self.family][1](self.made)

    def smaller(self) -> Iterator[Source]:
        """Programs that lack something of this one."""
        for made in self.made.smaller():
            yield Source(self.family, made)

    def why(self, device: str, seed: int) -> str:
        """What is wrong with it, or nothing."""
        with tempfile.TemporaryDirectory(prefix="warploom-fuzz-") as folder:
            module = _imported(self.text(), Path(folder))
            return _on_sim(module, seed) if device == "sim" else _on_gpu(module, device, seed)


def _imported(text: str, folder: Path) -> ModuleType:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("warploom_fuzz_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _on_sim(module: ModuleType, seed: int) -> str:
    """Run plain on the default schedule, and checked on that of the seed."""
    held = module.inputs()
    module.LAUNCHER(**held)
    if told := _differing(module, held):
        return told
    held = module.inputs()
    findings = module.LAUNCHER.call(**held).check(1, seed)
    if not findings.clean:
        return f"checked, seed {seed}: {findings.text()}"
    told = _differing(module, held)
    return told and f"checked, seed {seed}: {told}"


def _on_gpu(module: ModuleType, device: str, seed: int) -> str:
    """Run as a debug build, which comes back, held up at random by the seed; then as it is."""
    place = device if ":" in device else f"{device}:0"
    for options in ({"debug": True, "delays": seed & (1 << 31) - 1}, {}):
        launcher: Launcher = copy.copy(module.LAUNCHER)
        launcher.kernel = launcher.kernel.options(**options)
        held = module.inputs()
        there = {
            name: memory.to_device(np.ascontiguousarray(value), place)
            if isinstance(value, np.ndarray)
            else value
            for name, value in held.items()
        }
        launcher(**there)
        for name, value in held.items():
            if isinstance(value, np.ndarray):
                held[name] = memory.to_numpy(there[name])
        if told := _differing(module, held):
            return f"{told}, {'under delays' if options else 'as it is'}"
    return ""


def _differing(module: ModuleType, held: dict[str, Any]) -> str:
    """The first output that does not hold what it should, in words."""
    for name, wanted in module.expected(**held).items():
        found = held[name]
        if not np.array_equal(bits(found), bits(wanted)):
            count = int((bits(found) != bits(wanted)).sum())
            return f"`{name}` differs in {count:,} of {wanted.size:,} elements"
    return ""
