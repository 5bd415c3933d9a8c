"""Turns: a strict rotation of roles on something that one of them uses at a time.

Participant i waits on an mbarrier of its own, which its predecessor completes at the end of its
turn. Who ends says so on a second barrier, in a last turn, and is passed over from then on: so
participants may take different numbers of turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warploom.base.dtypes import i32
from warploom.ir.op import Value
from warploom.ir.ops import control, mbarrier
from warploom.ir.ops import roles as role_ops
from warploom.language import core
from warploom.language.barrier import Barrier
from warploom.language.context import Refused, builder, current, need_count, need_top, vocabulary
from warploom.language.regions import Region
from warploom.language.roles import Joint, RolePlan, forget, need_role
from warploom.language.values import Scalar, index_value, wrap

_MOST = 32


@dataclass(frozen=True, slots=True)
class Player:
    """The participants that the replicas of one role are, from `first` on."""

    plan: RolePlan
    first: int
    by_replica: bool

    def number(self) -> Value:
        """The number of the one that this replica is."""
        first = builder().const(self.first)
        if not self.by_replica:
            return first
        assert self.plan.replica is not None
        return core.binary("add", self.plan.replica, first) if self.first else self.plan.replica


class Turns(Joint):
    """A rotation of `count` participants."""

    attributes = ("turn",)

    def __init__(self, count: int) -> None:
        self.count = count
        self.ring = current().ring()
        # How many arrivals hand a turn over is known when all roles are.
        self.go_op = builder().add(mbarrier.Alloc(count=count, arrivals=1), "go")
        self.gone_op = builder().add(mbarrier.Alloc(count=count, arrivals=1), "gone")
        self.go = Barrier(self.go_op.result, count)
        self.gone = Barrier(self.gone_op.result, count)
        self.players: list[Player] = []
        self.hand_overs: list[control.OneThread] = []

    def __repr__(self) -> str:
        return f"turns of {self.count}"

    def call(self, name: str) -> None:
        """Name the barriers, for reports."""
        for value, part in ((self.go.value, "go"), (self.gone.value, "gone")):
            value.name = value.name if value.name != part else f"{name}_{part}"

    def turn(self, who: Scalar | int) -> Turn:
        """`with turns.turn(who):` is done when it is the turn of participant `who`, the same number
        for the whole role (its replica's, or a constant).

        Executes: the role.
        Since: sm_90.
        PTX: mbarrier.try_wait.parity, mbarrier.arrive.
        """
        return Turn(self, core.convert(index_value(who, "who"), i32))

    def enter(self, plan: RolePlan, who: Value) -> Player:
        """Enter a role as a participant."""
        player = self._player(plan, who)
        for known in self.players:
            if known.plan is plan:
                if known != player:
                    raise Refused(
                        "P041",
                        "a role takes the turns of two participants",
                        argument="who",
                        hint="one number a role: its replica's, or a constant",
                    )
                return known
        self.players.append(player)
        plan.endings.append(lambda: self.end(player))
        return player

    def _player(self, plan: RolePlan, who: Value) -> Player:
        facts = current().facts
        form = facts.affine(who)
        roots = [(facts.value_of(root).owner, count) for root, count in form.terms]
        by_replica = len(roots) == 1 and isinstance(roots[0][0], role_ops.Replica)
        if roots and not (by_replica and roots[0][1] == 1):
            raise Refused(
                "P041",
                "the number of a participant is neither a constant nor that of the replica",
                argument="who",
                hint="write `turns.turn(r)` with the number that `wl.role(…) as r` gives",
            )
        first, own = form.constant, plan.replicas if by_replica else 1
        if first < 0 or first + own > self.count or own != plan.replicas:
            last = f" to {first + own - 1}" if own > 1 else ""
            raise Refused(
                "P041",
                f"`{plan.name}` (replicas: {plan.replicas}) takes part as {first}{last} in "
                f"{self!r}",
                argument="who",
                notes=(f"participants are 0 to {self.count - 1}, each one replica of one role",),
            )
        return Player(plan, first, by_replica)

    # ---- one turn --------------------------------------------------------------------------

    def begin(self, player: Player) -> None:
        """Wait for one's turn. That of participant 0 has come at the start."""
        who = player.number()
        position = builder().add(role_ops.Position(ring=self.ring, stages=1))
        phase = position.results[1]
        first = core.convert(core.compare("eq", who, 0), i32)
        self.go[wrap(who)].wait(wrap(core.binary("xor", phase, first)))

    def hand_over(self, player: Player) -> None:
        """Let the next participant go on that has not ended; oneself where all others have."""
        who = player.number()
        build = builder()
        with build.one_thread("warp") as made:
            target = who
            for step in reversed(range(1, self.count)):
                other = core.binary("mod", core.binary("add", who, step), self.count)
                gone = self.gone[wrap(other)].test(0)
                target = core.select(gone.value, target, other)
            build.add(mbarrier.Arrive(barrier=self.go[wrap(target)].one()))
        self.hand_overs.append(made)

    def end(self, player: Player) -> None:
        """The last turn of a participant: all know of it before the next turn begins."""
        self.begin(player)
        who = player.number()
        build = builder()
        with build.one_thread():
            build.add(mbarrier.Arrive(barrier=self.gone[wrap(who)].one()))
        self.hand_over(player)

    # ---- when all roles are known ----------------------------------------------------------

    def close(self, plans: list[RolePlan]) -> None:
        """Check that all participants are there, and set how they hand over."""
        players = [p for p in self.players if p.plan in plans]
        if not players:
            forget((self.go.value, self.gone.value), plans)
            return
        found = sorted(p.first + i for p in players for i in range(p.plan.replicas))
        if found != list(range(self.count)):
            roles = ", ".join(f"`{p.plan.name}` ({p.plan.replicas})" for p in players)
            raise Refused(
                "P040",
                f"{self!r} have the participants {', '.join(map(str, found))}",
                notes=(f"from the roles {roles}; each of 0 to {self.count - 1} takes part once",),
                hint=f"`wl.turns({len(found)})`, and number the participants from 0",
                place=self.go_op.loc,
            )
        warps = {p.plan.warps for p in players}
        if len(warps) == 1:
            self.go_op.arrivals = warps.pop()
            return
        for made in self.hand_overs:  # one arrival, whoever hands over
            made.per, made.meet = "role", True


class Turn(Region):
    """One turn of one participant."""

    keyword = "`turn`"

    def __init__(self, turns: Turns, who: Value) -> None:
        self.turns = turns
        self.who = who
        self.player: Player | None = None

    def enter(self) -> Any:
        """Wait for it."""
        held = current()
        plan = need_role("turn")
        if self.turns in held.turns:
            raise Refused(
                "P041",
                "a turn stands inside another one of the same rotation",
                hint="end the first before the second begins",
            )
        self.player = self.turns.enter(plan, self.who)
        self.turns.begin(self.player)
        held.turns.append(self.turns)

    def leave(self) -> None:
        """Hand over."""
        current().turns.remove(self.turns)
        assert self.player is not None
        self.turns.hand_over(self.player)


@vocabulary
def turns(count: int) -> Turns:
    """A strict rotation of `count` participants, replicas of roles, on something that one of them
    uses at a time: `with unit.turn(r):` in participant r waits for its turn and hands over at the
    end. The first turn is participant 0's; one whose role has ended is passed over.

    What a participant did in its turn is seen by the next ones in theirs.

    Shapes: none.
    Executes: the block, before its roles split.
    Since: sm_90.
    PTX: mbarrier.
    """
    need_count("count", count, 1, _MOST)
    need_top("a rotation")
    made = Turns(count)
    current().joints.append(made)
    return made
