"""Turns a kernel's machine IR into steps: one closure an operation, operands by slot number.

A value's slot is freed after its last use, so that its memory can be used again while it is in
cache. Knows no single operation but the regions' yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import warploom.sim.order_accesses
import warploom.sim.order_cp_async
import warploom.sim.order_descriptors
import warploom.sim.order_flagged
import warploom.sim.order_flags
import warploom.sim.order_remote
import warploom.sim.order_steps
import warploom.sim.rules
import warploom.sim.shadow_remote
import warploom.sim.shadow_sync  # noqa: F401  (registers the rules)
from warploom.ir.addresses import buffer_behind
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Loc, Op, Value
from warploom.ir.ops.control import For, Loop, Yield
from warploom.ir.ops.debug import Breakpoint, Clock, Record
from warploom.ir.ops.global_memory import Atomic
from warploom.ir.ops.shared_memory import BufferOp
from warploom.ir.ops.sync import Fence
from warploom.ir.ops.wgmma import Mma, MmaRegisters
from warploom.ir.types import Buffer, Regs, Scalar, Tensor
from warploom.passes.touches import buffer_of
from warploom.sim.block_races import block_step
from warploom.sim.boxes import CHUNK
from warploom.sim.granularity import shared_cell
from warploom.sim.loose_values import loose_slots
from warploom.sim.machine import Batch, Slots, Step, sequence
from warploom.sim.memory import Memory
from warploom.sim.order_table import order_step
from warploom.sim.prompt import Shown, Stop
from warploom.sim.registry import simulates
from warploom.sim.rooms import room_step
from warploom.sim.rules.wgmma import settled
from warploom.sim.shadow_steps import shadow_step
from warploom.sim.signallers import Signallers

# Families whose operations wait for, or leave work to, something that runs at the same time.
_CONCURRENT = {
    "cluster",
    "descriptor",
    "flagged",
    "flags",
    "roles",
    "mbarrier",
    "tma",
    "bulk",
    "cp_async",
    "wgmma",
    "remote",
    "watch",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A shared buffer and where it lies, in bytes."""

    name: str
    at: int
    end: int
    itemsize: int
    buffer: Value

    @property
    def slots(self) -> int:
        """The equal parts that the source has made it of."""
        made = self.buffer.owner
        assert isinstance(made, BufferOp)
        return made.slots if made.copies == 1 else 1

    def part(self, byte: int) -> int:
        """The number of the part that a byte would lie in, beyond its end, too."""
        return (byte - self.at) // ((self.end - self.at) // self.slots)

    def shares(self, other: Placed) -> bool:
        """Whether the kernel has put both on the same bytes, or they are one."""
        made, its = self.buffer.owner, other.buffer.owner
        assert isinstance(made, BufferOp)
        assert isinstance(its, BufferOp)
        return made is its or made.region == its.region >= 0


class Translator:
    """Slots and liveness of one kernel while its steps are built.

    `warps` execute what is being translated, `acting` threads of them (fewer inside
    `control.one_thread`). `waits`: the kernel has actors that run at the same time.
    """

    def __init__(self, kernel: Kernel, checked: bool) -> None:
        self.kernel = kernel
        self.checked = checked
        self.types: list[Any] = []
        self.warps = kernel.warps
        self.acting = 32 * kernel.warps
        self.waits = any(op.FAMILY in _CONCURRENT for op in walk(kernel.body))
        self.waits = self.waits or (checked and _orders_blocks(kernel))
        self.reaches_peers = any(op.FAMILY == "remote" for op in walk(kernel.body))
        self.placed: list[Placed] = []
        self.signallers = Signallers(kernel)
        self._multiplies = any(isinstance(op, Mma | MmaRegisters) for op in walk(kernel.body))
        self.shared_bytes = _aligned(kernel.shared_bytes)
        self._slots: dict[Value | str, int] = {}
        self._home: dict[Value, Block] = {}
        self._last: dict[Value, Op] = {}
        self._uses: dict[Op, set[Value]] = {}
        for param in kernel.params:
            self.slot(param)
        self.prompts = any(isinstance(op, Breakpoint) for op in walk(kernel.body))
        self.clocked = any(isinstance(op, Clock | Record) for op in walk(kernel.body))
        self._note(kernel.body)
        self.loose = loose_slots(self) if checked else frozenset()  # may hold what is unwritten

    # ---- slots -----------------------------------------------------------------------------

    def slot(self, value: Value) -> int:
        """The slot of a value: its storage's, or its own."""
        key = value.storage or value
        number = self._slots.get(key)
        if number is None:
            number = self._slots[key] = len(self.types)
            self.types.append(value.type)
        return number

    def optional(self, value: Value | None) -> int:
        """The slot of an operand that may be absent: −1 then."""
        return -1 if value is None else self.slot(value)

    def byte_of(self, op: BufferOp) -> int:
        """Where a shared buffer starts; a place of its own where none has been planned."""
        at = op.at if op.at >= 0 else _aligned(self.shared_bytes, op.align)
        end = at + op.size
        self.shared_bytes = max(self.shared_bytes, _aligned(end))
        self.placed.append(Placed(op.result.name, at, end, op.dtype.bytes, op.result))
        return at

    def on_bytes_of(self, op: BufferOp) -> tuple[str, ...]:
        """The names of other tiles that the kernel has put on the bytes of a buffer."""
        found: list[str] = []
        for other in self.placed:
            made = other.buffer.owner
            assert isinstance(made, BufferOp)
            apart = made.region != op.region or made.content == op.content
            if op.region >= 0 and not apart and made.at < op.at + op.size and op.at < other.end:
                found.append(other.name)
        return tuple(dict.fromkeys(found))

    def mark_of(self, address: Value) -> int:
        """What the shadow of a tile is marked with, by an address in it; 0 where no other tile
        lies on its bytes."""
        try:
            made = buffer_of(address).owner
        except ValueError:
            return 0  # written out by hand
        assert isinstance(made, BufferOp)
        return made.content + 1 if made.region >= 0 else 0

    def room_of(self, address: Value) -> Placed | None:
        """The buffer that an address in this block, or at the same place of a peer, lies in."""
        buffer = buffer_behind(address)
        return next((p for p in self.placed if p.buffer is buffer), None)

    @cached_property
    def shared_cell(self) -> int:
        """The bytes of shared memory that every access takes whole, once all is translated."""
        finest = min((b.itemsize for b in self.placed), default=CHUNK)
        return shared_cell(self.kernel, finest)

    @contextmanager
    def threads_acting(self, threads: int) -> Iterator[None]:
        """Translate what only so many threads of the role execute."""
        outer, self.acting = self.acting, threads
        yield
        self.acting = outer

    @contextmanager
    def role(self, warps: int) -> Iterator[None]:
        """Translate the body of a role whose replicas have so many warps."""
        outer, self.warps = self.warps, warps
        with self.threads_acting(32 * warps):
            yield
        self.warps = outer

    def names(self) -> list[tuple[str, int, Scalar | Regs]]:
        """Names in the source, slots and types, in the order of definition, for the prompt."""
        values = (*self.kernel.params, *self._home)
        return [
            (v.name, self.slot(v), v.type)
            for v in values
            if v.name and isinstance(v.type, Scalar | Regs)
        ]

    def memories(self) -> list[tuple[str, int]]:
        """Names and slots of tensors and shared buffers."""
        values = (*self.kernel.params, *self._home)
        return [(v.name, self.slot(v)) for v in values if isinstance(v.type, Tensor | Buffer)]

    # ---- liveness --------------------------------------------------------------------------

    def _note(self, block: Block, carries: bool = True) -> set[Value]:
        """Fill homes, uses and last uses; gives what the block uses from outside. `carries`: its
        yield moves values."""
        for arg in block.args:
            self._home[arg] = block
        outside: set[Value] = set()
        for op in block.ops:
            for result in op.results:
                self._home[result] = block
            used = set(op.operand_values())
            if isinstance(op, Yield) and not carries:
                used = set()
            elif isinstance(op, Loop) and not yields_carry(op):
                # First values were assigned before.
                used = {op.lo, op.hi, op.step} if isinstance(op, For) else set()
            for inner in op.regions():
                used |= self._note(inner, yields_carry(op))
            self._uses[op] = used
            for value in used:
                if self._home.get(value) is block:
                    self._last[value] = op
                else:
                    outside.add(value)
        return outside

    def dies(self, op: Op, value: Value) -> bool:
        """No operation uses the value after `op`, and nobody may ask for it."""
        return self._last.get(value) is op and not self.prompts

    def inputs(self, *regions: Block) -> tuple[int, ...]:
        """Slots that regions read and do not define."""
        slots: set[int] = set()
        for region in regions:
            inside = {v for op in walk(region) for v in op.results} | set(region.args)
            for op in walk(region):
                for inner in op.regions():
                    inside |= set(inner.args)
            for op in walk(region):
                slots |= {self.slot(v) for v in op.operand_values() if v not in inside}
        return tuple(sorted(slots))

    def given(self, block: Block) -> list[int]:
        """Slots of what a block's yield gives to the operation around it."""
        return [self.slot(v) for v in block.ops[-1].operand_values()]

    def spent(self, block: Block) -> tuple[int, ...]:
        """Slots of yielded values that only the block itself made: free once they are moved."""
        values = block.ops[-1].operand_values()
        own = {v for v in values if v not in block.args and self._home.get(v) is block}
        return tuple({self.slot(v) for v in own if not v.storage})

    # ---- steps -----------------------------------------------------------------------------

    def steps(self, block: Block) -> list[Step]:
        """The steps of a block in order, slots freed as their values die."""
        steps: list[Step] = []
        for op in block.ops:
            if isinstance(op, Yield):
                continue  # what it gives away is moved by the operation around the block
            step = self.step(op)
            if step is not None:
                steps.append(step)
            dead = self._dead(op, block)
            if dead:
                steps.append(_free(dead))
        return steps

    def step(self, op: Op) -> Step | None:
        """The step of one operation, or None where nothing is to be done."""
        rule = simulates.find(type(op))
        if rule is None:
            raise ValueError(f"the simulator has no rule for {op.OPCODE}")
        step = rule(self, op)
        if self._multiplies and step is not None:
            step = settled(self, op, step)
        if self.checked and self.waits:
            step = order_step(self, op, step)
        elif self.checked and step is not None:
            step = block_step(self, op, step)
        if self.checked and step is not None:
            step = room_step(self, op, step)
        if self.checked and step is not None:
            step = shadow_step(self, op, step)
        if self.clocked and step is not None:
            step = sequence((_tick, step))
        if self.prompts and step is not None and op.loc.line:
            return self._stepped(op, step)
        return step

    def _stepped(self, op: Op, step: Step) -> Step:
        """Stops before a new source line while the user goes line by line."""
        names, memories = self.names(), self.memories()
        place = (op.loc.file, op.loc.line)

        def look(s: Slots, m: Batch) -> None:
            prompt = m.launch.prompt
            if prompt.stepping and prompt.line != place:
                # Of several values of one name, the latest that has been computed.
                shown = {
                    name: Shown(s[slot], type.dtype, getattr(type, "layout", None), is_scalar)
                    for name, slot, type in names
                    for is_scalar in (isinstance(type, Scalar),)
                    if s[slot] is not None
                }
                held = {name: s[slot] for name, slot in memories if s[slot] is not None}
                prompt.stop(self.stop(op.loc, m, shown, held))

        return sequence((look, step))

    def stop(
        self,
        loc: Loc,
        m: Batch,
        names: dict[str, Shown],
        memories: dict[str, Memory],
        constants: tuple[str, ...] = (),
    ) -> Stop:
        """Where a block stands, for the prompt."""
        made = Stop(loc, m.launch.name_block(int(m.linear[0])), names, memories, constants)
        if self.waits:
            made.state, made.actor = m.state, m.actor
        return made

    def _dead(self, op: Op, block: Block) -> tuple[int, ...]:
        if self.prompts:
            return ()  # the user may ask for any value
        used = self._uses[op]
        dead = [v for v in used if self._last.get(v) is op and self._home.get(v) is block]
        dead += [v for v in op.results if v not in self._last]
        return tuple({self.slot(v) for v in dead if not v.storage and isinstance(v.type, Regs)})


def _orders_blocks(kernel: Kernel) -> bool:
    """Whether atomic operations may order what blocks do that wait for nobody (who comes last), or
    do not reach all of them."""
    ops = list(walk(kernel.body))
    atomics = [op for op in ops if isinstance(op, Atomic)]
    fences = any(isinstance(op, Fence) for op in ops)
    return any(
        fences or op.releases or op.acquires or op.scope in ("block", "cluster") for op in atomics
    )


def _tick(s: Slots, m: Batch) -> None:
    """The clock of the simulator: one operation more."""
    m.clock[0] += 1


def _aligned(size: int, align: int = 16) -> int:
    return -(-size // align) * align


def yields_carry(op: Op) -> bool:
    """Whether the yields in an operation's regions move values: until assign_storage has put
    assignments in their place."""
    if isinstance(op, Loop):
        return not any(arg.storage for arg in op.carried)
    return not any(r.storage for r in op.results)


def _free(slots: tuple[int, ...]) -> Step:
    if len(slots) == 1:
        (only,) = slots

        def free_one(s: Slots, m: Batch) -> None:
            s[only] = None

        return free_one

    def free(s: Slots, m: Batch) -> None:
        for slot in slots:
            s[slot] = None

    return free
