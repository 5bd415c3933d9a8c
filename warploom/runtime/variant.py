"""Compiled variants in memory, one kind a device, and launches with fixed arguments.

A variant knows how its device takes arguments; what they are was checked before (`arguments`).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from warploom.base.errors import error
from warploom.base.target import Target, target_of
from warploom.ir.kernel import Kept, Kernel, TensorMap
from warploom.runtime import compile as compiler
from warploom.runtime import driver, modules, tensor_maps
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM, View
from warploom.runtime.graph import recording
from warploom.runtime.grid import ALONE, ORDINARY, Grid, Ways
from warploom.runtime.kept import KeptOnGpu, KeptOnHost
from warploom.runtime.packing import Pack
from warploom.runtime.stats import counters
from warploom.sim.arguments import TensorArg
from warploom.sim.explore.explore import Explored, explore
from warploom.sim.program import Program, RunResult


class SimVariant:
    """A program of the simulator."""

    __slots__ = ("dependent", "kept", "kernel", "program", "together", "written")

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel = kernel
        self.program = program
        self.written = kernel.written
        self.dependent = kernel.dependent
        self.together = compiler.waits_on_grid(kernel)
        self.kept = KeptOnHost(kernel.kept)

    def arguments(self, arguments: Arguments) -> list[Any]:
        """The arguments as the program takes them."""
        out: list[Any] = []
        for value, strides in zip(arguments.values, arguments.strides, strict=True):
            if isinstance(value, View):
                assert value.host is not None
                assert strides is not None
                out.append(TensorArg(value.host, strides))
            else:
                out.append(value)
        return out

    def launch(
        self, grid: Grid, arguments: Arguments, stream: int | None, ways: Ways = ORDINARY
    ) -> None:
        """Run all blocks and return when they are done: launches never overlap here."""
        tensor_maps.check(self.kernel.maps, arguments)
        counters.simulated_launches += 1
        _say_once()
        with self.kept.whole(arguments.values):
            self.program.run(grid, self.arguments(arguments), together=ways.cooperative)

    def bound(
        self, grid: Grid, arguments: Arguments, stream: int | None, ways: Ways = ORDINARY
    ) -> BoundSim:
        """The launch with its arguments prepared."""
        tensor_maps.check(self.kernel.maps, arguments)
        return BoundSim(self, grid, arguments, ways)

    def check(
        self,
        grid: Grid,
        arguments: Arguments,
        seed: int,
        ways: Ways = ORDINARY,
        schedule: str = "",
    ) -> RunResult:
        """Run all blocks in checked mode, in an order drawn by a seed and, perhaps, a schedule that
        is named."""
        tensor_maps.check(self.kernel.maps, arguments)
        counters.simulated_launches += 1
        given, together = self.arguments(arguments), ways.cooperative
        with self.kept.whole(arguments.values):
            result = self.program.run(
                grid, given, checked=True, seed=seed, schedule=schedule, together=together
            )
            if result.findings:
                self.kept.clear(arguments.values)
        return result

    def explore(
        self, grid: Grid, arguments: Arguments, ways: Ways, limit: int, reduced: bool
    ) -> Explored:
        """Visit all interleavings of a launch."""
        tensor_maps.check(self.kernel.maps, arguments)
        counters.simulated_launches += 1
        given, together = self.arguments(arguments), ways.cooperative
        return explore(self.program, grid, given, together=together, limit=limit, reduced=reduced)


class BoundSim:
    """A simulated launch with fixed arguments."""

    __slots__ = ("_arguments", "_grid", "_held", "_together", "_variant", "place", "source")

    def __init__(self, variant: SimVariant, grid: Grid, arguments: Arguments, ways: Ways) -> None:
        self._together = ways.cooperative
        self._variant = variant
        self._grid = grid
        self._arguments = variant.arguments(arguments)
        self._held = arguments
        self.place = SIM
        self.source = ""

    def __call__(self) -> None:
        """Launch, or be recorded where a graph is being recorded."""
        recorder = recording()
        if recorder is not None:
            recorder.add(self)
        else:
            self.run(None)

    def run(self, stream: int | None) -> None:
        """Launch; a stream has no meaning here."""
        counters.simulated_launches += 1
        variant = self._variant
        with variant.kept.whole(self._held.values):
            variant.program.run(self._grid, self._arguments, together=self._together)


class GpuVariant:
    """A loaded cubin."""

    __slots__ = (
        "_packs",
        "dependent",
        "image",
        "kept",
        "layout",
        "loaded",
        "maps",
        "together",
        "written",
    )

    def __init__(self, image: compiler.Image, device: int, cluster: Grid = ALONE) -> None:
        self.image = image
        self.layout = image.layout
        self.maps = tuple(TensorMap.parse(text) for text in image.layout.maps)
        self.loaded = modules.load(
            image.cubin, image.entry, image.shared_bytes, device, image.threads, cluster
        )
        self.written = image.written
        self.dependent = image.dependent
        self.together = image.together
        self.kept = KeptOnGpu(tuple(Kept.parse(text) for text in image.kept), device)
        # Packs that no launch uses right now: taking and giving back is atomic in Python.
        self._packs: list[Pack] = []

    def launch(
        self, grid: Grid, arguments: Arguments, stream: int | None, ways: Ways = ORDINARY
    ) -> None:
        """Launch on a stream, by default the one that the arguments' library works on."""
        device = int(arguments.place[4:])
        if stream is None:
            stream = driver.current_stream(device, arguments.source)
        try:
            pack = self._packs.pop()
        except IndexError:
            pack = Pack(self.layout)
        words = self.fill(pack, arguments)
        modules.launch(self.loaded, device, stream, grid, self.image.threads, words, ways)
        self._packs.append(pack)

    def fill(self, pack: Pack, arguments: Arguments) -> int:
        """Pack the arguments of a launch; returns the address of the array of pointers."""
        words = self.layout.values(arguments.values, arguments.strides)
        maps = tensor_maps.encoded(self.maps, arguments) if self.maps else ()
        return pack.fill(words, maps)

    def bound(
        self, grid: Grid, arguments: Arguments, stream: int | None, ways: Ways = ORDINARY
    ) -> BoundGpu:
        """The launch with its arguments packed."""
        return BoundGpu(self, grid, arguments, stream, ways)


class BoundGpu:
    """A GPU launch with fixed arguments; keeps the arrays alive."""

    __slots__ = (
        "_device",
        "_grid",
        "_keep",
        "_loaded",
        "_pack",
        "_stream",
        "_threads",
        "_ways",
        "_words",
        "place",
        "source",
    )

    def __init__(
        self,
        variant: GpuVariant,
        grid: Grid,
        arguments: Arguments,
        stream: int | None,
        ways: Ways,
    ) -> None:
        self.place = arguments.place
        self.source = arguments.source
        self._device = int(arguments.place[4:])
        self._grid = grid
        self._keep = arguments
        self._loaded = variant.loaded
        self._pack = Pack(variant.layout)
        self._words = variant.fill(self._pack, arguments)
        self._stream = stream
        self._ways = ways
        self._threads = variant.image.threads
        if self._device not in self._loaded.prepared:
            self._loaded.prepare(self._device)

    def __call__(self) -> None:
        """Launch, or be recorded where a graph is being recorded."""
        recorder = recording()
        if recorder is not None:
            recorder.add(self)
        else:
            self.run(None)

    def run(self, stream: int | None) -> None:
        """Launch on a stream, by default the launcher's, else the current one."""
        if stream is None:
            stream = self._stream
            if stream is None:
                stream = driver.current_stream(self._device, self.source)
        held = (self._loaded, self._device, stream, self._grid, self._threads, self._words)
        modules.launch(*held, self._ways)


class BoundNothing:
    """A launch of an empty grid: checked like any other, and nothing runs."""

    __slots__ = ("place", "source")

    def __init__(self, arguments: Arguments) -> None:
        self.place = arguments.place
        self.source = arguments.source

    def __call__(self) -> None:
        """Be recorded where a graph is being recorded."""
        recorder = recording()
        if recorder is not None:
            recorder.add(self)

    def run(self, stream: int | None) -> None:
        """Do nothing."""


Variant = SimVariant | GpuVariant
Bound = BoundSim | BoundGpu | BoundNothing


def build(request: compiler.Request, place: str) -> Variant:
    """Compile a request for a device; raises CompileError or LaunchError."""
    if place == SIM:
        return SimVariant(*compiler.sim_program(request))
    if request.stops:
        hint = "make the arguments with NumPy, or wl.to_numpy(x)"
        raise error("H033", f"`{request.name}` cannot stop on a GPU", hint=hint)
    device = int(place[4:])
    image = compiler.gpu_image(request, target_for(device))
    return GpuVariant(image, device, request.cluster)


def target_for(device: int) -> Target:
    """What to compile for on a GPU; raises LaunchError where it is too old or too new."""
    facts = driver.facts(device)
    found = target_of(facts.capability)
    if found is None:
        major, minor = facts.capability
        text = f"GPU {device} ({facts.name}, compute capability {major}.{minor}) is not supported"
        hint = "kernels run on compute capability 8.0 to 9.0, and on the simulator anywhere"
        raise error("H020", text, hint=hint)
    return found


_told = False


def _say_once() -> None:
    """Where a GPU seems usable, say once that a launch was simulated."""
    global _told
    if _told:
        return
    _told = True
    if not os.environ.get("WARPLOOM_QUIET") and driver.is_likely():
        print(
            "warploom: these arrays are in host memory, so the launch runs on the simulator; "
            "wl.to_device(x) puts them on the GPU (WARPLOOM_QUIET=1 silences this)",
            file=sys.stderr,
        )
