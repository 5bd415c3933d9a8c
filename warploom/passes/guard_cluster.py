"""Guards what blocks of a cluster do to each other: none begins before the barriers of all are made
(lower_tiles sees to it where they are made), none ends while others may still reach it, and who
waits for peers sees what they wrote."""

from __future__ import annotations

from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cluster, mbarrier, remote, tma
from warploom.ir.ops.roles import Split
from warploom.ir.types import RemoteBarrier, RemoteTile


def guard_cluster(kernel: Kernel, target: Target) -> None:
    """Let all warps of a cluster meet at the end where blocks reach their peers.

    Needs: the tile stage, positions of pipes threaded. Gives: `cluster.sync` at the end of the
    roles that reach peers and before the first access to a peer's tile, the scope of every wait
    that peers end.
    """
    _widen_waits(kernel)
    if not reaches_peers(kernel):
        return
    _meet_at_begin(kernel.body)
    if not any(_outlasts(op) for op in walk(kernel.body)):
        return
    last = kernel.body.ops[-2] if len(kernel.body.ops) > 1 else None
    bodies = _reaching(last.bodies) if isinstance(last, Split) else [kernel.body]
    if not all(map(_met_since, bodies)):
        for body in bodies:
            _meet_at_end(body)


def _reaching(roles: tuple[Block, ...]) -> list[Block]:
    """The roles whose end keeps a block alive until its peers are done with it: those that reach
    peers themselves. Multicast copies are over when the peers have waited for them; they count
    where there is nothing else. Warps that have ended do not count at the barrier."""
    themselves = [r for r in roles if any(_by_itself(op) for op in walk(r))]
    return themselves or [r for r in roles if any(op.EFFECTS for op in r.ops[:-1])]


def _by_itself(op: Op) -> bool:
    """Whether an operation reaches a peer otherwise than by a multicast copy."""
    if isinstance(op, cluster.ArrivePeers):
        return op.steps != (0,)
    return any(isinstance(v.type, RemoteBarrier | RemoteTile) for v in op.operand_values())


def _outlasts(op: Op) -> bool:
    """Whether a peer could end before an operation has reached it. Bytes of a store that is done
    later are over when the peer has waited for them: no barrier of the cluster says that, and a
    block that ends without that wait has left its barrier inside a phase."""
    if isinstance(op, remote.Send):
        return False
    return _by_itself(op) or (isinstance(op, tma.Load) and op.multicast is not None)


def reaches_peers(kernel: Kernel) -> bool:
    """Whether blocks write to each other's shared memory or arrive at each other's barriers."""
    return any(_reaches(op) for op in walk(kernel.body))


def _reaches(op: Op) -> bool:
    if isinstance(op, tma.Load):
        return op.multicast is not None
    if isinstance(op, cluster.ArrivePeers):
        return op.steps != (0,)
    return isinstance(op, cluster.BarrierOn | remote.TileOn)


def _meet_at_begin(body: Block) -> None:
    """A barrier of the cluster before the first access to a peer's tile: a block that has not begun
    has no shared memory. Where barriers are made, one stands there."""
    used = {value for op in walk(body) for value in op.operand_values()}
    for number, op in enumerate(body.ops):
        made = isinstance(op, mbarrier.Alloc) and op.result in used
        if made or isinstance(op, cluster.Sync):
            return
        inside = (inner for region in op.regions() for inner in walk(region))
        if any(isinstance(inner, remote.TileOn) for inner in (op, *inside)):
            why = "no block is reached before it has begun"
            body.ops.insert(number, cluster.Sync(ordered=False, why=why, loc=op.loc))
            return


def _met_since(body: Block) -> bool:
    """Whether all of the cluster meet behind the last access of a role to peers, as it is written,
    and nothing is under way then."""
    if any(_goes_on(op) for op in walk(body)):
        return False
    meetings = [n for n, op in enumerate(body.ops) if isinstance(op, cluster.Sync) and op.ordered]
    behind = body.ops[meetings[-1] :] if meetings else body.ops
    return bool(meetings) and not any(_by_itself(op) for op in walk(Block((), behind)))


def _goes_on(op: Op) -> bool:
    """Whether an operation leaves something under way to peers, or arrives at what they may end."""
    if isinstance(op, remote.Send | remote.Copy | cluster.ArrivePeers):
        return True
    return isinstance(op, tma.Load) and op.multicast is not None


def _meet_at_end(body: Block) -> None:
    """A barrier of the cluster as the last thing, unless one stands there."""
    end = body.ops[-1]
    if len(body.ops) > 1 and isinstance(body.ops[-2], cluster.Sync):
        return
    made = cluster.Sync(why="no block ends while its peers may reach it", loc=end.loc)
    body.ops.insert(-1, made)


def _widen_waits(kernel: Kernel) -> None:
    """A wait that ordered arrivals or bytes of peers end acquires what they wrote."""
    ops = list(walk(kernel.body))
    arrived: set[Value] = set()
    for op in ops:
        if isinstance(op, cluster.Arrive) and op.ordered:
            owner = op.barrier.owner
            assert isinstance(owner, cluster.BarrierOn)
            arrived.add(_barriers(owner.barrier))
        elif isinstance(op, remote.Send | remote.Copy) or (
            isinstance(op, cluster.ArrivePeers) and op.ordered and op.steps != (0,)
        ):
            arrived.add(_barriers(op.barrier))
    for op in ops:
        if isinstance(op, mbarrier.Wait | mbarrier.Test) and _barriers(op.barrier) in arrived:
            op.scope = "cluster"


def _barriers(barrier: Value) -> Value:
    """The barriers that one was chosen from."""
    return barrier.owner.barriers if isinstance(barrier.owner, mbarrier.At) else barrier
