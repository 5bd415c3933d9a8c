"""Launchers and calls: a kernel with its grid and options, without arguments or with them."""

from __future__ import annotations

import copy
import statistics
import sys
import time
from math import prod
from typing import TYPE_CHECKING, Any

from warploom.base.errors import Error, error, error_of
from warploom.frontend.stops import Stop
from warploom.runtime import arguments as binding
from warploom.runtime import compile as compiler
from warploom.runtime import driver, places, streams
from warploom.runtime import trace as tracing
from warploom.runtime import watched as watching
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM
from warploom.runtime.findings import EXPLORED, Finding, Findings, merge
from warploom.runtime.graph import recording, stream_handle
from warploom.runtime.grid import ORDINARY, Grid, Ways, parse, parse_cluster
from warploom.runtime.trace import Trace
from warploom.runtime.variant import Bound, BoundNothing, SimVariant, Variant, target_for
from warploom.sim.actors import SCHEDULES, schedule_of
from warploom.sim.explore.search import LIMIT

if TYPE_CHECKING:
    from warploom.runtime.jit import Kernel


class Launcher:
    """A kernel with a grid and launch options. Call it with the kernel's arguments.

    `(…)` launches, `.bound(…)` prepares a launch for replay, `.call(…)` holds one for tools,
    `.check(…)` runs it checked on the simulator.
    """

    __slots__ = ("cluster", "grid", "kernel", "stream", "warps", "ways")

    def __init__(
        self,
        kernel: Kernel,
        grid: Any,
        warps: int,
        stream: Any,
        cluster: Any = None,
        ways: Ways = ORDINARY,
    ) -> None:
        self.kernel = kernel
        self.grid: Grid = parse(grid)
        self.cluster = parse_cluster(cluster, self.grid)
        self.warps = warps
        self.ways = ways
        self.stream = None if stream is None else stream_handle(stream)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch: on the simulator the work is done on return, on a GPU it is in the stream."""
        try:
            recorder = recording()
            if self.kernel.debug and recorder is None and self._watch(args, kwargs):
                return
            arguments, variant = self._prepare(args, kwargs, own=recorder is not None)
            if recorder is not None:
                recorder.add(self._bind(arguments, variant))
            elif 0 in self.grid:
                return
            elif self.kernel.trace:
                print(self.call(*args, **kwargs).trace().text(), file=sys.stderr)
            elif self.kernel.debug and isinstance(variant, SimVariant):
                seed = self.kernel.delays or 0
                found = _findings(
                    self.kernel.name, variant.check(self.grid, arguments, seed, self.ways), seed
                )
                if not found.clean:
                    raise error_of_findings(found)
            else:
                variant.launch(self.grid, arguments, self.stream, self.ways)
        except Error as report:
            # The report names the place; the way through the compiler would only hide it. (What
            # caused a report, such as a fault of the compiler itself, stays attached.)
            raise report.with_traceback(None) from report.__cause__

    def _watch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Launch a debug build where the arguments are on a GPU; whether they are."""
        arguments = binding.bind(self.kernel.name, self.kernel.signature, args, kwargs)
        if arguments.place == SIM or self.kernel.trace:
            return False
        watching.launch(self, arguments)
        return True

    def bound(self, *args: Any, **kwargs: Any) -> Bound:
        """The launch with these arguments, compiled and packed: `b()` is the cheapest replay.

        The arrays are held; their values at the replay count. A bound launch follows torch's
        current stream at each call unless the launcher names a stream.
        """
        try:
            arguments, variant = self._prepare(args, kwargs, own=True)
            return self._bind(arguments, variant)
        except Error as report:
            raise report.with_traceback(None) from report.__cause__

    def call(self, *args: Any, **kwargs: Any) -> Call:
        """The launch with these arguments, not yet made."""
        return Call(self, args, kwargs)

    def check(self, *args: Any, seeds: int = 1, **kwargs: Any) -> Findings:
        """Run on the simulator in checked mode; what was found. Outputs are written as usual."""
        return self.call(*args, **kwargs).check(seeds=seeds)

    def _bind(self, arguments: Arguments, variant: Variant) -> Bound:
        if 0 in self.grid:
            return BoundNothing(arguments)
        return variant.bound(self.grid, arguments, self.stream, self.ways)

    def _prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], own: bool = False
    ) -> tuple[Arguments, Variant]:
        """The arguments and the variant. What launches keep for each other is that of the stream,
        or the launch's `own`, since replays may run beside anything."""
        kernel = self.kernel
        arguments = binding.bind(kernel.name, kernel.signature, args, kwargs)
        variant = kernel.variant(arguments, self.warps, self.cluster)
        given = variant.kept.behind(arguments, prod(self.grid), self.stream, own)
        binding.check_written(kernel.name, given, variant.written)
        self.check_ways(variant, arguments)
        return given, variant

    def check_ways(self, variant: Variant, arguments: Arguments) -> None:
        """Refuse a launch that the kernel cannot stand."""
        name = self.kernel.name
        if self.ways.pdl and not variant.dependent:
            text = f"pdl=True, and `{name}` never waits for the launch before it"
            hint = "add `wl.wait_for_previous()` above its first access to a tensor"
            raise error("H032", text, hint=hint)
        if variant.together and not self.ways.cooperative and prod(self.grid) > 1:
            text = f"blocks of `{name}` wait for each other, and may not run at the same time"
            request = self.kernel.request(arguments, self.warps, self.cluster)
            note = f"{prod(self.grid)} blocks; a launch may begin one when another has ended"
            raise error(
                "H040",
                text,
                compiler.place_of_wait(request),
                label="for another block",
                notes=(note,),
                hint=f"{name}.launch(grid, cooperative=True)",
            )


class Call:
    """A launch with its arguments that has not been made: what examples return and tools use."""

    __slots__ = ("args", "kwargs", "launcher")

    def __init__(self, launcher: Launcher, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.launcher = launcher
        self.args = args
        self.kwargs = kwargs

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.launcher.kernel

    @property
    def arguments(self) -> Arguments:
        """The arguments, matched and classified; raises LaunchError."""
        return binding.bind(self.kernel.name, self.kernel.signature, self.args, self.kwargs)

    @property
    def request(self) -> compiler.Request:
        """What the variant of this launch is compiled from."""
        return self.kernel.request(self.arguments, self.launcher.warps, self.launcher.cluster)

    def stopping(self, *stops: Stop) -> Call:
        """The same launch with a prompt before the statements at `(file, line)` pairs."""
        launcher = copy.copy(self.launcher)
        launcher.kernel = launcher.kernel.stopping(*stops)
        return Call(launcher, self.args, self.kwargs)

    def run(self) -> None:
        """Make the launch; on a GPU wait for it."""
        self.launcher(*self.args, **self.kwargs)
        place = self.arguments.place
        if place != SIM:
            driver.synchronize(places.gpu_number(place))

    def check(self, seeds: int = 1, first_seed: int = 0, schedule: str = "") -> Findings:
        """Run in checked mode once a seed, on the simulator; what was found. Seed 0 is the default
        schedule, the others differ from it and replay exactly; `schedule` names the one of all
        seeds: late, early, last, priorities or random. Each run begins with what the arrays held at
        first."""
        if schedule and schedule not in SCHEDULES:
            hint = f"schedules: {', '.join(SCHEDULES)}"
            raise error("H021", f"there is no schedule `{schedule}`", hint=hint)
        counted("seeds", seeds, 1)
        counted("first_seed", first_seed, 0)
        kernel, launcher = self.kernel, self.launcher
        arguments, variant = self._simulated()
        if 0 in launcher.grid:
            return Findings(kernel.name, seeds=seeds)
        runs = []
        written = [arguments.values[index].host for index in variant.written]
        before = [array.copy() for array in written]
        for seed in range(first_seed, first_seed + seeds):
            for array, held in zip(written, before, strict=True):
                array[...] = held
            result = variant.check(launcher.grid, arguments, seed, launcher.ways, schedule)
            runs.append(_findings(kernel.name, result, seed, schedule))
        return merge(runs)

    def explore(self, limit: int = LIMIT, reduced: bool = True) -> Findings:
        """Visit all interleavings of the launch's synchronisation by the hardware's rules, up to
        `limit` distinct states, on the simulator; what was found, with the numbers in
        `bounds["explore"]`.

        One of each class of equivalent interleavings, or every one where not `reduced`. Arrays are
        left as one run leaves them.
        """
        counted("limit", limit, 1)
        kernel, launcher = self.kernel, self.launcher
        arguments, variant = self._simulated()
        if 0 in launcher.grid:
            return Findings(kernel.name)
        explored = variant.explore(launcher.grid, arguments, launcher.ways, limit, reduced)
        found = [Finding(report, 0, EXPLORED) for report in explored.findings]
        made = Findings(kernel.name, steps=explored.steps, found=found)
        made.bounds["explore"] = explored.json()
        made.words = explored.words()
        return made

    def _simulated(self) -> tuple[Arguments, SimVariant]:
        """The launch prepared for the simulator; raises LaunchError where its arrays are not
        there."""
        arguments, variant = self.launcher._prepare(self.args, self.kwargs)
        if not isinstance(variant, SimVariant):
            hint = "make the arguments with NumPy, or wl.to_numpy(x)"
            raise error("H014", "checked runs take place on the simulator", hint=hint)
        return arguments, variant

    def trace(self, blocks: int = 4, events: int = 4096) -> Trace:
        """Make the launch while its roles note what they do and when; the events of the first
        `blocks` blocks, up to `events` of each role.

        Noting takes cycles of the thread that notes. Raises what the launch raises.
        """
        return tracing.trace(self, blocks, events)

    def text(self, level: str, arch: str = "") -> str:
        """The compiled kernel at a level: tile, roles, machine, cuda, ptx or sass.

        Compiled for `arch`, by default for the GPU of the arguments, for sm_90a where they are on
        the simulator. Needs no driver. Raises LaunchError H021 for another level or architecture.
        """
        if level not in compiler.LEVELS:
            known = ", ".join(compiler.LEVELS)
            raise error("H021", f"there is no level `{level}`", hint=f"levels: {known}")
        place = self.arguments.place
        if arch:
            target = compiler.target_named(arch)
        elif place == SIM:
            target = compiler.targets.DEFAULT
        else:
            target = target_for(places.gpu_number(place))
        return compiler.text(self.request, level, target)

    def bench(self, rounds: int = 20, repeats: int = 10) -> float:
        """Median seconds of one launch, over `rounds` rounds of `repeats` launches each.

        On a GPU measured between two events of the stream, so without the cost of Python where the
        kernel takes longer than that.
        """
        counted("rounds", rounds, 1)
        counted("repeats", repeats, 1)
        bound = self.launcher.bound(*self.args, **self.kwargs)
        bound()
        if bound.place == SIM:
            samples = [_timed(bound) for _ in range(min(rounds, 5))]
            return statistics.median(samples)
        device = places.gpu_number(bound.place)
        stream = driver.current_stream(device, bound.source)
        driver.synchronize(device)
        samples = []
        for _ in range(rounds):
            start, end = streams.Event(device), streams.Event(device)
            start.record(stream)
            for _ in range(repeats):
                bound.run(stream)
            end.record(stream)
            samples.append(end.seconds_since(start) / repeats)
        return statistics.median(samples)


def counted(name: str, value: Any, least: int) -> None:
    """Refuse a count that is none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        hint = f"give a whole number from {least} up"
        raise error("H021", f"{name}={value!r:.80} is no count", hint=hint)


def _timed(bound: Bound) -> float:
    start = time.perf_counter()
    bound()
    return time.perf_counter() - start


def _findings(kernel: str, result: Any, seed: int, schedule: str = "") -> Findings:
    name = schedule or schedule_of(seed)
    found = [Finding(report, seed, name) for report in result.findings]
    return Findings(kernel, steps=result.steps, found=found)


def error_of_findings(found: Findings) -> Exception:
    """The exception of a debug launch that found something."""
    return error_of([f.report for f in found])
