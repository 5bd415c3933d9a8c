"""Structured control flow, legal at every stage, and the storages of carried values."""

from __future__ import annotations

from warploom.base.dtypes import boolean
from warploom.ir.op import (
    Actor,
    Block,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    operands,
    region,
)
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Scalar, Type, Uniformity


class Loop(Op):
    """What the kinds of loop have in common: values that are carried from trip to trip."""

    inits: tuple[Value, ...]
    body: Block

    @property
    def carried(self) -> tuple[Value, ...]:
        """The arguments of the body that stand for carried values, one for each of `inits`."""
        raise TypeError(f"{self.OPCODE} does not say")

    @property
    def deciding(self) -> tuple[Value, ...]:
        """The scalars that the number of trips follows from."""
        raise TypeError(f"{self.OPCODE} does not say")

    def infer(self) -> tuple[Type, ...]:
        return tuple(a.type for a in self.carried)

    def check_carried(self) -> None:
        """Raise `Complaint` where entry, argument and yield of a carried value differ, or an
        argument claims to be more uniform than the trips or what it comes from."""
        check(len(self.carried) == len(self.inits), "one body argument a carried value")
        last = self.body.ops[-1]
        check(isinstance(last, Yield), "a loop body ends with a yield")
        given = tuple(last.operand_values())
        check(len(given) == len(self.inits), "the yield gives another number of carried values")
        # Blocks that make different numbers of trips hold different values after them.
        trips = max(map(uniformity, self.deciding))
        for init, arg, value in zip(self.inits, self.carried, given, strict=True):
            check(same_but_uniformity(init.type, arg.type), f"carried {init} enters as {arg}")
            check(same_but_uniformity(value.type, arg.type), f"carried {arg} becomes {value}")
            if isinstance(arg.type, Scalar):
                least = max(trips, uniformity(init), uniformity(value))
                check(arg.type.uniform >= least, f"{arg} is uniform by {least.name.lower()} only")


@op("control.for", effects=(Effect.CONTROL,), executes=Actor.WARP)
class For(Loop):
    """`for i in lo, lo+step, … < hi` (> hi where step < 0); step is never 0. The body's arguments
    are i and the carried values, its yield gives the next carried values, the results are the last
    ones.

    `unroll` is printed as a pragma; 1 keeps the loop.
    """

    lo: Value = operand()
    hi: Value = operand()
    step: Value = operand()
    inits: tuple[Value, ...] = operands()
    unroll: int = attribute(default=1)
    body: Block = region()

    @property
    def carried(self) -> tuple[Value, ...]:
        return self.body.args[1:]

    @property
    def deciding(self) -> tuple[Value, ...]:
        return (self.lo, self.hi, self.step)

    def verify(self) -> None:
        dtype = scalar_of(self.lo).dtype
        check(
            dtype.is_int and dtype == scalar_of(self.hi).dtype == scalar_of(self.step).dtype,
            "loop bounds of several dtypes",
        )
        check(bool(self.body.args), "the body has no index")
        self.check_carried()
        index = self.body.args[0]
        least = max(map(uniformity, self.deciding))
        check(uniformity(index) >= least, f"{index} is uniform by {least.name.lower()} only")


@op("control.while", effects=(Effect.CONTROL,), executes=Actor.WARP)
class While(Loop):
    """Run the body as long as the first carried value, a bool scalar, holds: it is looked at before
    each trip, the first included. The body's arguments are the carried values, its yield gives the
    next ones, the results are the last ones."""

    inits: tuple[Value, ...] = operands()
    body: Block = region()

    @property
    def carried(self) -> tuple[Value, ...]:
        return self.body.args

    @property
    def deciding(self) -> tuple[Value, ...]:
        return self.body.args[:1]

    def verify(self) -> None:
        check(bool(self.inits), "a loop without a condition")
        check(scalar_of(self.inits[0]).dtype == boolean, "condition is not bool")
        self.check_carried()


@op("control.if", effects=(Effect.CONTROL,), executes=Actor.WARP)
class If(Op):
    """Run one of two blocks by a scalar condition; the results are what that block yields."""

    condition: Value = operand()
    then: Block = region()
    orelse: Block = region()

    def infer(self) -> tuple[Type, ...]:
        condition = scalar_of(self.condition).uniform
        yes, no = (tuple(b.ops[-1].operand_values()) for b in (self.then, self.orelse))
        check(len(yes) == len(no), "branches yield different numbers of values")
        # A choice is at most as uniform as its condition and as what is chosen.
        return tuple(
            weaken(weaken(a.type, condition), uniformity(b)) for a, b in zip(yes, no, strict=True)
        )

    def verify(self) -> None:
        check(scalar_of(self.condition).dtype == boolean, "condition is not bool")
        for block in (self.then, self.orelse):
            check(
                bool(block.ops) and isinstance(block.ops[-1], Yield), "a branch ends with a yield"
            )
            for v, r in zip(block.ops[-1].operand_values(), self.results, strict=True):
                check(same_but_uniformity(v.type, r.type), f"branch yields {v} for {r}")


@op("control.one_thread", effects=(Effect.CONTROL,), executes=Actor.ROLE)
class OneThread(Op):
    """Run the body by one fixed thread of the role (`per` "role": lane 0 of its first warp) or of
    each warp ("warp": lane 0 of each), after the lanes of the warp have met; with `meet` after all
    warps of the role have met (insert_role_barriers sees to it)."""

    per: str = attribute(default="role")
    meet: bool = attribute(default=False)
    body: Block = region()

    def verify(self) -> None:
        check(self.per in ("role", "warp"), f"one thread per {self.per!r}")


@op("control.yield", effects=(Effect.CONTROL,), executes=Actor.WARP, terminator=True)
class Yield(Op):
    """End of a region's block; gives its values to the operation around it."""

    values: tuple[Value, ...] = operands()


@op("control.declare", stages=Stage.MACHINE, effects=(Effect.STORAGE,), executes=Actor.THREAD)
class Declare(Op):
    """A storage for carried values, without a value yet; its type is that of the result. Placed
    before a loop or branch by assign_storage; the loop's argument and result of that storage name
    it too."""

    type: Type = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (self.type,)


@op("control.assign", stages=Stage.MACHINE, effects=(Effect.STORAGE,), executes=Actor.THREAD)
class Assign(Op):
    """Copy a value into a declared storage.

    Once storages are assigned, these copies and not the yields move carried values: one before a
    loop (first values), one before each yield (next values).
    """

    source: Value = operand()
    target: Value = operand()

    def verify(self) -> None:
        check(
            same_but_uniformity(self.source.type, self.target.type),
            f"{self.source} assigned to {self.target}",
        )
        check(isinstance(self.target.owner, Declare), "the target is not a declared storage")


@op("control.duplicate", stages=Stage.MACHINE, effects=(Effect.STORAGE,), executes=Actor.THREAD)
class Duplicate(Op):
    """A copy in a storage of its own: breaks the cycles of a parallel copy (`a, b = b, a`)."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (self.value.type,)


def uniformity(value: Value) -> Uniformity:
    """Uniformity of a scalar; other values do not weaken anything."""
    return value.type.uniform if isinstance(value.type, Scalar) else Uniformity.GRID


def weaken(type: Type, uniform: Uniformity) -> Type:
    """A scalar type made at most as uniform as `uniform`; other types unchanged."""
    if isinstance(type, Scalar):
        return Scalar(type.dtype, max(type.uniform, uniform))
    return type


def same_but_uniformity(a: Type, b: Type) -> bool:
    """Equal types, scalars of any uniformity."""
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.dtype == b.dtype
    return a == b
