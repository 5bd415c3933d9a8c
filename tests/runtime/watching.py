"""Debug builds as a GPU gets them, run on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from warploom.base.diagnostics import Report
from warploom.base.errors import CheckError
from warploom.base.target import SM_90A
from warploom.ir import watch as words
from warploom.ir.kernel import Kernel
from warploom.passes.insert_watch import rings_of
from warploom.runtime.compile import machine_kernel
from warploom.runtime.launch import Call
from warploom.runtime.variant import SimVariant
from warploom.sim.arguments import TensorArg
from warploom.sim.program import prepare


@dataclass
class Ended:
    """How a launch ended: what the simulator raised, and the notes of a watched one."""

    machine: Kernel
    raised: Report | None
    notes: np.ndarray


def machine_of(call: Call, *, watched: bool = True, delays: int = -1) -> Kernel:
    """The kernel of a call as a device runs it."""
    return machine_kernel(replace(call.request, watched=watched, delays=delays), SM_90A)


def notes_for(machine: Kernel, blocks: int) -> np.ndarray:
    """Empty notes for so many blocks."""
    size = words.words(machine.warps, rings_of(machine)[1])
    return np.zeros(words.HEAD + blocks * size, np.int64)


def run(
    call: Call, *, watched: bool = True, delays: int = -1, seed: int = 0, blocks: int = -1
) -> Ended:
    """Run a call; `blocks` of them have notes, all by default."""
    machine = machine_of(call, watched=watched, delays=delays)
    grid = call.launcher.grid
    notes = notes_for(machine, prod(grid) if blocks < 0 else blocks)
    program = prepare(machine)
    variant = SimVariant(machine, program)
    given = variant.arguments(variant.kept.behind(call.arguments, prod(grid), None, own=True))
    if watched:
        given.append(TensorArg(notes))
    try:
        program.run(grid, given, seed=seed, together=call.launcher.ways.cooperative)
    except CheckError as error:
        return Ended(machine, error.reports[0], notes)
    return Ended(machine, None, notes)
