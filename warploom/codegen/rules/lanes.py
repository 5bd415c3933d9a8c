"""Exchange among the lanes of a warp."""

from __future__ import annotations

from warploom.codegen import access_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of
from warploom.ir.ops import lanes as ops


@emits(ops.ShuffleXor)
def shuffle_xor(out: Emitter, op: ops.ShuffleXor) -> None:
    name = access_helpers.shuffle_xor(out.prelude, dtype_of(op.value))
    out.elementwise(op.result, (op.value,), lambda x: f"{name}({x}, {op.mask})")
