"""Tapes: everything by which an engine lets threads wait or go on is noted."""

import inspect

import pytest

from tests.explore.instances import ring
from warploom.sim.explore import tape
from warploom.sim.explore.instance import Instance
from warploom.sim.explore.recording import Recording
from warploom.sim.explore.tape import What
from warploom.sim.order.engine import Engine
from warploom.sim.order.phases import Book
from warploom.sim.order.signals import Signal
from warploom.sim.order.words import WordBook


def methods(kind: type) -> set[str]:
    """Public methods that a class itself defines."""
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


def test_all_of_an_engine_is_noted_or_left_alone():
    """A new method of the engine belongs to one of the two lists."""
    assert methods(Engine) == tape.NOTED | tape.LEFT_ALONE
    assert not tape.NOTED & tape.LEFT_ALONE
    assert tape.NOTED <= set(vars(tape.Tape))
    assert not tape.LEFT_ALONE & set(vars(tape.Tape))


@pytest.mark.parametrize(
    ("kind", "taped", "noted", "left"),
    [
        (
            Book,
            tape.TapedBook,
            {"intend", "arrive_each", "expect", "issue", "acquire"},
            {"arrive", "come", "land", "means", "meaning", "meanings", "begin_wait", "completed"}
            | {"close", "unknown", "live", "phase", "publish", "check_published", "take"},
        ),
        (
            Signal,
            tape.TapedSignal,
            {"add", "store"},
            {"begin_wait", "behind", "is_before", "report"},
        ),
        (WordBook, tape.TapedWords, {"send", "receive"}, {"word"}),
    ],
)
def test_books_and_signals_too(kind: type, taped: type, noted: set[str], left: set[str]):
    assert methods(kind) == noted | left
    assert noted <= set(vars(taped))


def taped(steps: int) -> Instance:
    call = ring(steps)
    arguments, variant = call.launcher._prepare(call.args, call.kwargs)
    recording = Recording(ordered=False)
    variant.program.run((1,), variant.arguments(arguments), checked=True, recording=recording)
    (made,) = recording.tapes
    return Instance(made)


def test_the_tape_of_a_ring():
    instance = taped(2)
    load, read = instance.steps[0], instance.steps[1]
    meet = [What.COME, What.MEET]  # the block's warps, when barriers have been made
    assert [s.what for s in load] == [*meet, *[What.WAIT, What.EXPECT] * 2, What.END]
    assert [s.what for s in read] == [*meet, *[What.WAIT, What.ARRIVE] * 2, What.END]
    assert [(s.amount, s.size) for s in load if s.what is What.EXPECT] == [(1, 1024)] * 2
    assert [s.begins for s in load if s.what is What.EXPECT] == [(0,), (1,)]
    assert [s.meant for s in load if s.what is What.WAIT] == [-1, -1]
    assert [s.meant for s in read if s.what is What.WAIT] == [0, 0]
    assert [(c.size, c.arrivals) for c in instance.copies] == [(1024, 0)] * 2


def test_a_tape_does_not_depend_on_waits():
    """A wait that nobody ends is let go, and the tape goes on."""
    call = ring(3, FLIP=0)
    arguments, variant = call.launcher._prepare(call.args, call.kwargs)
    recording = Recording(ordered=False)
    variant.program.run((1,), variant.arguments(arguments), checked=True, recording=recording)
    assert recording.sure is not None
    lengths = [len(steps) for steps in Instance(recording.tapes[0]).steps]
    assert lengths == [len(steps) for steps in taped(3).steps]
