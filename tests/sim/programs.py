"""Kernels as programs of the simulator, without the runtime: with and without assigned storages."""

from typing import Any

from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel
from warploom.ir.op import Stage
from warploom.ir.parser import parse_kernel
from warploom.passes.assign_storage import assign_storage
from warploom.passes.pipeline import PIPELINE
from warploom.sim.program import Program, prepare


def lowered(call: Any, *, storages: bool = True) -> Kernel:
    """The machine kernel of a call; without `storages` its yields move carried values."""
    kernel = parse_kernel(call.text("tile"))
    for stage, step in PIPELINE:
        if step is assign_storage and not storages:
            continue
        kernel.stage = max(kernel.stage, stage, key=lambda s: s.value)
        step(kernel, SM_90A)
    kernel.stage = Stage.MACHINE
    return kernel


def program_of(call: Any, *, storages: bool = True) -> Program:
    """The program of a call's kernel."""
    return prepare(lowered(call, storages=storages))
