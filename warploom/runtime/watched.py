"""Launches of debug builds on a GPU: they come back, and tell of a deadlock as the simulator does.
How waits give up is the business of `passes.insert_watch`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from warploom.base.diagnostics import Report
from warploom.base.errors import LaunchError, error_of
from warploom.ir import watch as words
from warploom.ir.kernel import Kernel as MachineKernel
from warploom.passes.insert_watch import rings_of
from warploom.runtime import arguments as binding
from warploom.runtime import compile as compiler
from warploom.runtime import driver, memory, places
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import View, read
from warploom.runtime.variant import target_for
from warploom.sim.stopped import report_of

if TYPE_CHECKING:
    from warploom.runtime.launch import Launcher

# Bytes that notes may take; blocks behind are only watched.
_MOST_BYTES = 256 << 20


def launch(launcher: Launcher, held: Arguments) -> None:
    """Launch the debug build of a kernel and wait for it.

    Raises CheckError D001 where a wait took too long: who waits where, and for what. The GPU stays
    usable unless warps had to be stopped, which the report says.
    """
    kernel = launcher.kernel
    device = places.gpu_number(held.place)
    request = kernel.request(held, launcher.warps, launcher.cluster, watched=True)
    built = kernel.variant(held, launcher.warps, launcher.cluster, watched=True)
    machine = compiler.machine_kernel(request, target_for(device))
    launcher.check_ways(built, held)
    blocks = prod(launcher.grid)
    if not blocks:
        return
    # What launches hand on would be left inside a round.
    held = built.kept.behind(held, blocks, launcher.stream, own=True)
    section = words.words(machine.warps, rings_of(machine)[1])
    sections = min(blocks, max(_MOST_BYTES // (8 * section), 1))
    notes = np.zeros(words.HEAD + sections * section, np.int64)
    notes[words.LIMIT] = int(kernel.debug * 1e9)
    with _copy(device, 1 + section) as (address, copy):
        notes[words.COPY] = address
        buffer = memory.to_device(notes, held.place)
        given = with_notes(held, read(buffer, "watch"))
        binding.check_written(request.name, given, built.written)
        built.launch(launcher.grid, given, launcher.stream, launcher.ways)
        caught = False
        try:
            driver.synchronize(device)
            notes = memory.to_numpy(buffer)
        except LaunchError:
            if not copy[0]:
                raise  # not stopped by the watch: what broke it says the driver
            caught, notes = True, _from_copy(notes, copy, section)
    found = told(machine, launcher.grid, notes, kernel.debug, launcher.ways.cooperative, caught)
    if found is not None:
        raise error_of([found])


def with_notes(held: Arguments, view: View) -> Arguments:
    """The arguments with the notes behind them."""
    return replace(
        held,
        names=(*held.names, "watch"),
        values=[*held.values, view],
        strides=[*held.strides, (1,)],
    )


def told(
    machine: MachineKernel,
    grid: tuple[int, int, int],
    notes: np.ndarray,
    seconds: float,
    together: bool,
    caught: bool,
) -> Report | None:
    """The report of a launch that stood still, with what only a GPU has to say."""
    found = report_of(machine, grid, notes, together=together, caught=caught)
    if found is None:
        return None
    how = f"a wait took more than {seconds:g} seconds on the GPU, and the launch was left"
    if caught:
        how = (
            f"a wait took more than {seconds:g} seconds on the GPU, and warps that did not leave "
            "were stopped: this process cannot use the GPU any more"
        )
    return replace(found, notes=(*found.notes, how))


def _from_copy(notes: np.ndarray, copy: np.ndarray, section: int) -> np.ndarray:
    """The notes as far as the block saved them that stopped the launch."""
    saved = notes.copy()
    saved[words.STOPPED] = 1
    at = words.HEAD + (int(copy[0]) - 1) * section
    saved[at : at + section] = copy[1:]
    return saved


@contextmanager
def _copy(device: int, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Words in host memory that the GPU can write: their address there, and the words."""
    address = driver.allocate_shared(device, 8 * count)
    held = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))
    held[:] = 0
    try:
        yield address, held
    finally:
        driver.free_shared(device, address)
