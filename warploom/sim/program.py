"""A kernel prepared for the simulator, and its launches: batches of blocks, two threads, results.

Blocks that neither wait for nor signal each other run many at a time, as one array operation each.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from warploom.base.diagnostics import Report
from warploom.ir import cluster
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Effect
from warploom.ir.types import Regs, Scalar, Tensor
from warploom.sim.actors import Schedule
from warploom.sim.arguments import TensorArg, tensor_argument
from warploom.sim.booking import Outside
from warploom.sim.cluster import run_resident
from warploom.sim.granularity import tensor_cell
from warploom.sim.machine import Arena, Batch, Endless, Launch, Slots, Step, sequence
from warploom.sim.order_faults import in_order
from warploom.sim.prompt import Prompt
from warploom.sim.rules.scalar import literal
from warploom.sim.translate import Translator

__all__ = ["Program", "RunResult", "TensorArg", "prepare", "tensor_argument"]

# Bytes that one register tile of a batch may take: a few of them stay in the second-level cache.
_TILE_BYTES = 256 << 10
_SHARED_BYTES = 4 << 20
_BLOCKS = 1024
# Bytes of tiles from which a launch is worth two threads.
_THREAD_BYTES = 1 << 20


@dataclass
class RunResult:
    """What a launch left besides its outputs."""

    findings: list[Report] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    steps: int = 0
    barriers: int = 0


class Program:
    """A kernel of the machine stage as steps. Safe to run from several threads."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._plain, self._steps = self._translate(checked=False)
        self._checked: tuple[Translator, list[Step]] | None = None
        self._arenas: dict[tuple[int, bool], list[Arena]] = {}
        self._tile_bytes = max(
            (
                math.prod(r.type.extents) * kernel.warps * 32 * r.type.dtype.bytes
                for op in walk(kernel.body)
                for r in op.results
                if isinstance(r.type, Regs)
            ),
            default=1,
        )
        self._read = _tensors(kernel, Effect.READ_GLOBAL)
        self._stored = _tensors(kernel, Effect.WRITE_GLOBAL)

    def _translate(self, checked: bool) -> tuple[Translator, list[Step]]:
        translator = Translator(self.kernel, checked)
        return translator, translator.steps(self.kernel.body)

    def run(
        self,
        grid: tuple[int, ...],
        args: Sequence[TensorArg | np.ndarray | float],
        *,
        checked: bool = False,
        seed: int = 0,
        schedule: str = "",
        prompt: Prompt | None = None,
        together: bool = False,
        recording: Any = None,
    ) -> RunResult:
        """Run all blocks of a grid (up to three extents) and return when they are done.

        Blocks that wait have their cluster resident at a time; all of the grid where `together`.

        `args` are in the order of the kernel's parameters: `TensorArg` (or NumPy arrays), numbers.
        `seed` chooses the order of the batches (0 is ascending) and, with the name of a schedule or
        without, who takes turns in them (`actors`). Plain mode raises CheckError at a
        fault; checked mode collects findings. What the kernel prints goes to stdout in block order.
        `recording` gets the tapes of a checked run (`explore`).
        `prompt` answers the kernel's breakpoints, by default from standard input; blocks run one by
        one then.
        """
        x, y, z = (*grid, 1, 1, 1)[:3]
        sizes = (x, y, z)
        launch = Launch(self.kernel.name, sizes, checked)
        if checked and self._checked is None:
            self._checked = self._translate(checked=True)
        launch.prompt, launch.recording = prompt or Prompt(), recording
        translator, steps = (
            self._checked if checked and self._checked else (self._plain, self._steps)
        )
        slots: Slots = [None] * len(translator.types)
        self._bind(slots, args, sizes)
        if checked:
            launch.outside = self._outside(slots)
        batches = self._batches(sizes, translator, seed, together)
        result = RunResult(steps=len(steps) * len(batches))

        def run_batch(blocks: Sequence[int]) -> int:
            # Blocks that wait for each other have shared memory each; others lie side by side.
            parts = [[b] for b in blocks] if translator.waits else [list(blocks)]
            members = [self._batch(launch, np.array(p), translator, checked) for p in parts]
            frames = [slots.copy() for _ in members]
            if checked:
                for batch in members:
                    batch.shadow = [None] * len(slots)
            with np.errstate(all="ignore"):
                if translator.waits:
                    order = Schedule(seed, schedule, blocks[0])
                    size = math.prod(self.kernel.cluster)
                    run_resident(translator, sequence(steps), frames, members, size, order)
                else:
                    for step in steps:
                        step(frames[0], members[0])
            for batch in members:
                self._arenas[batch.count, checked].append(batch.arena)
            return sum(batch.barriers[0] for batch in members)

        try:
            split = self._may_split(slots, batches, launch)
            result.barriers = sum((_pool().map if split else map)(run_batch, batches))
        except Endless:
            pass  # found
        finally:
            result.printed = [text for _, text in sorted(launch.printed, key=lambda p: p[0])]
            for line in result.printed:
                sys.stdout.write(line + "\n")
        result.findings = in_order(launch.findings)
        return result

    def _batch(
        self, launch: Launch, linear: np.ndarray, translator: Translator, checked: bool
    ) -> Batch:
        """The batch of some blocks."""
        arena = self._arena(len(linear), translator.shared_bytes, checked)
        return Batch(launch, linear, arena, translator.shared_bytes)

    def _arena(self, count: int, pitch: int, checked: bool) -> Arena:
        """Shared memory for a batch, that of an earlier one of its size where it is free."""
        try:
            # Taking and giving back is atomic in Python.
            arena = self._arenas.setdefault((count, checked), []).pop()
        except IndexError:
            arena = Arena(count, pitch, checked)
        arena.clear()
        return arena

    def _bind(self, slots: Slots, args: Sequence[Any], grid: tuple[int, int, int]) -> None:
        params = self.kernel.params
        if len(args) != len(params):
            raise ValueError(f"{self.kernel.name} takes {len(params)} arguments, {len(args)} given")
        for index, (param, value) in enumerate(zip(params, args, strict=True)):
            type = param.type
            if isinstance(type, Tensor):
                given = value if isinstance(value, TensorArg) else TensorArg(np.asarray(value))
                if given.dtype != type.dtype or len(given.shape) != type.rank:
                    raise ValueError(
                        f"{param.name}: {type.dtype} of rank {type.rank} expected, "
                        f"{given.dtype} of rank {len(given.shape)} given"
                    )
                slots[index] = given.bind(param.name)
            else:
                assert isinstance(type, Scalar)
                slots[index] = literal(value, type.dtype)

    @cached_property
    def _cells(self) -> dict[int, int]:
        """Of tensors that are accessed: the bytes that every access takes whole."""
        params, used = self.kernel.params, sorted(self._read | self._stored)
        return {index: tensor_cell(self.kernel, params[index]) for index in used}

    def _outside(self, slots: Slots) -> Outside:
        """Histories of the tensors that are written."""
        cells = {slots[index]: size for index, size in self._cells.items()}
        return Outside(cells, [slots[i] for i in self._stored])

    def _batches(
        self, grid: tuple[int, int, int], translator: Translator, seed: int, together: bool
    ) -> Sequence[Sequence[int]]:
        """Linear block numbers, batch by batch; where blocks have actors, cluster by cluster."""
        batches: Sequence[Sequence[int]]
        shared_bytes = translator.shared_bytes
        if translator.waits:
            batches = cluster.of_grid(grid, self.kernel.cluster)
            if together:
                batches = [[block for members in batches for block in members]]
        else:
            blocks = math.prod(grid)
            size = max(1, _TILE_BYTES // self._tile_bytes)
            if shared_bytes:
                size = min(size, max(1, _SHARED_BYTES // shared_bytes))
            size = 1 if self._plain.prompts else min(size, _BLOCKS)
            if size < blocks <= 2 * size:
                size = -(-blocks // 2)
            batches = [range(at, min(at + size, blocks)) for at in range(0, blocks, size)]
        if seed:
            order = np.random.default_rng(seed).permutation(len(batches))
            batches = [batches[i] for i in order]
        return batches

    def _may_split(self, slots: Slots, batches: Sequence[Sequence[int]], launch: Launch) -> bool:
        """Whether two threads may share the batches: worth it, and no block can see another's
        work."""
        alone = launch.checked or self._plain.waits or self._plain.prompts
        if alone or len(batches) < 2 or _threads() < 2:
            return False
        if self._tile_bytes * sum(map(len, batches)) < _THREAD_BYTES:
            return False
        stored = [slots[i] for i in self._stored]
        read = [slots[i] for i in self._read]
        return not any(a.overlaps(b) for a in stored for b in read)


def _tensors(kernel: Kernel, effect: Effect) -> set[int]:
    """The tensors among the parameters that operations of an effect name."""
    named = {v for op in walk(kernel.body) if effect in op.EFFECTS for v in op.operand_values()}
    params = enumerate(kernel.params)
    return {index for index, p in params if isinstance(p.type, Tensor) and p in named}


def _threads() -> int:
    return min(2, os.cpu_count() or 1)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), thread_name_prefix="warploom-sim")


# A child of a fork has the pool's object but none of its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def prepare(kernel: Kernel) -> Program:
    """Translate a kernel of the machine stage once."""
    return Program(kernel)
