"""Roles as actors: replicas, registers, named barriers, turns, seeds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.codegen.asynchronous import Asynchronous, ring_copy
from warploom.base.dtypes import bf16, i32, i64
from warploom.base.errors import CheckError
from warploom.ir.op import Block, Value
from warploom.ir.ops import control, global_memory, index, mbarrier, registers, roles, sync
from warploom.sim.actors import SCHEDULES, Actor, Schedule, Scheduler, schedule_of
from warploom.sim.program import prepare

Body = Callable[[Asynchronous], None]


def kernel_of(
    bodies: dict[str, tuple[int, int, Body]], before: Body | None = None, barriers: Any = None
) -> Any:
    """A kernel of roles: name to warps, replicas, body. One output `y` of i64."""
    m = Asynchronous()
    m.warps = sum(warps * replicas for warps, replicas, _ in bodies.values())
    m.tensor("y", i64)
    if before is not None:
        before(m)
    blocks = []
    for _, _, body in bodies.values():
        block = Block()
        with m.region(block):
            body(m)
        blocks.append(block)
    count = len(bodies)
    m.build.add(
        roles.Split(
            names=tuple(bodies),
            warps=tuple(w for w, _, _ in bodies.values()),
            replicas=tuple(r for _, r, _ in bodies.values()),
            registers=(0,) * count,
            first=tuple(range(count)),
            barrier=barriers or tuple(range(1, count + 1)),
            bodies=tuple(blocks),
        )
    )
    m.written.append(0)
    return m.kernel()


def number(m: Asynchronous, value: int) -> Value:
    return m.build.const(value, i64)


def put(m: Asynchronous, value: Value, at: Value | int) -> None:
    """y[at + warp·32 + lane] = value."""
    lane = m.build.emit(index.Lane(rank=1))
    warp = m.binary("mul", m.build.emit(index.Warp(rank=1)), m.splat(32, i32))
    base = m.build.const(at) if isinstance(at, int) else at
    tile = m.build.emit(registers.Splat(value=value, rank=1))
    offset = m.binary("add", warp, lane)
    m.build.add(global_memory.Store(tensor=m.params[0], value=tile, base=base, offset=offset))


def run(kernel: Any, size: int, **options: Any) -> np.ndarray:
    y = np.zeros(size, np.int64)
    result = prepare(kernel).run((1,), [y], **options)
    assert not result.findings, [f.render() for f in result.findings]
    return y


# ---- roles -------------------------------------------------------------------------------------


def test_warps_count_within_a_replica_and_replicas_have_numbers():
    def body(m: Asynchronous) -> None:
        replica = m.build.emit(roles.Replica())
        put(m, number(m, 5), m.scalar("mul", replica, 64))

    y = run(
        kernel_of({"one": (1, 1, lambda m: put(m, number(m, 7), 256)), "two": (2, 4, body)}), 512
    )
    assert (y[:256] == 5).all()
    assert (y[256:288] == 7).all()
    assert not y[288:].any()


def test_a_ring_between_two_roles_copies_everything():
    x = np.arange(64 * 64 * 5).astype(bf16.numpy).reshape(-1, 64)
    for steps in range(6):
        for seed in range(4):
            y = np.zeros_like(x)
            result = _copy(x, y, steps, seed)
            assert not result.findings
            assert (y[: 64 * steps] == x[: 64 * steps]).all()
            assert not y[64 * steps :].any()


def _copy(x: np.ndarray, y: np.ndarray, steps: int, seed: int) -> Any:
    return prepare(ring_copy()).run((1,), [x, y, steps], checked=True, seed=seed)


# ---- registers ---------------------------------------------------------------------------------


def set_to(count: int, grow: bool) -> Body:
    return lambda m: m.build.add(roles.SetRegisters(count=count, grow=grow))


def test_registers_are_taken_from_what_others_give():
    give, take = set_to(40, False), set_to(232, True)
    run(kernel_of({"take": (4, 1, take), "give": (4, 1, give)}), 1)


def test_registers_that_nobody_gives_are_a_deadlock():
    kernel = kernel_of({"keep": (4, 1, lambda m: None), "take": (8, 1, set_to(240, True))})
    with pytest.raises(CheckError, match=r"`take` waits at line \d+ for [\d,]+ reg") as caught:
        run(kernel, 1)
    assert caught.value.code == "D001"


def test_registers_are_set_in_the_right_direction():
    def twice(m: Asynchronous) -> None:
        set_to(40, False)(m)
        set_to(80, False)(m)

    kernel = kernel_of({"a": (4, 1, twice), "b": (8, 1, lambda m: None)})
    with pytest.raises(CheckError) as caught:
        run(kernel, 1)
    assert caught.value.code == "M017"


# ---- named barriers ----------------------------------------------------------------------------


def meet(threads: int, number: int, per_replica: bool = False) -> Body:
    made = {"threads": threads, "id": number, "per_replica": per_replica}
    return lambda m: m.build.add(sync.Barrier(**made))


def test_roles_meet_at_a_barrier_of_both():
    def first(m: Asynchronous) -> None:
        put(m, number(m, 1), 0)
        meet(64, 3)(m)

    def second(m: Asynchronous) -> None:
        meet(64, 3)(m)
        put(m, number(m, 2), 0)

    for seed in range(6):
        y = run(kernel_of({"b": (1, 1, second), "a": (1, 1, first)}), 32, seed=seed)
        assert (y == 2).all()


def test_replicas_have_barriers_of_their_own():
    run(kernel_of({"math": (4, 2, meet(128, 1, True))}), 1, checked=True)
    with pytest.raises(CheckError) as caught:
        run(kernel_of({"math": (4, 2, meet(128, 1))}), 1)
    assert caught.value.code == "M018"


def test_a_barrier_that_a_role_never_reaches_is_a_deadlock():
    kernel = kernel_of({"a": (1, 1, meet(64, 2)), "b": (1, 1, lambda m: None)})
    with pytest.raises(CheckError, match="barrier 2: 32 of 64 threads have come"):
        run(kernel, 1)


# ---- one thread, polls -------------------------------------------------------------------------


@pytest.mark.parametrize(("per", "arrivals"), [("role", 1), ("warp", 4), (None, 128)])
def test_arrivals_count_the_threads_that_act(per: str | None, arrivals: int):
    made: list[Value] = []

    def arrive(m: Asynchronous) -> None:
        if per is None:
            m.build.add(mbarrier.Arrive(barrier=m.address(made[0])))
            return
        with m.one_thread(per):
            m.build.add(mbarrier.Arrive(barrier=m.address(made[0])))

    def wait(m: Asynchronous) -> None:
        m.build.add(mbarrier.Wait(barrier=m.address(made[0]), parity=m.build.const(0)))
        put(m, number(m, 9), 0)

    def before(m: Asynchronous) -> None:
        made.append(m.barriers("done", 1, arrivals))

    y = run(kernel_of({"wait": (1, 1, wait), "arrive": (4, 1, arrive)}, before), 32)
    assert (y == 9).all()


def test_a_poll_tells_whether_a_phase_has_completed():
    made: list[Value] = []

    def poll(m: Asynchronous) -> None:
        address, zero = m.address(made[0]), m.build.const(0)
        for at in (0, 32):
            done = m.build.emit(mbarrier.Test(barrier=address, parity=zero))
            yes, no = Block(), Block()
            with m.region(yes):
                put(m, number(m, 1), at)
            with m.region(no):
                put(m, number(m, 2), at)
            m.build.add(control.If(condition=done, then=yes, orelse=no))
            if not at:
                m.build.add(mbarrier.Wait(barrier=address, parity=zero))

    def arrive(m: Asynchronous) -> None:
        with m.one_thread():
            m.build.add(mbarrier.Arrive(barrier=m.address(made[0])))

    y = run(
        kernel_of(
            {"poll": (1, 1, poll), "arrive": (1, 1, arrive)},
            lambda m: made.append(m.barriers("done", 1, 1)),
        ),
        64,
    )
    assert set(y[:32]) <= {1, 2}
    assert (y[32:] == 1).all()


# ---- scheduler ---------------------------------------------------------------------------------


class Nothing:
    """No asynchronous work."""

    def next_late(self, newest: bool = False) -> None:
        return None

    def any_early(self) -> list[Any]:
        return []

    def left(self, actor: Actor) -> None:
        pass


def turns(seed: int, name: str = "") -> list[int]:
    """The order in which three actors that always give way take their turns."""
    scheduler, order = Scheduler(Nothing(), Schedule(seed, name)), []

    def go(me: int) -> Any:
        for _ in range(5):
            order.append(me)
            yield None

    for me in range(3):
        actor = Actor("role", me, 1, 0, me)
        actor.run = go(me)
        scheduler.add(actor)
    assert scheduler.run()
    return order


def test_without_a_seed_actors_take_turns():
    assert turns(0) == [0, 1, 2] * 5


@pytest.mark.parametrize("name", ["priorities", "random"])
def test_a_seed_replays_and_seeds_differ(name: str):
    assert turns(3, name) == turns(3, name)
    assert len({tuple(turns(seed, name)) for seed in range(20)}) > 10


def test_default_seeds_cover_all_schedules():
    assert {schedule_of(seed) for seed in range(5)} == set(SCHEDULES)
    assert turns(4) == turns(4, "random") != turns(4, "priorities")


class Copies:
    """Asynchronous work that lets an actor go on when its first piece is done."""

    def __init__(self, names: str) -> None:
        self.under_way, self.done = list(names), []

    def finish(self, name: str) -> None:
        self.under_way.remove(name)
        self.done.append(name)

    def next_late(self, newest: bool = False) -> Any:
        if not self.under_way:
            return None
        name = self.under_way[-1 if newest else 0]
        return lambda: self.finish(name)

    def any_early(self) -> list[Any]:
        return [lambda name=name: self.finish(name) for name in self.under_way]

    def left(self, actor: Actor) -> None:
        pass


class Something:
    """A wait until any copy is done."""

    def __init__(self, copies: Copies) -> None:
        self.copies = copies

    def ready(self) -> bool:
        return bool(self.copies.done)


@pytest.mark.parametrize(
    ("name", "before", "after"), [("late", "", "a"), ("last", "", "c"), ("early", "abc", "abc")]
)
def test_when_asynchronous_work_is_done(name: str, before: str, after: str):
    copies = Copies("abc")
    scheduler, seen = Scheduler(copies, Schedule(0, name)), []

    def go() -> Any:
        yield None
        seen.append("".join(copies.done))
        yield Something(copies)
        seen.append("".join(copies.done))

    actor = Actor("role", 0, 1, 0, 0)
    actor.run = go()
    scheduler.add(actor)
    assert scheduler.run()
    assert seen == [before, after]
