"""Exchange among the lanes of a warp."""

from __future__ import annotations

from warploom.codegen import access_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of
from warploom.ir.ops import lanes as ops


@emits(ops.Shuffle)
def shuffle(out: Emitter, op: ops.Shuffle) -> None:
    name = access_helpers.shuffle(out.prelude, dtype_of(op.value), "idx")
    out.elementwise(op.result, (op.value, op.lane), lambda x, lane: f"{name}({x}, {lane})")


@emits(ops.Ballot)
def ballot(out: Emitter, op: ops.Ballot) -> None:
    out.prelude.use("vote_ballot")
    out.elementwise(op.result, (op.value,), lambda x: f"vote_ballot({x})", "mask")


@emits(ops.ShuffleXor)
def shuffle_xor(out: Emitter, op: ops.ShuffleXor) -> None:
    name = access_helpers.shuffle(out.prelude, dtype_of(op.value), "xor")
    out.elementwise(op.result, (op.value,), lambda x: f"{name}({x}, {op.mask})")
