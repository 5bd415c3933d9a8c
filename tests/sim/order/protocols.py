"""Protocols for the abstract machine: correct ones with their parameters, and broken variants."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.order.abstract import Op, Program


def ring(
    slots: int,
    steps: int,
    consumers: int = 1,
    warps: int = 2,
    *,
    products: bool = False,
    behind: int = 0,
    expected: int = 64,
    arrivals: int | None = None,
    flip: int = 1,
    retire: bool = True,
    wait: bool = True,
    sync: bool = True,
    fence: bool = True,
    stop: int = 0,
    two: bool = False,
) -> Program:
    """One producer copies items to a ring, each consumer takes all of them. `products`: they are
    read by the matrix unit, handed back `behind` items later, by one thread; else by loads."""
    each = 1 if products else warps
    barriers: dict[str, int] = {}
    for s in range(slots):
        barriers[f"full{s}"] = 1
        barriers[f"empty{s}"] = each * consumers if arrivals is None else arrivals
    load: list[Op] = []
    for i in range(steps):
        s, lap = i % slots, i // slots
        load.append(("wait_one", f"empty{s}", lap % 2 ^ flip))
        load.append(("expect", f"full{s}", expected))
        if two:
            load.append(("copy", (s, f"full{s}", 32), (8 + s, f"full{s}", 32)))
        else:
            load.append(("copy", (s, f"full{s}", 64)))
    actors = {"load": load}
    for c in range(consumers):
        ops: list[Op] = []
        held: list[int] = []
        for i in range(steps - (stop if c == 0 else 0)):
            s, lap = i % slots, i // slots
            if wait:
                ops.append(("wait", f"full{s}", lap % 2))
            if products:
                ops.append(("mma", s, 8 + s) if two else ("mma", s))
                held.append(s)
                if retire:
                    ops.append(("retire", behind))
                if len(held) > behind:
                    ops.append(("arrive_one", f"empty{held.pop(0)}"))
            else:
                ops.append(("read", s))
                if fence:
                    ops.append(("fence",))
                if sync:
                    ops.append(("sync",))
                ops.append(("arrive_each", f"empty{s}"))
        ops.append(("retire", 0))
        ops += [("arrive_one", f"empty{s}") for s in held]
        actors[f"math{c}"] = ops
    return Program(barriers, actors, {f"math{c}": warps for c in range(consumers)})


def turns(slots: int, workers: int, steps: int, ordered: bool) -> Program:
    """Items go to one worker each in rotation. Without `ordered`, a worker only moves its position
    past the others' items: right only where each slot belongs to one worker."""
    barriers = {f"{n}{s}": 1 for s in range(slots) for n in ("full", "empty")}
    barriers |= {f"turn{w}": 1 for w in range(workers)}
    load: list[Op] = []
    work: list[list[Op]] = [[] for _ in range(workers)]
    for i in range(steps):
        s, lap, w = i % slots, i // slots, i % workers
        load.append(("wait_one", f"empty{s}", lap % 2 ^ 1))
        load.append(("expect", f"full{s}", 64))
        load.append(("copy", (s, f"full{s}", 64)))
        if ordered and i >= 1:
            work[w].append(("wait", f"turn{w}", (i // workers - (w == 0)) % 2))
        work[w].append(("wait", f"full{s}", lap % 2))
        work[w] += [("read", s), ("fence",), ("sync",)]
        if ordered and i + 1 < steps:
            work[w].append(("arrive_one", f"turn{(w + 1) % workers}"))
        work[w].append(("arrive_one", f"empty{s}"))
    return Program(barriers, {"load": load} | {f"w{w}": ops for w, ops in enumerate(work)})


def skip_and_release(slots: int, workers: int, steps: int, wait: bool, release: bool) -> Program:
    """The same where a worker waits for and hands back the items of others too."""
    barriers = {f"full{s}": 1 for s in range(slots)}
    barriers |= {f"empty{s}": workers if release else 1 for s in range(slots)}
    load: list[Op] = []
    work: list[list[Op]] = [[] for _ in range(workers)]
    for i in range(steps):
        s, lap = i % slots, i // slots
        load.append(("wait_one", f"empty{s}", lap % 2 ^ 1))
        load.append(("expect", f"full{s}", 64))
        load.append(("copy", (s, f"full{s}", 64)))
        for w in range(workers):
            mine = i % workers == w
            if mine or wait:
                work[w].append(("wait", f"full{s}", lap % 2))
            if mine:
                work[w] += [("read", s), ("fence",)]
            if mine or release:
                work[w].append(("sync",))
                work[w].append(("arrive_one", f"empty{s}"))
    return Program(barriers, {"load": load} | {f"w{w}": ops for w, ops in enumerate(work)})


def meeting(rounds: int, second: bool = True) -> Program:
    """Two actors hand a cell to and fro by named barriers: one writes, the other reads. Without
    `second` the writer does not wait until the cell has been read."""
    one: list[Op] = []
    two: list[Op] = []
    for r in range(rounds):
        if second and r:
            one.append(("bar", 2, 128))
        one += [("write", 0), ("bar_arrive", 1, 128)]
        two += [("bar", 1, 128), ("read", 0)]
        if second and r + 1 < rounds:
            two.append(("bar_arrive", 2, 128))
    return Program({}, {"one": one, "two": two}, {"one": 2, "two": 2})


def epilogue(steps: int, fence: bool = True, meet: bool = True, reads: bool = True) -> Program:
    """A role of two warps fills a cell by stores, one thread copies it out, over one buffer."""
    ops: list[Op] = []
    for i in range(steps):
        if reads:
            ops.append(("stored", 0, True))
        ops += [("meet",), ("write", 0)]
        if fence:
            ops.append(("fence",))
        if meet:
            ops.append(("meet",))
        ops += [("sync",), ("store", 0, i)]
    ops.append(("stored", 0, False))
    return Program({}, {"out": ops}, {"out": 2})


def multicast(slots: int, steps: int, *, local: bool = False) -> Program:
    """Two blocks fill both rings, half a slot each: a source refills once the consumers of both
    blocks have handed back. `local`: it waits for its own only. At the end it waits for the last
    ones. Cells and barriers of block b are numbered from 8·b and named `b.…`."""
    barriers: dict[str, int] = {}
    actors: dict[str, list[Op]] = {}
    for b in (0, 1):
        for s in range(slots):
            barriers[f"{b}.full{s}"] = 1
            barriers[f"{b}.empty{s}"] = 1 if local else 2
    for b in (0, 1):
        load: list[Op] = []
        math: list[Op] = []
        for i in range(steps):
            s, lap = i % slots, i // slots
            load.append(("wait_one", f"{b}.empty{s}", lap % 2 ^ 1))
            load.append(("expect", f"{b}.full{s}", 64))
            half = [(8 * d + 4 * b + s, f"{d}.full{s}", 32) for d in (0, 1)]
            load.append(("copy", *half))
            math.append(("wait", f"{b}.full{s}", lap % 2))
            math += [("read", 8 * b + s), ("read", 8 * b + 4 + s), ("fence",), ("sync",)]
            math.append(("arrive_one", f"{b}.empty{s}"))
            if not local:
                math.append(("arrive_one", f"{1 - b}.empty{s}"))
        for i in range(max(0, steps - slots), steps):
            load.append(("wait_one", f"{b}.empty{i % slots}", i // slots % 2))
        actors |= {f"load{b}": load, f"math{b}": math}
    return Program(barriers, actors)


def grid_barrier(actors: int, rounds: int, lower: int = 0, buffers: int = 2) -> Program:
    """Everyone writes its part, adds to a counter, waits for all, reads all parts."""
    made: dict[str, list[Op]] = {}
    for a in range(actors):
        ops: list[Op] = []
        for r in range(rounds):
            base = r % buffers * actors
            ops += [("write", base + a), ("sync",), ("add", "counter", 1)]
            ops += [("until", "counter", (r + 1) * actors - lower), ("sync",)]
            ops += [("read", base + other) for other in range(actors)]
            if buffers == 1:
                ops += [("sync",), ("add", "done", 1)]
                ops += [("until", "done", (r + 1) * actors), ("sync",)]
        made[f"a{a}"] = ops
    return Program({}, made, targets={"counter": 0, "done": 0})


def flagged(rounds: int, answer: bool = True) -> Program:
    """One writes data and sets a flag to the round; the other waits, reads, answers."""
    one: list[Op] = []
    two: list[Op] = []
    for r in range(1, rounds + 1):
        if answer and r > 1:
            one += [("await", "answer", r - 1), ("sync",)]
        one += [("write", 0), ("sync",), ("set", "flag", r)]
        two += [("await", "flag", r), ("sync",), ("read", 0), ("sync",)]
        if answer:
            two.append(("set", "answer", r))
    return Program({}, {"one": one, "two": two}, targets={"flag": 0, "answer": 0})


def announced(steps: int, where: str) -> Program:
    """One slot with two barriers' worth of mistakes around the announcement: `where` is "alone"
    (right), "other" (another actor announces), "after" (after the arrival) or "twice" (a second
    arrival of the producer)."""
    count = 2 if where == "other" else 1
    load: list[Op] = []
    side: list[Op] = []
    math: list[Op] = []
    for i in range(steps):
        load.append(("wait_one", "empty", i % 2 ^ 1))
        if where == "other":
            side += [("wait_one", "empty", i % 2 ^ 1), ("announce", "full", 64)]
            side.append(("arrive_one", "full"))
            load.append(("arrive_one", "full"))
        elif where == "after":
            load += [("arrive_one", "full"), ("announce", "full", 64)]
        else:
            load.append(("expect", "full", 64))
        load.append(("copy", (0, "full", 64)))
        if where == "twice":
            load.append(("arrive_one", "full"))
        math += [("wait", "full", i % 2), ("read", 0), ("fence",), ("sync",)]
        math.append(("arrive_one", "empty"))
    if where == "other":
        # It arrives first and announces only then.
        for at in range(0, len(side), 3):
            side[at + 1], side[at + 2] = side[at + 2], side[at + 1]
    actors = {"load": load, "side": side, "math": math}
    return Program({"full": count, "empty": 1}, actors)


def _correct() -> Iterator[tuple[str, Program]]:
    for s in (1, 2, 3, 4):
        more = 2 * s + 1
        for n in sorted({0, 1, s - 1, s, s + 1, more}):
            yield f"ring {s}x{n}", ring(s, n)
        yield f"ring {s}, 2 consumers", ring(s, more, 2)
        yield f"ring {s}, read by products", ring(s, more, 2, products=True)
        yield f"multicast {s}", multicast(s, more)
    for s in (2, 3, 4):
        yield f"ring {s}, behind", ring(s, 2 * s + 1, 2, products=True, behind=1, two=True)
        yield f"a slot a worker {s}", turns(s, s, 3 * s, False)
        yield f"in turns {s}", turns(s, 2, 3 * s, True)
        yield f"skip that waits {s}", skip_and_release(s, 2, 3 * s, True, True)
    for n in (1, 2, 3, 4):
        yield f"announcement {n}", announced(n, "alone")
        yield f"meeting {n}", meeting(n)
        yield f"epilogue {n}", epilogue(n)
        yield f"grid barrier {n}", grid_barrier(3, n)
        yield f"grid barrier, one buffer {n}", grid_barrier(2, n, buffers=1)
        yield f"flags {n}", flagged(n)


def _broken() -> Iterator[tuple[str, Program]]:
    yield "ring without wait", ring(2, 5, wait=False)
    yield "ring without warp sync", ring(2, 5, sync=False)
    yield "ring refilled without fence", ring(2, 5, fence=False)
    yield "product not retired", ring(2, 5, products=True, retire=False)
    yield "two products not retired", ring(3, 7, 2, products=True, two=True, retire=False)
    yield "empties count one of two", ring(2, 5, 2, arrivals=2)
    yield "empties count too many", ring(2, 5, 2, arrivals=5)
    yield "producer a lap early", ring(2, 5, flip=0)
    yield "too few bytes announced", ring(2, 5, expected=32)
    yield "too many bytes announced", ring(2, 5, expected=128)
    yield "consumer stops early", ring(2, 5, 2, stop=1)
    for slots, workers in ((3, 2), (4, 3), (5, 2)):
        yield f"token ring {slots}/{workers}", turns(slots, workers, 4 * slots, False)
    yield "skip that only releases", skip_and_release(3, 2, 9, False, True)
    yield "skip that only waits", skip_and_release(3, 2, 9, True, False)
    yield "announced by another", announced(4, "other")
    yield "announced after the arrival", announced(4, "after")
    yield "a second arrival of the producer", announced(4, "twice")
    yield "meeting one way", meeting(3, False)
    yield "epilogue without fence", epilogue(3, fence=False)
    yield "epilogue without meeting", epilogue(3, meet=False)
    yield "epilogue refilled early", epilogue(3, reads=False)
    yield "multicast with local empties", multicast(2, 5, local=True)
    yield "grid barrier too low", grid_barrier(3, 3, lower=1)
    yield "flags without answer", flagged(3, False)


CORRECT = dict(_correct())
BROKEN = dict(_broken())
