"""Boxes through the tensor copy engine: one helper a rank, cache policy and form."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault
from warploom.ir.op import Value
from warploom.ir.ops import tma as ops
from warploom.ir.ops.descriptor import WORDS


@emits(ops.LoadBox)
def load_box(out: Emitter, op: ops.LoadBox) -> None:
    rank = len(op.coordinates)
    multicast = op.multicast is not None
    name = async_helpers.load_box(out.prelude, rank, multicast, op.cache)
    arguments = [out.scalar(op.address), _map(out, op), *map(out.scalar, op.coordinates)]
    arguments.append(out.scalar(op.barrier))
    if op.multicast is not None:
        arguments.append(out.scalar(op.multicast))
    out.lines.add(f"{name}({', '.join(arguments)});")


@emits(ops.StoreBox)
def store_box(out: Emitter, op: ops.StoreBox) -> None:
    name = async_helpers.store_box(out.prelude, len(op.coordinates), op.reduce, op.cache)
    arguments = [_map(out, op), *map(out.scalar, op.coordinates), out.scalar(op.address)]
    out.lines.add(f"{name}({', '.join(arguments)});")


@emits(ops.PrefetchBox)
def prefetch_box(out: Emitter, op: ops.PrefetchBox) -> None:
    name = async_helpers.prefetch_box(out.prelude, len(op.coordinates), op.cache)
    arguments = [_map(out, op), *map(out.scalar, op.coordinates)]
    out.lines.add(f"{name}({', '.join(arguments)});")


@emits(ops.PrefetchMap)
def prefetch_map(out: Emitter, op: ops.PrefetchMap) -> None:
    name = async_helpers.use(out.prelude, "prefetch_map")
    out.lines.add(f"{name}({map_of(out, op.map)});")


@emits(ops.Commit)
def commit(out: Emitter, op: ops.Commit) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'tma_commit')}();")


@emits(ops.Wait)
def wait(out: Emitter, op: ops.Wait) -> None:
    name = async_helpers.use(out.prelude, "tma_wait_read" if op.reads else "tma_wait")
    out.lines.add(f"{name}<{op.pending}>();")


def _map(out: Emitter, op: ops.LoadBox | ops.StoreBox | ops.PrefetchBox) -> str:
    """The descriptor of a copy: the launch's, or one that the kernel has made."""
    if op.room is None or op.number is None:
        return map_of(out, op.map)
    return made(out, op.room, op.number)


def made(out: Emitter, room: Value, number: Value) -> str:
    """A descriptor of the kernel."""
    return f"*(const TensorMap*)({descriptor_at(out, room, number)})"


def descriptor_at(out: Emitter, room: Value, number: Value) -> str:
    """Where a descriptor of the kernel lies."""
    return f"{out.place(room).root} + {WORDS} * {out.scalar(number)}"


def map_of(out: Emitter, number: int) -> str:
    """The name of a descriptor that the launch brings."""
    if not 0 <= number < len(out.maps):
        raise Fault(f"kernel {out.kernel.name} has no tensor map {number}")
    return out.maps[number]
