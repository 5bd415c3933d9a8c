"""Inline PTX through the model that the kernel gave with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.base.errors import error
from warploom.ir.ops import ptx
from warploom.ir.ops.registers import regs_of
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.values import carrier, dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(ptx.ComputeRegisters, ptx.ActRegisters)
def run(t: Translator, op: ptx.ComputeRegisters | ptx.ActRegisters) -> Step:
    model = ptx.MODELS.get(op.model)
    if model is None:
        raise error(
            "K001",
            f"inline PTX has no model, so the simulator cannot run it: `{op.text.strip()}`",
            op.loc,
            label="this PTX",
            hint="give `model=`, a function that does the same to NumPy arrays",
        )
    inputs = [(t.slot(v), regs_of(v).dtype) for v in op.inputs]
    targets = [(t.slot(r), dtype) for r, dtype in zip(op.results, op.outputs, strict=True)]

    def step(s: Slots, m: Batch) -> None:
        arrays = np.broadcast_arrays(*(dense(s[a]).view(d.numpy) for a, d in inputs))
        given = model(*arrays)
        results = given if isinstance(given, tuple) else (given,) if targets else ()
        if len(results) != len(targets):
            raise TypeError(f"the model of `{op.text}` gave {len(results)} of {len(targets)}")
        for (d, dtype), result in zip(targets, results, strict=True):
            s[d] = _result(result, dtype, arrays[0].shape)

    return step


def _result(given: Any, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    made = np.array(np.broadcast_to(np.asarray(given), shape)).astype(dtype.numpy)
    return made.view(carrier(dtype))
