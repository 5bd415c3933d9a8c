"""Orders the shared-memory accesses of a role as the program text orders them.

Between two accesses to the same bytes of shared memory, at least one a write, that different
threads may make, all warps of the role must meet. What threads did to shared memory passes a fence
before a unit (copy engine, matrix unit) goes on with it, in this role or, after an arrival, in
another. Loops are walked twice, so that the last accesses of one trip meet the first of the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import cp_async, tma, wgmma
from warploom.ir.ops.cluster import Sync
from warploom.ir.ops.control import If, Loop, OneThread, Yield
from warploom.ir.ops.flags import Poll
from warploom.ir.ops.global_memory import Atomic
from warploom.ir.ops.roles import Split
from warploom.ir.ops.sync import Agree, Arrive, Barrier, FenceAsync, WarpSync
from warploom.passes.touches import COPY, PRODUCT, THREADS, Memory, Touch, arrives

Touches = frozenset[Touch]
_NONE: Touches = frozenset()


@dataclass(frozen=True, slots=True)
class Open:
    """What is not settled at a point of a role.

    `pending`: since all warps met last. `unfenced`: by threads, since the last fence, where some
    unit comes to the same bytes. `flying`: reads by units that nobody has waited for.
    """

    pending: Touches = _NONE
    unfenced: Touches = _NONE
    flying: Touches = _NONE

    def __or__(self, other: Open) -> Open:
        return Open(
            self.pending | other.pending,
            self.unfenced | other.unfenced,
            self.flying | other.flying,
        )

    def met(self) -> Open:
        """All warps have met."""
        return replace(self, pending=_NONE)

    def waited(self, agent: str, left: int) -> Open:
        """Reads of a unit are known to be done, but for those of the `left` last groups."""
        done = frozenset(t for t in self.flying if t.agent == agent)
        flying = self.flying if left else self.flying - done
        return replace(self, pending=self.pending | done, flying=flying)

    def again(self) -> Open:
        """Seen from the next trip of a loop, where the same text may touch other elements."""
        return Open(*(frozenset(replace(t, threads=None) for t in part) for part in self._parts()))

    def _parts(self) -> tuple[Touches, Touches, Touches]:
        return self.pending, self.unfenced, self.flying


def insert_role_barriers(kernel: Kernel, target: Target) -> None:
    """Insert `sync.barrier` (`sync.warp` where the role is one warp) before each access that needs
    it, and `sync.fence_async` where units follow threads.

    Needs: planned shared memory. Gives: shared accesses of the role ordered on every path.
    """
    _Inserter(kernel).block(kernel.body, Open())


class _Inserter:
    def __init__(self, kernel: Kernel) -> None:
        self.warps = kernel.warps
        self.barrier_id = 0
        self.per_replica = False
        self.memory = Memory(kernel)

    def block(self, block: Block, state: Open, behind: Op | None = None) -> Open:
        """Insert into a block entered with these accesses open; gives those open at its end.
        `behind`: what comes after the block, if that is known."""
        ops: list[Op] = []
        for op, following in zip(block.ops, [*block.ops[1:], None], strict=True):
            following = behind if isinstance(following, Yield) else following
            if isinstance(op, Loop):
                state = self.loop(op, state)
            elif isinstance(op, If):
                then = self.block(op.then, state, following)
                state = then | self.block(op.orelse, state, following)
            elif isinstance(op, OneThread):
                state = self.one_thread(op, state, ops)
            elif isinstance(op, Split):
                self.roles(op, state, ops)
            elif isinstance(op, Barrier) and not op.threads:
                op = self.barrier(op.why, op)
                state = state.met()
            else:
                state = self.meet(op, self.accesses(op), state, ops)
                if isinstance(op, Atomic) and op.releases:
                    state = self.publish(op, state, ops)
                state = self.hand_over(op, state, ops)
                state = self.after(op, state)
            ops.append(op)
            why = _meets_behind(op)
            if why:
                if not isinstance(following, Barrier if self.warps > 1 else Barrier | WarpSync):
                    ops.append(self.barrier(why, op))
                state = state.met()
        block.ops = ops
        return state

    def hand_over(self, op: Op, state: Open, ops: list[Op]) -> Open:
        """A barrier of other roles too lets their units go on with what this role did."""
        others = isinstance(op, Arrive) or (isinstance(op, Barrier) and op.id != self.barrier_id)
        if others and state.unfenced:
            ops.append(FenceAsync(why="what the role did, then other roles", loc=op.loc))
            state = replace(state, unfenced=_NONE)
        return state

    def accesses(self, op: Op) -> list[Touch]:
        """All accesses of an operation."""
        touch = self.memory.of_threads(op)
        return self.memory.of_agents(op) if touch is None else [touch]

    def after(self, op: Op, state: Open) -> Open:
        """What is open once an operation is done, which has met what it had to meet."""
        if isinstance(op, Agree):
            op.threads, op.id = 32 * self.warps, self.barrier_id
            op.per_replica = self.per_replica
        met = isinstance(op, Barrier | Sync | Agree)
        if met or (isinstance(op, WarpSync) and self.warps == 1):
            return state.met()
        if isinstance(op, FenceAsync):
            return state if op.space == "global" else replace(state, unfenced=_NONE)
        if isinstance(op, wgmma.WaitGroup | wgmma.Drain):
            return state.waited(PRODUCT, op.pending)
        if isinstance(op, tma.Wait):
            return state.waited(COPY, op.pending)
        if isinstance(op, cp_async.Wait):
            landed = frozenset(t for t in state.flying if t.agent == THREADS)
            crossing = frozenset(t for t in landed if self.memory.crosses(t))
            state = state.waited(THREADS, op.pending)
            return replace(state, unfenced=state.unfenced | crossing)
        for touch in self.accesses(op):
            if isinstance(op, cp_async.CopyGroups):
                # Others see it once its threads have waited, and all have met after that.
                flying = state.flying | {replace(touch, agent=THREADS)}
                state = replace(state, flying=flying, pending=state.pending | {touch})
            elif touch.agent:
                # What a unit writes is known by a barrier of its own.
                seen = frozenset() if touch.writes else frozenset((touch,))
                state = replace(state, flying=state.flying | seen)
            else:
                crossing = frozenset((touch,)) if self.memory.crosses(touch) else _NONE
                state = replace(
                    state,
                    pending=state.pending | {touch},
                    unfenced=state.unfenced | crossing,
                )
        return state

    def meet(self, op: Op, touches: Iterable[Touch], state: Open, ops: list[Op]) -> Open:
        """Put a fence and a barrier before `op`, which makes these accesses, where one is
        needed."""
        touches = sorted(touches, key=lambda t: t.order)
        crossing = [
            (enemy, touch)
            for enemy in sorted(state.unfenced, key=lambda t: t.order)
            for touch in touches
            if touch.is_asynchronous and enemy.overlaps(touch)
        ]
        pairs = [
            (enemy, touch)
            for enemy in sorted(state.pending, key=lambda t: t.order)
            for touch in touches
            if enemy.conflicts(touch)
        ]
        if not crossing and not pairs:
            return state
        enemy, touch = (crossing or pairs)[0]
        return self.settle(f"{enemy.what}, then {touch.what}", op, bool(crossing), state, ops)

    def settle(self, why: str, op: Op, fence: bool, state: Open, ops: list[Op]) -> Open:
        """All warps meet, after a fence if units follow."""
        if fence:
            ops.append(FenceAsync(why=why, loc=op.loc))
            state = replace(state, unfenced=_NONE)
        ops.append(self.barrier(why, op))
        return state.met()

    def publish(self, op: Op, state: Open, ops: list[Op]) -> Open:
        """All warps meet before some threads publish what all did."""
        if ops and isinstance(ops[-1], WarpSync if self.warps == 1 else Barrier):
            return state  # they have just met
        return self.settle("what the role did, then its release", op, False, state, ops)

    def one_thread(self, op: OneThread, state: Open, ops: list[Op]) -> Open:
        """All warps meet before one thread goes on alone with what others did."""
        touches = [t for inner in walk(op.body) for t in self.accesses(inner)]
        state = self.meet(op, touches, state, ops)
        if op.meet and self.warps > 1:
            op.meet = False
            why = "all warps, then one thread for them"
            state = self.settle(why, op, bool(state.unfenced), state, ops)
        if arrives(op.body):
            why = "what the role did, then its arrival"
            if op.per == "role" and self.warps > 1 and state.pending:
                state = self.settle(why, op, bool(state.unfenced), state, ops)
            elif state.unfenced:
                ops.append(FenceAsync(why=why, loc=op.loc))
                state = replace(state, unfenced=_NONE)
        for inner in walk(op.body):
            state = self.after(inner, state) if not isinstance(inner, FenceAsync) else state
        return state

    def loop(self, op: Loop, state: Open) -> Open:
        # The second walk enters the body with what its own end leaves open.
        leaves = self.block(op.body, state).again()
        return state | self.block(op.body, state | leaves)

    def roles(self, op: Split, state: Open, ops: list[Op]) -> None:
        """Each role keeps its own order, with its own barrier; order between roles is not ours."""
        if state.pending or state.unfenced:
            self.settle("what the block did, then its roles", op, bool(state.unfenced), state, ops)
        for number, body in enumerate(op.bodies):
            self.warps = op.warps[number]
            self.barrier_id = op.barrier[number]
            self.per_replica = op.replicas[number] > 1
            self.block(body, Open())

    def barrier(self, why: str, op: Op) -> Op:
        if self.warps == 1:
            return WarpSync(why=why, loc=op.loc)
        return Barrier(
            threads=32 * self.warps,
            id=self.barrier_id,
            per_replica=self.per_replica,
            why=why,
            loc=op.loc,
        )


def _meets_behind(op: Op) -> str:
    """Why all warps meet behind an operation, if they do."""
    if isinstance(op, Atomic) and op.acquires and not op.returns:
        return "an acquire, then what the role does"
    if isinstance(op, OneThread) and any(_for_all(inner) for inner in op.body.ops):
        return "one thread has waited, for the role"
    return ""


def _for_all(op: Op) -> bool:
    return isinstance(op, Poll) and op.for_all
