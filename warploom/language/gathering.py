"""What one role of every block does together with those of the other blocks: it counts rounds on a
counter in memory that launches keep, of which nothing is ever reset.

A block adds one a round, and waits until all have. Where the counter stood when the launch began,
its epoch, is a word beside it: each block reads it on entry, and block 0 advances it at its end,
behind the last round, in which every block has taken part and so has read it. Numbers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warploom.base.dtypes import i32
from warploom.ir.op import Block
from warploom.ir.ops import grid as grid_ops
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops.control import If, Yield
from warploom.language.atomic import atomic_add, atomic_exchange
from warploom.language.context import Refused, builder, current
from warploom.language.flag import signal, wait
from warploom.language.kept import keep, take_more
from warploom.language.roles import RolePlan
from warploom.language.scalar import num_programs, program_id
from warploom.language.tensor import window
from warploom.language.values import Scalar, Tensor, Window

# Words of a line of the second-level cache: what is polled shares none.
_LINE = 32


def blocks() -> Scalar:
    """The number of blocks of the launch."""
    return num_programs(0) * num_programs(1) * num_programs(2)


def block_number() -> Scalar:
    """The number of this block among all of the launch, x first."""
    row = program_id(1) + num_programs(1) * program_id(2)
    return program_id(0) + num_programs(0) * row


@dataclass(slots=True)
class Count:
    """A number that grows with every round, and goes on from launch to launch: `first` is what it
    was when this launch began, `at` the place where the next launch finds it."""

    words: Tensor
    at: int
    first: Scalar
    ring: int

    def next(self) -> Scalar:
        """The number of the next round, from 0."""
        return Scalar(builder().emit(role_ops.Round(ring=self.ring), "round"))

    def leave(self, step: Scalar | int) -> None:
        """Block 0 hands on what the count has come to. Without a round nothing is written: nobody
        waited for the others to have read it."""
        rounds = Scalar(builder().emit(role_ops.Round(ring=self.ring, advances=False), "rounds"))
        chosen = (rounds > 0) & (block_number() == 0)
        then, orelse = Block(), Block()
        with builder().inside(then):
            atomic_exchange(_word(self.words, self.at), self.first + rounds * step)
        for way in (then, orelse):
            with builder().inside(way):
                builder().add(Yield(values=()))
        builder().add(If(condition=chosen.value, then=then, orelse=orelse))


class Gathering:
    """The rounds of one role, or of the block before its roles."""

    def __init__(self, plan: RolePlan | None) -> None:
        self.plan = plan
        self.words = keep("grid_words", i32, _LINE)  # the first line holds the counter
        self.rounds: Count | None = None

    def count(self, step: Callable[[], Scalar] | int) -> Count:
        """A new count that launches hand on, in this role: it grows by `step` a round."""
        at = take_more(self.words, _LINE)
        held = current()
        start = Block()
        # Read on entry, by one thread for all: no warp may come to it when the launch is ending.
        with builder().inside(start):
            first = atomic_add(_word(self.words, at), 0)
        body = held.top if self.plan is None else self.plan.body
        place = _entry(body)
        body.ops[place:place] = start.ops
        made = Count(self.words, at, first, held.ring())
        endings = held.endings if self.plan is None else self.plan.endings
        endings.append(lambda: made.leave(step if isinstance(step, int) else step()))
        return made

    def meet(self) -> None:
        """Wait until the role of every block has come here; what it wrote before is seen after."""
        if self.rounds is None:
            self.rounds = self.count(blocks)
        target = self.rounds.first + (self.rounds.next() + 1) * blocks()
        signal(_word(self.words, 0), add=1)
        wait(_word(self.words, 0), at_least=target)


def gathering(verb: str) -> Gathering:
    """That of the present role; refuses where not all of its threads are, or several replicas."""
    held = current()
    if held.alone:
        raise Refused(
            "P021",
            f"`{verb}` stands where one thread acts, and all of the role take part",
            hint="put it outside of `wl.one_thread()`",
        )
    plan: RolePlan | None = held.role
    if plan is not None and plan.replicas > 1:
        raise Refused(
            "P045",
            f"`{verb}` stands in a role of {plan.replicas} replicas, and a block takes part once",
            hint="let a role of one replica do it, and hand the result over by a pipe",
        )
    key = None if plan is None else id(plan)
    if key not in held.gatherings:
        held.gatherings[key] = Gathering(plan)
    return held.gatherings[key]


def _entry(body: Block) -> int:
    """Where a role begins: behind the number of its replica, and behind the wait for the launch
    before, whose count this one continues."""
    first = (role_ops.Replica, grid_ops.WaitForPrevious)
    return max((i + 1 for i, op in enumerate(body.ops) if isinstance(op, first)), default=0)


def _word(words: Tensor, at: Any) -> Window:
    return window(words, at)
