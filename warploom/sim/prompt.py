"""The prompt that a `breakpoint()` of a kernel opens: the simulated block stops, and its names can
be looked at in the kernel's own terms. Reads commands from a stream; knows no operation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from warploom.base.diagnostics import Span, shown_path
from warploom.base.dtypes import DType
from warploom.ir.layout.layout import Layout
from warploom.ir.op import Loc
from warploom.sim import situation
from warploom.sim.conversions import wide
from warploom.sim.memory import Memory
from warploom.sim.values import dense, scalar_array

if TYPE_CHECKING:
    from warploom.sim.actors import Actor
    from warploom.sim.block import BlockState

HELP = """\
p NAME        the value of a name in the kernel, tiles as arrays
names         the names that can be printed
memory NAME   what a tensor or a shared buffer holds
roles         where each role is, and what it waits for
barriers      the phase of each barrier, and what it lacks
next          run to the next source line of this block
continue      run to the next breakpoint
finish        run without stopping again
quit          end the launch"""


@dataclass
class Shown:
    """One name at a stop: its value as slots hold it, and what is needed to show it."""

    value: Any
    dtype: DType
    layout: Layout | None = None
    is_scalar: bool = True


@dataclass
class Stop:
    """Where a block stands: place, block index, names, memories by name, constants as text."""

    loc: Loc
    block: str
    names: dict[str, Shown]
    memories: dict[str, Memory]
    constants: tuple[str, ...] = ()
    state: BlockState | None = None
    actor: Actor | None = None

    @property
    def who(self) -> str:
        """The block, and the role that has stopped where there are some."""
        if self.actor is None or self.state is None or not self.actor.role:
            return f"block {self.block}"
        return f"block {self.block}, {self.actor.name}"


@dataclass
class Prompt:
    """A dialogue. `source` and `out` are standard input and output unless given."""

    source: TextIO | None = None
    out: TextIO | None = None
    stepping: bool = False
    finished: bool = False
    line: tuple[str, int] = ("", 0)
    _last: str = field(default="", repr=False)

    def say(self, text: str) -> None:
        """A line of output."""
        print(text, file=self.out or sys.stdout, flush=True)

    def _ask(self) -> str:
        out = self.out or sys.stdout
        out.write("(warploom) ")
        out.flush()
        try:
            line = (self.source or sys.stdin).readline()
        except (OSError, EOFError):
            line = ""  # nobody to ask
        return line.strip() or (self._last if line else "finish")

    def stop(self, at: Stop) -> None:
        """Show where a block stands and obey commands until it may go on."""
        if self.finished:
            return
        self.line = (at.loc.file, at.loc.line)
        self.stepping = False
        text = Span.at(at.loc).source().strip()
        self.say(f"{shown_path(at.loc.file)}:{at.loc.line}, {at.who}: {text}")
        while True:
            command, _, rest = self._ask().partition(" ")
            go_on = self._obey(at, command, rest.strip())
            if go_on:
                return

    def _obey(self, at: Stop, command: str, rest: str) -> bool:
        if command in ("continue", "c", "next", "n", "finish"):
            self.stepping, self.finished = command[0] == "n", command == "finish"
            self._last = command
            return True
        if command == "quit":
            raise KeyboardInterrupt
        actions: dict[str, Callable[[Stop, str], None]] = {
            "p": self._print,
            "names": self._names,
            "memory": self._memory,
            "roles": self._roles,
            "barriers": self._barriers,
        }
        action = actions.get(command)
        if action is None:
            self.say(HELP if command == "help" else f"no command {command!r}; there are:\n{HELP}")
        else:
            action(at, rest)
        return False

    def _names(self, at: Stop, rest: str) -> None:
        found = [*sorted(at.names), *(c.partition(" ")[0] for c in at.constants)]
        self.say(" ".join(found) or "no names here")

    def _print(self, at: Stop, name: str) -> None:
        for constant in at.constants:
            if constant.startswith(f"{name} = "):
                self.say(constant)
                return
        held = at.names.get(name)
        if held is None:
            known = ", ".join(sorted(at.names)) or "none"
            self.say(f"no value has the name {name!r} here; names: {known}")
        elif held.value is None:
            self.say(f"{name} has no value yet")
        else:
            array = logical(held)
            kind = f"{held.dtype}" if held.is_scalar else f"{held.dtype} {array.shape}"
            self.say(f"{name} = {array[()] if held.is_scalar else array} ({kind})")

    def _memory(self, at: Stop, name: str) -> None:
        memory = at.memories.get(name)
        if memory is None:
            known = ", ".join(sorted(at.memories))
            self.say(f"no memory has the name {name!r}; there are: {known}")
            return
        self.say(f"{name} = {contents(memory)} ({memory.dtype})")

    def _roles(self, at: Stop, rest: str) -> None:
        self.say("\n".join(situation.roles(at.state, at.actor, at.loc)))

    def _barriers(self, at: Stop, rest: str) -> None:
        self.say("\n".join(situation.barriers(at.state)))


def contents(memory: Memory) -> np.ndarray:
    """What a tensor holds, in its shape, or the first block's piece of a shared buffer."""
    size = memory.itemsize
    shape, strides = memory.shape, memory.strides
    if memory.pitch:
        shape, strides = (memory.limit,), (1,)
    view = np.ndarray(
        shape,
        memory.flat.dtype,
        memory.raw,
        memory.origin * size if memory.size else 0,
        tuple(step * size for step in strides),
    )
    return wide(view, memory.dtype)


def logical(held: Shown) -> np.ndarray:
    """A value as the kernel's author thinks of it: a number, or a tile with its coordinates."""
    if held.is_scalar:
        array = scalar_array(held.value, held.dtype, 0)[0, 0, 0]
        return wide(array, held.dtype)
    array = wide(dense(held.value), held.dtype)
    layout = held.layout
    if layout is None:
        return array
    registers = layout.reg_extents
    array = np.broadcast_to(array, (*registers, 1, layout.warps, 32))
    array = array.reshape(*registers, layout.warps, 32)
    places, inside = [], np.ones(array.shape, bool)
    for axis, extent in enumerate(layout.shape):
        numbers = layout.coordinates(axis)
        shape = [1] * len(registers) + [layout.warps, 32]
        shape[axis] = registers[axis]
        spread = np.broadcast_to(numbers.reshape(shape), array.shape)
        places.append(spread)
        inside &= spread < extent
    out = np.zeros(layout.shape, array.dtype)
    if not layout.shape:
        out[()] = array[0, 0]
        return out
    out[tuple(p[inside] for p in places)] = array[inside]
    return out
