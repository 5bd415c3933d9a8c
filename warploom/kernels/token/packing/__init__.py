"""Weights in the order in which the token kernel reads them: made once, when a model is loaded."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.token.packing import kernel
from warploom.kernels.token.plan import Matrix, Plan


def pack(plan: Plan, matrix: Matrix, weights: Any, packed: Any, layer: int = 0) -> None:
    """Write the steps of a matrix [rows, columns] of a layer to their place in `packed`
    [plan.total_steps, plan.step_elements]; rows that fill up its last band become zero.

    Raises ShapeError T201, T202.
    """
    arguments.sizes("pack", weights=(weights, "rows columns"), packed=(packed, "steps elements"))
    arguments.require(
        tuple(weights.shape) == (matrix.rows, matrix.columns),
        "pack",
        f"`weights` is {weights.shape[0]} × {weights.shape[1]}",
        f"the plan has {matrix.rows} × {matrix.columns}",
    )
    arguments.require(
        tuple(packed.shape) == (plan.total_steps, plan.step_elements),
        "pack",
        f"`packed` is {packed.shape[0]} × {packed.shape[1]}",
        f"the plan has {plan.total_steps} × {plan.step_elements}",
    )
    dtype = arguments.dtype_name(packed)
    arguments.dtypes("pack", (dtype,), weights=weights)
    arguments.apart("pack", packed, weights=weights)
    kernel.pack.launch((matrix.total, plan.warps))(
        weights,
        packed,
        layer * plan.layer_steps + matrix.base,
        HIGH=matrix.high,
        WIDE=matrix.wide,
        STEPS=matrix.steps,
    )
