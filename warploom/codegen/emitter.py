"""Prints a kernel of the machine stage as one self-contained CUDA C++ text. The operations are
printed by the rules; here stand the signature, the shared memory and the order of the parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warploom.base.target import Target
from warploom.codegen import (
    async_helpers,
    rules,  # noqa: F401  (registers them)
)
from warploom.codegen.c_types import memory_type
from warploom.codegen.lines import without_places
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import UNKNOWN, Loc, Stage
from warploom.ir.ops import bulk, descriptor, global_memory, watch
from warploom.ir.ops.debug import Record
from warploom.ir.ops.flagged import Put
from warploom.ir.ops.flags import Post
from warploom.ir.ops.shared_memory import BufferOp
from warploom.ir.roles import lines_of_roles
from warploom.ir.types import Scalar, Tensor

__all__ = ["CudaSource", "Fault", "emit", "emits"]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """One translation unit: `entry` is launched with `threads` threads and `shared_bytes` bytes of
    dynamic shared memory, its arguments in the order of `Kernel.words()`.

    `fast_math` relaxes the options of the compiler; `loc` is the kernel's place in its source;
    `roles` has the source lines (file, line) that only one role comes from, by its name.
    """

    text: str
    entry: str
    threads: int
    shared_bytes: int
    fast_math: bool = False
    loc: Loc = UNKNOWN
    roles: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)

    @property
    def readable(self) -> str:
        """The text for people: source places as comments, not as `#line`."""
        return without_places(self.text)


def emit(kernel: Kernel, target: Target) -> CudaSource:
    """The CUDA C++ of a kernel of the machine stage; raises `Fault` where it cannot be printed.

    The same kernel gives the same text in every process.
    """
    if kernel.stage is not Stage.MACHINE:
        raise Fault(f"kernel {kernel.name} is at stage {kernel.stage.name}")
    out = Emitter(kernel, target)
    entry = out.names.take(kernel.name)
    out.lines.loc = kernel.loc
    # At least one block an SM is asked for: without the second number ptxas aims at occupancy and
    # moves loads that stand ahead of their use back to it.
    bounds = f"__launch_bounds__({kernel.threads}, 1)"
    if kernel.cluster != (1, 1, 1):
        bounds += f" __cluster_dims__({', '.join(map(str, kernel.cluster))})"
    head = f'extern "C" __global__ void {bounds} {entry}'
    with out.lines.braces(f"{head}({', '.join(_parameters(out))})"):
        if any(isinstance(op, BufferOp) for op in walk(kernel.body)):
            out.prelude.use("u32")
            out.lines.add("extern __shared__ __align__(1024) unsigned char shared_memory[];")
            out.lines.add("const u32 smem = (u32)__cvta_generic_to_shared(shared_memory);")
        out.block(kernel.body)
    prelude = out.prelude.text()
    body = "\n".join(out.lines.with_places())
    text = f"{prelude}\n\n{body}\n" if prelude else f"{body}\n"
    return CudaSource(
        text,
        entry,
        kernel.threads,
        kernel.shared_bytes,
        kernel.fast_math,
        kernel.loc,
        lines_of_roles(kernel),
    )


def _parameters(out: Emitter) -> list[str]:
    """The declarations of the launch words; enters the names of addresses, extents, strides,
    maps."""
    kernel = out.kernel
    ops = list(walk(kernel.body))
    writes = (global_memory.Store, global_memory.Atomic, Post, Put, bulk.StoreBytes)
    stored = {op.tensor for op in ops if isinstance(op, writes)}
    stored |= {op.trace for op in ops if isinstance(op, Record)}
    stored |= {op.room for op in ops if isinstance(op, descriptor.Write)}
    stored |= {op.watch for op in ops if isinstance(op, watch.End)}  # every watched kernel has one
    declared = []
    for word in kernel.words():
        param = kernel.params[word.param]
        kind = param.type
        if word.kind == "map":
            name = out.names.take(f"{out.places[param].root}_map")
            out.maps.append(name)
            async_helpers.use(out.prelude, "TensorMap")
            declared.append(f"const __grid_constant__ TensorMap {name}")
            continue
        if isinstance(kind, Scalar):
            name = out.names.take(param.name or f"s{word.param}")
            out.places[param] = Place.expression(name)
            declared.append(f"{out.type(kind.dtype)} {name}")
            continue
        assert isinstance(kind, Tensor)
        if word.kind == "address":
            name = out.names.take(param.name or f"t{word.param}")
            out.places[param] = Place.expression(name)
            out.prelude.type(kind.dtype)
            constant = "" if param in stored else "const "
            declared.append(f"{constant}{memory_type(kind.dtype)}* {name}")
            continue
        letter, held = ("n", out.extents) if word.kind == "extent" else ("s", out.strides)
        name = out.names.take(f"{out.places[param].root}_{letter}{word.axis}")
        held[(param, word.axis)] = name
        declared.append(f"{'long long' if kind.cls.wide else 'int'} {name}")
    return declared
