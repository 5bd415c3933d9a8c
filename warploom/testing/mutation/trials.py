"""Launches of a kernel that its mutants are tried on: run checked, watched, stopped in time.

Knows no edit. A mutant runs with the arguments of the launch as they were at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from warploom.base.diagnostics import Report
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op
from warploom.ir.ops.mbarrier import Init
from warploom.runtime.launch import Call
from warploom.runtime.variant import SimVariant
from warploom.sim.machine import Batch, Slots, Step, sequence
from warploom.sim.order.engine import Engine
from warploom.sim.program import Program
from warploom.sim.translate import Translator
from warploom.testing.mutation.weaker import Weaker

# How many more operations than the kernel itself a mutant may execute.
_TIMES, _MORE = 20, 20_000


class Stopped(Exception):
    """A run that need not go on: there is a finding, or it has taken too many operations."""

    def __init__(self, findings: Sequence[Report], where: Op | None = None) -> None:
        super().__init__()
        self.findings, self.where = findings, where


class _Watching(Translator):
    """Counts what is executed, and stops a run."""

    def __init__(self, kernel: Kernel, watch: Watch) -> None:
        super().__init__(kernel, checked=True)
        self._watch = watch

    def step(self, op: Op) -> Step | None:
        """The step of an operation, behind a look at the run so far."""
        step, watch = super().step(op), self._watch
        count, weaker, made = watch.executed, watch.weaker, isinstance(op, Init)
        if step is not None and weaker is not None and op in weaker.ops:
            step = weaker.step(step)

        def look(s: Slots, m: Batch) -> None:
            watch.steps += 1
            count[op] = count.get(op, 0) + 1
            if made:
                watch.engines.add(m.state.booking.engine)
            if watch.first and m.launch.findings:
                raise Stopped(m.launch.findings)
            if watch.limit and watch.steps > watch.limit:
                raise Stopped(m.launch.findings, op)

        return look if step is None else sequence((look, step))


@dataclass(slots=True)
class Watch:
    """What a run has executed, and when it ends early: at its `first` finding, behind `limit`
    operations (0: never). `weaker`: an operation that orders less."""

    first: bool = False
    limit: int = 0
    weaker: Weaker | None = None
    steps: int = 0
    executed: dict[Op, int] = field(default_factory=dict)
    engines: set[Engine] = field(default_factory=set)

    def reached(self) -> set[Op]:
        """What has been executed. A barrier that nobody comes to might as well not be made."""
        books = [b for engine in self.engines for b in engine.books.values() if b.made]
        used = {b.made[2].op for b in books if b.made and b.used}
        return {op for op in self.executed if not isinstance(op, Init) or op in used}


class _Program(Program):
    """A kernel for checked runs only, watched."""

    def __init__(self, kernel: Kernel, watch: Watch) -> None:
        self._watch = watch
        self._both: tuple[Translator, list[Step]] | None = None
        super().__init__(kernel)

    def _translate(self, checked: bool) -> tuple[Translator, list[Step]]:
        if self._both is None:
            translator = _Watching(self.kernel, self._watch)
            self._both = translator, translator.steps(self.kernel.body)
        return self._both


@dataclass(slots=True)
class Outcome:
    """What a run showed. `endless`: the operation at which it was stopped, because it would not
    end; `failure`: what the simulator itself stumbled over; `same`: the launch wrote what the
    unaltered kernel writes."""

    findings: list[Report]
    endless: Op | None = None
    failure: str = ""
    same: bool = True

    @property
    def code(self) -> str:
        """The code of the first finding; `steps` for a run without an end."""
        return self.findings[0].code if self.findings else "steps" if self.endless else ""


class Trial:
    """One launch. `reached` holds the numbers of the operations that it executes, `findings` what
    is found in the unaltered kernel."""

    def __init__(self, name: str, call: Call, seeds: int = 1, first_seed: int = 0) -> None:
        self.name, self.call = name, call
        self.seeds = range(first_seed, first_seed + seeds)
        launcher, arguments = call.launcher, call.arguments
        variant = call.kernel.variant(arguments, launcher.warps, launcher.cluster)
        launcher.check_ways(variant, arguments)
        assert isinstance(variant, SimVariant)
        # What launches keep for each other is this one's own: a mutant may leave it in any state.
        arguments = variant.kept.behind(arguments, prod(launcher.grid), launcher.stream, own=True)
        self.kernel: Kernel = variant.kernel
        self._values = variant.arguments(arguments)
        views = [v for v in arguments.values if hasattr(v, "host")]
        self._arrays: list[np.ndarray] = [v.host for v in views]
        self._before = [array.copy() for array in self._arrays]
        self._written: list[np.ndarray] = [arguments.values[i].host for i in variant.written]
        self.reached: set[int] = set()
        self.findings: list[Report] = []
        self.steps = 0
        self._after: list[np.ndarray] = []
        self._measure()

    def _measure(self) -> None:
        """Run the kernel itself."""
        numbers = {op: i for i, op in enumerate(walk(self.kernel.body))}
        for seed in self.seeds:
            watch = Watch()
            outcome = self._run(self.kernel, watch, seed)
            self.findings += outcome.findings
            self.reached |= {numbers[op] for op in watch.reached()}
            self.steps = max(self.steps, watch.steps)
        self._after = [array.copy() for array in self._written]

    def run(self, kernel: Kernel, *, first: bool = True, weaker: Weaker | None = None) -> Outcome:
        """Run an altered kernel on all schedules, until one of them shows something."""
        outcome = Outcome([])
        for seed in self.seeds:
            watch = Watch(first, _TIMES * self.steps + _MORE, weaker)
            outcome = self._run(kernel, watch, seed)
            if outcome.code or outcome.failure:
                break
        same = zip(self._written, self._after, strict=True)
        outcome.same = all(_equal(a, b) for a, b in same)
        return outcome

    def _run(self, kernel: Kernel, watch: Watch, seed: int) -> Outcome:
        for array, held in zip(self._arrays, self._before, strict=True):
            if array.flags.writeable:
                array[...] = held
        launcher = self.call.launcher
        if 0 in launcher.grid:
            return Outcome([])
        together = launcher.ways.cooperative
        try:
            result = _Program(kernel, watch).run(
                launcher.grid, self._values, checked=True, seed=seed, together=together
            )
        except Stopped as stopped:
            return Outcome(list(stopped.findings), stopped.where)
        except Exception as why:  # a fault of the simulator is no verdict about the kernel
            return Outcome([], failure=f"{type(why).__name__}: {why}")
        return Outcome(list(result.findings))


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.tobytes() == other.tobytes()


def keys(findings: Sequence[Report]) -> dict[Any, Report]:
    """Findings by what they say of the source: code and lines."""
    found: dict[Any, Report] = {}
    for report in findings:
        lines = frozenset((s.file, s.line, s.column) for s in report.spans)
        found.setdefault((report.code, lines), report)
    return found
