"""Gives each role its warps, its named barriers and its registers, and pads the block to whole
warpgroups. A role of whole warpgroups starts at one; smaller roles share a warpgroup and then one
number of registers, since setmaxnreg acts on warpgroups."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block
from warploom.ir.ops.control import Yield
from warploom.ir.ops.roles import Split
from warploom.ir.ops.sync import Meet
from warploom.ir.roles import walk_roles

GROUP = 4  # warps of a warpgroup
_LEAST, _MOST, _GRANULE = 24, 240, 8
_SMALL = 40  # registers of a warpgroup of small roles (copies, counters) where nothing is asked
IDLE = "idle"


def place_roles(kernel: Kernel, target: Target) -> None:
    """Place roles and solve their registers.

    Needs: stage tile; at most one `roles.split`. Gives: `first`, `barrier` and `registers` of every
    role, a role of idle warps where the block needs padding, `kernel.warps` of the whole block.
    Raises CompileError B010 (registers), B011 (named barriers), B012 (threads).
    """
    split = next((op for op in kernel.body.ops if isinstance(op, Split)), None)
    if split is None:
        _name_barriers(kernel, 1, target, roles=False)
        return
    _pad(split)
    split.first = _first_warps(split)
    kernel.warps = sum(w * n for w, n in zip(split.warps, split.replicas, strict=True))
    if kernel.warps * 32 > target.threads_per_block:
        raise _too_many_threads(split, kernel.warps, target)
    split.barrier = _barriers(split, target)
    own = [n * (w > 1) for w, n in zip(split.warps, split.replicas, strict=True)]
    _name_barriers(kernel, 1 + sum(own), target, roles=True)
    _check_meetings(split)
    split.registers = _registers(split, kernel.warps, target)


def _pad(split: Split) -> None:
    small = sum(w * n for w, n in zip(split.warps, split.replicas, strict=True) if w % GROUP)
    missing = -small % GROUP
    if missing:
        name = IDLE
        while name in split.names:
            name += "_"
        split.names += (name,)
        split.warps += (missing,)
        split.replicas += (1,)
        split.registers += (0,)
        split.first += (-1,)
        split.barrier += (-1,)
        split.bodies += (Block((), [Yield(values=(), loc=split.loc)]),)


def _order(split: Split) -> list[int]:
    """Roles of whole warpgroups first, then small ones (idle warps are the last); else as
    declared."""
    return sorted(range(len(split.names)), key=lambda i: split.warps[i] % GROUP != 0)


def _first_warps(split: Split) -> tuple[int, ...]:
    first = [0] * len(split.names)
    at = 0
    for number in _order(split):
        first[number] = at
        at += split.warps[number] * split.replicas[number]
    return tuple(first)


def _barriers(split: Split, target: Target) -> tuple[int, ...]:
    """One named barrier a replica of a role of several warps; number 0 is the block's."""
    numbers = []
    at = 1
    for warps, replicas in zip(split.warps, split.replicas, strict=True):
        numbers.append(at if warps > 1 else 0)
        at += replicas if warps > 1 else 0
    if at > target.named_barriers:
        rows = [
            f"{name}: {replicas}"
            for name, replicas in zip(split.names, split.replicas, strict=True)
        ]
        raise error(
            "B011",
            f"the roles need {at} named barriers, and a block has {target.named_barriers}",
            split.loc,
            notes=["replicas of each role: " + ", ".join(rows)],
            hint="use fewer replicas",
        )
    return tuple(numbers)


def _name_barriers(kernel: Kernel, first: int, target: Target, *, roles: bool) -> None:
    """The barriers that the kernel names come after those of the roles."""
    outside = set(kernel.body.ops)
    for op, warps in walk_roles(kernel):
        if not isinstance(op, Meet):
            continue
        own = 32 * warps
        if own > op.threads or (own < op.threads and (op in outside or not roles)):
            raise error(
                "P028",
                f"a named barrier of {op.threads} threads cannot count the {own} that come here",
                op.loc,
                label=f"{warps} warps come here",
                hint="give it the threads of all roles that meet there: "
                "`wl.named_barrier(threads=256)` for two of 4 warps",
            )
        op.id = first + op.number
        if op.id >= target.named_barriers:
            raise error(
                "B011",
                f"the kernel names {op.number + 1} barriers or more, and a block has "
                f"{target.named_barriers}",
                op.loc,
                notes=[f"{first} are taken: one of the block, the others of replicas of roles"],
                hint="name fewer, or use mbarriers: `wl.barrier()`",
            )


def _check_meetings(split: Split) -> None:
    """A barrier to which too few threads come, such as one of the whole block in a single role,
    would never open."""
    comes: dict[int, dict[str, int]] = {}
    first: dict[int, Meet] = {}
    for number, body in enumerate(split.bodies):
        for op in walk(body):
            if isinstance(op, Meet):
                threads = 32 * split.warps[number] * split.replicas[number]
                comes.setdefault(op.number, {})[split.names[number]] = threads
                first.setdefault(op.number, op)
    for name, op in first.items():
        if sum(comes[name].values()) < op.threads:
            raise error(
                "P028",
                f"a named barrier of {op.threads} threads never opens: {sum(comes[name].values())} "
                "come to it",
                op.loc,
                label="waited for here" if op.waits else "arrived at here",
                notes=[f"`{role}`: {threads} threads" for role, threads in comes[name].items()],
                hint="let the other roles come too, or give it the threads of those that do",
            )


@dataclass(slots=True)
class _Pool:
    """A set of warpgroups that change their registers together."""

    roles: list[int]
    groups: int
    asked: int
    small: bool


def _registers(split: Split, warps: int, target: Target) -> tuple[int, ...]:
    pools = _pools(split)
    groups = sum(p.groups for p in pools)
    entry = entry_registers(warps * 32, target)
    open_pools = [p for p in pools if not p.asked]
    if not any(p.asked for p in pools) and (len(pools) == 1 or not any(p.small for p in pools)):
        return (0,) * len(split.names)  # every role keeps what it enters with
    left = entry * groups - sum(p.asked * p.groups for p in pools)
    for pool in open_pools:
        if pool.small:
            pool.asked = _SMALL
            left -= _SMALL * pool.groups
    rest = [p for p in open_pools if not p.small]
    for pool in rest:
        share = left // sum(p.groups for p in rest) // _GRANULE * _GRANULE
        pool.asked = max(_LEAST, min(_MOST, share))
    if sum(p.asked * p.groups for p in pools) > entry * groups:
        raise _too_many_registers(split, pools, entry, warps * 32)
    result = [0] * len(split.names)
    for pool in pools:
        for number in pool.roles:
            result[number] = pool.asked
    return tuple(result)


def entry_registers(threads: int, target: Target) -> int:
    """Registers of a thread when the block starts, as launch bounds of one block an SM pin them."""
    return min(target.registers_per_sm // threads // _GRANULE * _GRANULE, 248)


def _pools(split: Split) -> list[_Pool]:
    pools: list[_Pool] = []
    small = _Pool([], 0, 0, True)
    warps = 0
    for number, (size, replicas) in enumerate(zip(split.warps, split.replicas, strict=True)):
        if size % GROUP == 0:
            groups = size // GROUP * replicas
            pools.append(_Pool([number], groups, split.registers[number], False))
        else:
            small.roles.append(number)
            small.asked = max(small.asked, split.registers[number])
            warps += size * replicas
    if small.roles:
        small.groups = warps // GROUP
        pools.append(small)
    return pools


def _too_many_registers(split: Split, pools: list[_Pool], entry: int, threads: int) -> Error:
    rows = [
        f"{' + '.join(split.names[i] for i in p.roles)}: {p.groups * GROUP * 32} threads x "
        f"{p.asked} = {p.groups * GROUP * 32 * p.asked:,}"
        for p in pools
    ]
    pool = entry * threads
    total = sum(p.groups * GROUP * 32 * p.asked for p in pools)
    largest = max(pools, key=lambda p: (p.asked, not p.small))
    over = total - pool
    fits = (largest.asked - -(-over // (largest.groups * GROUP * 32))) // _GRANULE * _GRANULE
    name = split.names[largest.roles[0]]
    spread = f"give every role registers={entry} at most"
    return error(
        "B010",
        f"the roles ask for {total:,} registers, and a block of {threads} threads holds {pool:,}",
        split.loc,
        notes=[*rows, f"at entry every thread has {entry}: {threads} x {entry} = {pool:,}"],
        hint=f"give `{name}` registers={fits}" if fits >= _LEAST else spread,
    )


def _too_many_threads(split: Split, warps: int, target: Target) -> Error:
    rows = [
        f"{name}: {replicas} x {size} warps"
        for name, size, replicas in zip(split.names, split.warps, split.replicas, strict=True)
    ]
    return error(
        "B012",
        f"the roles are {warps * 32} threads, and a block has at most {target.threads_per_block}",
        split.loc,
        notes=rows,
        hint="use fewer warps or replicas",
    )
