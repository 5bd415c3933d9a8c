"""Whose an element is, as offsets show it. What barriers follow: `test_insert_role_barriers`."""

import pytest

from tests.passes.test_insert_role_barriers import EACH, HEAD, OFFSETS, own
from tests.passes.text import kernel
from warploom.ir.kernel import walk
from warploom.ir.ops import shared_memory
from warploom.ir.parser import parse_kernel
from warploom.passes.owners import Owner, Owners

NUMBERS = "".join(f"%n{n}: i32@grid = scalar.const() [number={n}, dtype=i32]\n" for n in (4, 512))


def owners(program: str) -> list[Owner | None]:
    """Those of the stores of a program."""
    made = parse_kernel(kernel(HEAD + OFFSETS + NUMBERS + program, "machine"))
    found = Owners(made)
    return [found.of(op) for op in walk(made.body) if isinstance(op, shared_memory.Store)]


def start(number: str) -> str:
    """A store of an element a thread, behind a number."""
    shift = f"%s: i32[1] = registers.splat(%{number}) [rank=1]\n"
    shift += '%k: i32[1] = registers.binary(%o1, %s) [kind="add"]\n'
    return shift + own("a", EACH, "k")[1]


def scaled(factor: str, by: str) -> str:
    """%x = n * factor // by."""
    product = f'%y: i32@grid = scalar.binary(%n, %{factor}) [kind="mul"]\n'
    return product + f'%x: i32@grid = scalar.binary(%y, %{by}) [kind="floordiv"]\n'


def test_equal_counts_of_threads_are_one():
    one, two = owners(own("a", EACH, "o1")[1] + own("a", EACH, "o2")[1])
    assert one is not None and two is not None
    assert one.same(two)
    assert (one.step, one.span) == (0, 128)


@pytest.mark.parametrize(
    ("program", "step"),
    [
        (start("0"), 0),
        (start("128"), 128),
        (start("n512"), 512),
        # Bytes by the size of an element; one that does not divide them says nothing.
        (scaled("n512", "n4") + start("x"), 128),
        (scaled("n4", "n512") + start("x"), None),
        (start("n"), None),
        (start("n4"), None),
    ],
)
def test_where_windows_stand(program: str, step: int | None):
    (found,) = owners(program)
    assert (None if found is None else found.step) == step


def test_windows_of_other_steps_may_overlap():
    assert not Owner(("a",), 192, 128).same(Owner(("a",), 128, 128))
    assert Owner(("a",), 192, 128).same(Owner(("a",), 384, 128))
    assert not Owner(("a",), 256, 128).same(Owner(("b",), 256, 128))


def test_another_buffer_on_the_same_bytes_is_dealt_otherwise():
    one, two = owners(own("a", EACH, "o1")[1] + own("c", EACH, "o1")[1])
    assert one is not None and two is not None
    assert not one.same(two)
