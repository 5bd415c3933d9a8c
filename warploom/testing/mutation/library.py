"""Small launches of the library's kernels, for what shall hold of all of them: loops of 0, 1,
S - 1, S, S + 1 and more steps, odd and even numbers of tiles; of a kernel that is not listed here,
its examples. Runs nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import warploom as wl
from warploom import kernels
from warploom.base.errors import error
from warploom.kernels.gemm.grouped.kernel import grouped_depth, grouped_rows
from warploom.kernels.gemm.kernel import gemm
from warploom.kernels.gemm.split.kernel import split_gemm
from warploom.runtime.arrays import SIM
from warploom.runtime.examples import Make
from warploom.runtime.jit import Kernel
from warploom.runtime.launch import Call
from warploom.testing.mutation import library_blocks

# Kernels whose launches are written here.
_LISTED = {gemm, split_gemm, grouped_rows, grouped_depth, *library_blocks.KERNELS}
# The smallest tile of the matrix unit in f16, so that a run takes milliseconds.
_TILE: dict[str, Any] = {"BM": 64, "BN": 16, "BK": 16, "EN": 8, "STAGES": 2, "MATH": 1}


@dataclass(frozen=True, slots=True)
class Instance:
    """One launch of a kernel of a family; its call is made when it is wanted."""

    family: str
    name: str
    make: Callable[[Make], Call]

    @property
    def altered(self) -> bool:
        """Whether mutants are tried on it: a loop of no steps is compiled by itself and executes
        none of what they alter."""
        return not self.name.endswith("/0")

    @property
    def seeds(self) -> int:
        """Schedules on which a mutant is tried: one decides, except where control flow depends on
        which block comes last."""
        return 4 if self.name.startswith("split/") else 1

    def call(self) -> Call:
        """The launch, on the simulator."""
        return self.make(Make(SIM))


def steps_around(stages: int) -> list[int]:
    """Trip counts at which a ring of so many stages may go wrong: the longest first."""
    return sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages + 1}, reverse=True)


def _dense(
    steps: int, rows: int = 192, grid: Any = 1, cluster: Any = None, columns: int = 16, **how: Any
) -> Callable[[Make], Call]:
    """A product with so many steps along K; constants by name."""
    tiles = {**_TILE, "B_T": False, **how}

    def make(make: Make) -> Call:
        a = make.randn((rows, tiles["BK"] * steps), wl.f16)
        b = make.randn((tiles["BK"] * steps, columns), wl.f16)
        out = make.empty((rows, columns), wl.f32)
        return gemm.launch(grid, cluster=cluster).call(a, b, out, **tiles)

    return make


def _scaled(steps: int, promote: int, **how: Any) -> Callable[[Make], Call]:
    """8-bit floats, sums promoted after so many steps."""
    tiles = {**_TILE, "BK": 32, "B_T": True, "PROMOTE": 32 * promote, **how}

    def make(make: Make) -> Call:
        a, b = make.randn((128, 32 * steps), wl.f8e4m3), make.randn((16, 32 * steps), wl.f8e4m3)
        out = make.empty((128, 16), wl.bf16)
        return gemm.launch(1).call(a, b.T, out, **tiles)

    return make


def _split(steps: int, blocks: int, **how: Any) -> Callable[[Make], Call]:
    """Five tiles whose steps are dealt to some blocks."""
    tiles = {**_TILE, "B_T": False, **how}

    def make(make: Make) -> Call:
        a, b = make.randn((320, 16 * steps), wl.f16), make.randn((16 * steps, 16), wl.f16)
        out = make.empty((320, 16), wl.f32)
        parts, counts = make.empty((2 * blocks, 64, 16), wl.f32), make.zeros((5,), wl.i32)
        work = {"parts": parts, "counts": counts}
        return split_gemm.launch(blocks).call(a, b, out, **work, **tiles)

    return make


def _rows(steps: int, ends: tuple[int, ...], **how: Any) -> Callable[[Make], Call]:
    """Groups of rows that end at `ends`."""
    tiles = {**_TILE, "B_T": False, **how}

    def make(make: Make) -> Call:
        groups = len(ends) - 1
        a, b = make.randn((ends[-1], 16 * steps), wl.f16), make.randn((groups, 16 * steps, 16))
        out, offsets = make.empty((ends[-1], 16), wl.f32), make.array(ends, wl.i32)
        held = b.astype(a.dtype)
        return grouped_rows.launch(1).call(a, held, out, offsets, **tiles)

    return make


def _depth(ends: tuple[int, ...], **how: Any) -> Callable[[Make], Call]:
    """Groups of columns of `a` that end at `ends`."""
    tiles = {**_TILE, "B_T": False, **how}
    del tiles["MATH"]

    def make(make: Make) -> Call:
        groups, k = len(ends) - 1, ends[-1]
        a, b = make.randn((64, k), wl.f16), make.randn((k, 16), wl.f16)
        out, offsets = make.empty((groups, 64, 16), wl.f32), make.array(ends, wl.i32)
        return grouped_depth.launch(1).call(a, b, out, offsets, **tiles)

    return make


def _gemm() -> Iterator[tuple[str, Callable[[Make], Call]]]:
    forms: dict[str, dict[str, Any]] = {
        "one": {},
        "stages3": {"STAGES": 3},
        "stages1": {"STAGES": 1},
        "cooperative": {"BM": 128, "MATH": 2, "rows": 384},
        "pingpong": {"PINGPONG": True, "MATH": 2, "rows": 320},
        "cluster": {"grid": 2, "cluster": 2, "rows": 256},
        "direct": {"DIRECT": True, "A_T": False},
    }
    for name, how in forms.items():
        for steps in steps_around(how.get("STAGES", 2)):
            yield f"{name}/{steps}", _dense(steps, **how)
    pingpong = forms["pingpong"] | {"rows": 128}
    yield "pingpong/even", _dense(3, **pingpong)
    yield "cluster/columns", _dense(5, 64, (1, 2), (1, 2), 64, BN=16, STAGES=2)
    for steps in steps_around(2)[:-1]:  # nothing of K has no axis that lies contiguous
        yield f"fp8/{steps}", _scaled(steps, 1)
        yield f"fp8-two/{steps}", _scaled(steps, 2)


def _forms() -> Iterator[tuple[str, str, Callable[[Make], Call]]]:
    for name, make in _gemm():
        yield "gemm", name, make
    for steps, blocks in ((3, 2), (5, 3), (2, 7), (1, 2)):
        yield "gemm", f"split/{steps}x{blocks}", _split(steps, blocks)
    for steps in steps_around(2):
        yield "gemm", f"rows/{steps}", _rows(steps, (0, 64, 64, 128, 170))
    for last in (160, 80, 48, 32):
        yield "gemm", f"depth/{last}", _depth((0, 8, last // 2, last // 2, last))
    yield from library_blocks.forms()
    for family, kernel in library_kernels():
        if kernel not in _LISTED:
            for name, make in kernel.examples.items():
                if name != "bench":
                    yield family, f"{kernel.name}@{name}", make


def library_kernels() -> Iterator[tuple[str, Kernel]]:
    """All kernels of the library, each with its family, in the order of their modules."""
    seen: set[int] = set()
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        if not module.name.endswith(".kernel"):
            continue
        family = module.name.split(".")[2]
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Kernel) and id(value) not in seen:
                seen.add(id(value))
                yield family, value


def families() -> list[str]:
    """The families of the library."""
    return list(dict.fromkeys(family for family, _, _ in _forms()))


def instances(wanted: str = "") -> list[Instance]:
    """The launches of families (separated by commas; all where none is given). Raises LaunchError
    H021 for one that there is not."""
    known = families()
    names = [name.strip() for name in wanted.split(",") if name.strip()] or known
    for name in names:
        if name not in known:
            hint = f"families: {', '.join(known)}"
            raise error("H021", f"there is no family `{name}`", hint=hint)
    return [Instance(*form) for form in _forms() if form[0] in names]
