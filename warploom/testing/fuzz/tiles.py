"""Random kernels of level 1: tile IR of every operation, evaluated on whole arrays and run as it is
lowered. Knows not how they are drawn (`tile_generator`) or evaluated (`tile_reference`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.passes.pipeline import lower
from warploom.sim.program import TensorArg, prepare
from warploom.testing.fuzz import machine_gpu, tile_reference
from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tile_generator import case_of


def bits(array: np.ndarray) -> np.ndarray:
    """The array's bits; all NaNs alike."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.kind not in "iub":
        plain = np.where(np.isnan(plain), np.nan, plain).astype(plain.dtype)
    return plain.view(f"u{plain.dtype.itemsize}")


def differing(kernel: Kernel, expected: list[Any], found: list[Any]) -> str:
    """The first tensor that does not hold what it should, in words."""
    for param, want, have in zip(kernel.params, expected, found, strict=True):
        if isinstance(want, np.ndarray) and not np.array_equal(bits(want), bits(have)):
            count = int((bits(want) != bits(have)).sum())
            return f"`{param.name}` differs in {count:,} of {want.size:,} elements"
    return ""


def why(case: Case, device: str, seed: int) -> str:
    """Lower, run, compare; what is wrong. The simulator runs it plain, then checked."""
    expected = case.copies()
    tile_reference.run(case.kernel, case.grid, expected)
    machine = parse_kernel(print_kernel(case.kernel))
    lower(machine, SM_90A)
    if device != "sim":
        found = case.copies()
        machine_gpu.run(machine, case.grid, found)
        return differing(case.kernel, expected, found)
    program = prepare(machine)
    for checked in (False, True):
        found = case.copies()
        given = [TensorArg(a) if isinstance(a, np.ndarray) else a for a in found]
        result = program.run(case.grid, given, checked=checked, seed=seed if checked else 0)
        if result.findings:
            return result.findings[0].render()
        if told := differing(case.kernel, expected, found):
            return told + (", checked" if checked else "")
    return ""


class Tiles:
    """The kernel of a seed."""

    level, family = 1, "tiles"

    def __init__(self, seed: int) -> None:
        self.seed, self.case = seed, case_of(seed)

    def text(self) -> str:
        """A file that runs it; its text may be changed."""
        kernel = print_kernel(self.case.kernel).replace("\\", "\\\\")
        return (
            f'"""A random kernel of tile IR: `warploom fuzz --seed {self.seed} --count 1`, or run '
            'this file."""\n\n'
            "from warploom.testing.fuzz import tiles\n\n"
            f'KERNEL = """\\\n{kernel}"""\n\n'
            'if __name__ == "__main__":\n'
            f'    print(tiles.replayed(KERNEL, {self.seed}) or "equal")\n'
        )

    def why(self, device: str, seed: int) -> str:
        """What is wrong with it, or nothing."""
        return why(self.case, device, seed)

    def smaller(self) -> Iterator[Tiles]:
        """None: its text can be cut by hand, and hypothesis draws smaller ones in tests."""
        return iter(())


def replayed(text: str, seed: int, device: str = "sim") -> str:
    """What is wrong with a kernel that takes the arguments of a seed."""
    case = case_of(seed)
    return why(Case(parse_kernel(text), case.grid, case.args), device, seed)
