"""How many instructions of each kind a kernel's operations declare, and how many a PTX text holds.
Equal numbers show that neither emitter nor compiler added, dropped or duplicated one."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import TypeAlias

from warploom.codegen.access_helpers import shuffles_of
from warploom.codegen.rules.roles import shared_registers
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op, Value
from warploom.ir.ops import (
    bulk,
    cluster,
    control,
    cp_async,
    debug,
    descriptor,
    flagged,
    flags,
    global_memory,
    grid,
    lanes,
    mbarrier,
    mma,
    ptx,
    remote,
    roles,
    shared_memory,
    sync,
    tma,
    watch,
    wgmma,
)
from warploom.ir.types import Regs

# Kinds of instructions by how their names begin; the first that fits counts.
_PTX = (
    ("ld.global.nc", "ld.global.nc."),
    ("ld.global", "ld.global."),
    ("st.global", "st.global."),
    ("ld.shared", "ld.shared."),
    ("st.shared", "st.shared."),
    ("ld.peer", "ld.shared::cluster."),
    ("st.peer", "st.shared::cluster."),
    ("st.async", "st.async."),
    ("ldmatrix", "ldmatrix."),
    ("stmatrix", "stmatrix."),
    ("flag", "ld.acquire."),
    ("flag", "ld.relaxed."),
    ("atom", "st.release."),
    ("atom", "st.relaxed."),
    ("atom", "atom."),
    ("atom", "red."),
    ("shfl", "shfl.sync."),
    ("vote", "vote.sync."),
    ("prefetch", "prefetch.global."),
    ("bar.warp", "bar.warp.sync"),
    ("bar", "bar."),
    ("barrier.cluster", "barrier.cluster."),
    ("bar", "barrier."),
    ("elect", "elect.sync"),
    ("fence", "fence."),
    ("fence", "membar."),
    ("redux", "redux."),
    ("setmaxnreg", "setmaxnreg."),
    ("griddepcontrol", "griddepcontrol."),
    ("mbarrier", "mbarrier."),
    ("cp.async.bulk.group", "cp.async.bulk.commit_group"),
    ("cp.async.bulk.group", "cp.async.bulk.wait_group"),
    ("cp.async.bulk", "cp.async.bulk."),
    ("cp.async.bulk", "cp.reduce.async.bulk."),
    ("cp.async", "cp.async."),
    ("tensormap", "tensormap."),
    ("mma", "mma.sync."),
    ("wgmma.mma", "wgmma.mma_async."),
    ("wgmma.sync", "wgmma."),
)

# A label and a predicate.
_BEFORE = re.compile(r"^\s*(?:\w+:\s*)?(?:@!?%?\w+\s+)?")
# Operations that are one instruction.
_ONE: dict[type[Op], str] = {
    sync.Barrier: "bar",
    sync.Agree: "bar",
    sync.WarpSync: "bar.warp",
    sync.Arrive: "bar",
    sync.Fence: "fence",
    sync.FenceAsync: "fence",
    sync.FenceBarrierInit: "fence",
    descriptor.Acquire: "fence",
    cluster.Arrive: "mbarrier",
    debug.Record: "st.global",
    flags.Post: "atom",
    grid.LaunchDependents: "griddepcontrol",
    grid.WaitForPrevious: "griddepcontrol",
    roles.SetRegisters: "setmaxnreg",
    mbarrier.Init: "mbarrier",
    mbarrier.Arrive: "mbarrier",
    mbarrier.Expect: "mbarrier",
    mbarrier.Wait: "mbarrier",
    mbarrier.Test: "mbarrier",
    tma.LoadBox: "cp.async.bulk",
    tma.StoreBox: "cp.async.bulk",
    tma.PrefetchBox: "cp.async.bulk",
    cp_async.Commit: "cp.async",
    cp_async.Wait: "cp.async",
    cp_async.Arrive: "cp.async",
    remote.CopyBytes: "cp.async.bulk",
    bulk.LoadBytes: "cp.async.bulk",
    bulk.StoreBytes: "cp.async.bulk",
    bulk.PrefetchBytes: "cp.async.bulk",
    tma.Commit: "cp.async.bulk.group",
    tma.Wait: "cp.async.bulk.group",
    watch.End: "atom",
    mma.Multiply: "mma",
    wgmma.Mma: "wgmma.mma",
    wgmma.MmaRegisters: "wgmma.mma",
    wgmma.Fence: "wgmma.sync",
    wgmma.Commit: "wgmma.sync",
    wgmma.WaitGroup: "wgmma.sync",
    wgmma.Drain: "wgmma.sync",
}
# Operations that are one instruction an offset.
_EACH: dict[type[Op], str] = {
    cp_async.CopyGroups: "cp.async",
    flagged.Put: "atom",
    flagged.Look: "flag",
    global_memory.Store: "st.global",
    global_memory.Atomic: "atom",
    global_memory.Prefetch: "prefetch",
    shared_memory.Load: "ld.shared",
    shared_memory.Store: "st.shared",
    shared_memory.LoadMatrices: "ldmatrix",
    shared_memory.StoreMatrices: "stmatrix",
    remote.LoadGroups: "ld.peer",
    remote.StoreGroups: "st.peer",
    remote.SendGroups: "st.async",
}
_Offsets: TypeAlias = (
    cp_async.CopyGroups
    | flagged.Put
    | flagged.Look
    | global_memory.Store
    | global_memory.Atomic
    | global_memory.Prefetch
    | shared_memory.Load
    | shared_memory.Store
    | shared_memory.LoadMatrices
    | shared_memory.StoreMatrices
    | remote.LoadGroups
    | remote.StoreGroups
    | remote.SendGroups
)
_ASM = re.compile(r"// begin inline asm\n(.*?)// end inline asm", re.DOTALL)


def declared(kernel: Kernel) -> Counter[str]:
    """Instructions by kind; those of a loop count once. (Loops with `unroll` 1 stay loops.)"""
    found: Counter[str] = Counter()
    for op in walk(kernel.body):
        for kind, count in _of(op):
            found[kind] += count
    return +found


def counted(ptx: str) -> Counter[str]:
    """Instructions by kind in a PTX text from NVRTC.

    Only inline asm counts, which NVRTC marks: all accesses and barriers of an emitted kernel are
    inline asm, while functions such as sin read tables of their own.
    """
    found: Counter[str] = Counter()
    for statement in re.split(r"[;{}\n]", "\n".join(_ASM.findall(ptx))):
        kind = _kind(_BEFORE.sub("", statement))
        if kind:
            found[kind] += 1
    return found


def _kind(instruction: str) -> str:
    return next((kind for kind, start in _PTX if instruction.startswith(start)), "")


def _of(op: Op) -> tuple[tuple[str, int], ...]:
    """Kinds and numbers of the instructions of one operation."""
    match op:
        case global_memory.Load():
            return (("ld.global.nc" if op.read_only else "ld.global", _registers(op.offset)),)
        case global_memory.LoadScalar():
            return (("ld.global.nc" if op.read_only else "ld.global", 1),)
        case lanes.Ballot():
            return (("vote", _registers(op.value)),)
        case lanes.ShuffleXor() | lanes.Shuffle():
            held = op.value.type
            assert isinstance(held, Regs)
            return (("shfl", _registers(op.value) * shuffles_of(held.dtype)),)
        case roles.Split():
            # The number of the warp in the block, the same for all its lanes. Roles of one
            # warpgroup change its registers once.
            spared = max(len(shared_registers(op)) - 1, 0)
            return (("shfl", 1), ("setmaxnreg", -spared))
        case control.OneThread():
            return (("bar.warp", 1), ("elect", 1))
        case cluster.Sync():
            return (("barrier.cluster", 2),)
        case flags.Poll() | flagged.Take() | watch.Arrive() | descriptor.Write():
            return _at_words(op)
        case watch.Barrier() | watch.Flag() | watch.Words() | watch.Meet() | watch.At():
            return _watched(op)
    if isinstance(op, ptx.ComputeRegisters | ptx.ActRegisters):
        kinds = Counter(_kind(_BEFORE.sub("", s)) for s in re.split(r"[;{}\n]", op.text))
        count = _registers(op.inputs[0])
        return tuple((kind, number * count) for kind, number in kinds.items() if kind)
    each = _EACH.get(type(op))
    if each is not None:
        assert isinstance(op, _Offsets)
        return ((each, _registers(op.offset)),)
    kind = "vote" if isinstance(op, sync.Agree) and op.threads == 32 else _ONE.get(type(op))
    return ((kind, 1),) if kind else ()


def _watched(
    op: watch.Barrier | watch.Flag | watch.Words | watch.Meet | watch.At,
) -> tuple[tuple[str, int], ...]:
    """A wait that can be left: its polls, the votes on these, and the way out. A thread that waits
    alone only counts itself out: others see to it that all leave."""
    own = (("atom", 1),) if isinstance(op, watch.Meet | watch.At) else ()
    if isinstance(op, watch.Barrier):
        own = (("mbarrier", 1), ("ld.shared", 1))
    if (isinstance(op, watch.Meet) and not op.waits) or (
        isinstance(op, watch.At) and not op.leaves
    ):
        return own
    votes = 0 if op.alone else 1 if isinstance(op, watch.At) else 2
    each = _registers(op.offset) if isinstance(op, watch.Words) else 1
    atoms, fences = (1, 0) if op.alone else (3, 1)
    out = (("vote", votes), ("wgmma.sync", int(op.drains)), ("atom", atoms), ("fence", fences))
    return (*own, *((kind, each * count) for kind, count in out))


def _at_words(
    op: flags.Poll | flagged.Take | watch.Arrive | descriptor.Write,
) -> tuple[tuple[str, int], ...]:
    """A note of an arrival; or a load a word, and one of the word that ends waits. Of a descriptor
    each extent, each stride but one, the address, and the copy to its place."""
    if isinstance(op, descriptor.Write):
        axes = len(op.extents)
        return (("st.shared", 1), ("bar.warp", 2), ("tensormap", 2 * axes + 1))
    if isinstance(op, watch.Arrive):
        return (("atom", 3 if op.bytes else 1),)
    words = _registers(op.offset) if isinstance(op, flagged.Take) else 1
    return (("flag", words if op.stop is None else 2 * words),)


def _registers(value: Value) -> int:
    assert isinstance(value.type, Regs)
    return prod(value.type.extents)
