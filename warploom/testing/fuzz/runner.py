"""Runs random kernels, tells of those that fail, and makes them smaller. Knows no kernel."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count as naturals
from itertools import islice, repeat
from typing import Any, Protocol

from warploom.base.errors import Error
from warploom.runtime import driver
from warploom.testing.fuzz.sources import Source
from warploom.testing.fuzz.tiles import Tiles

SCHEMA = 1
LEVELS = (1, 2)
# Of ten seeds that follow each other, those of each family.
_SHARES = (
    "tiles",
    "chain",
    "tiles",
    "chain",
    "tiles",
    "product",
    "tiles",
    "chain",
    "tiles",
    "product",
)
_TRIES, _TRY_SECONDS = 200, 60.0


class Program(Protocol):
    """A random kernel with inputs and what should come of them."""

    level: int
    family: str

    def text(self) -> str:
        """A file that runs it."""
        ...

    def why(self, device: str, seed: int) -> str:
        """What is wrong with it, in words; empty where nothing is."""
        ...

    def smaller(self) -> Iterator[Any]:
        """Programs that lack something of it."""
        ...


@dataclass
class Failure:
    """A kernel that failed: why, and its text, as small as it was made."""

    seed: int
    level: int
    family: str
    why: str
    text: str


@dataclass
class Result:
    """What a run of many seeds gave."""

    seed: int
    count: int
    device: str
    ran: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    lost: int = 0  # not run: an earlier kernel had broken the GPU's context
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """Kernels that were run."""
        return sum(self.ran.values())

    def json(self) -> dict[str, Any]:
        """As plain data, with `schema`."""
        return {"schema": SCHEMA, **asdict(self), "ran": dict(sorted(self.ran.items()))}


def family_of(seed: int) -> str:
    """Which family the kernel of a seed is of."""
    return _SHARES[seed % len(_SHARES)]


def level_of(seed: int) -> int:
    """The level of that family."""
    return 1 if family_of(seed) == "tiles" else 2


def program_of(seed: int) -> Program:
    """The kernel of a seed."""
    family = family_of(seed)
    return Tiles(seed) if family == "tiles" else Source.of(family, seed)


def tried(program: Program, device: str, seed: int) -> str:
    """What is wrong with a kernel; an exception counts, whatever it is."""
    try:
        return program.why(device, seed)
    except Error as error:
        return error.render()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run(
    seed: int,
    count: int,
    device: str = "sim",
    levels: tuple[int, ...] = LEVELS,
    seconds: float = float("inf"),
    tell: Callable[[Failure | int], None] = lambda heard: None,
    processes: int = 1,
) -> Result:
    """Run `count` kernels of these levels, those of the seeds from `seed` on, or as many as begin
    within `seconds`, several `processes` at a time.

    `tell` hears of each failure, and how many have been run.
    """
    result, began = Result(seed, count, device), time.monotonic()
    numbers = islice((n for n in naturals(seed) if level_of(n) in levels), count)
    given = zip(numbers, repeat(device), repeat(began + seconds))
    if processes == 1:
        _gather(map(_one, given), result, tell)
    else:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            _gather(pool.imap(_one, given), result, tell)
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _gather(
    outcomes: Iterator[Failure | str], result: Result, tell: Callable[[Failure | int], None]
) -> None:
    """Count what became of kernels."""
    for outcome in outcomes:
        if outcome == _LATE:
            continue
        if outcome == _LOST:
            result.lost += 1
            continue
        if isinstance(outcome, Failure):
            result.failures.append(outcome)
            tell(outcome)
        result.ran[outcome.family if isinstance(outcome, Failure) else outcome] += 1
        tell(result.total)


# What became of a kernel that was not run; of one that was: its family, or its failure.
_LATE, _LOST = "late", "lost"


def _one(given: tuple[int, str, float]) -> Failure | str:
    """Run the kernel of a seed, unless it is too late."""
    number, device, until = given
    if time.monotonic() >= until:
        return _LATE
    if device != "sim" and not _usable(device):
        return _LOST
    program = program_of(number)
    why = tried(program, device, number)
    if not why:
        return program.family
    least = program
    if device == "sim" or _usable(device):
        least, why = shrunk(program, why, device, number)
    return Failure(number, program.level, program.family, why, least.text())


def _usable(device: str) -> bool:
    """Whether this process can still use its GPU."""
    try:
        driver.synchronize(int(device.partition(":")[2] or 0))
    except Error:
        return False
    return True


def shrunk(program: Program, why: str, device: str, seed: int) -> tuple[Program, str]:
    """A smaller kernel that fails too, and why: parts are left out one by one, as long as that goes
    on and takes no longer than a minute."""
    tries, until = 0, time.monotonic() + _TRY_SECONDS
    again = True
    while again:
        again = False
        for less in program.smaller():
            tries += 1
            if tries > _TRIES or time.monotonic() > until:
                return program, why
            told = tried(less, device, seed)
            # A part that cannot be left out is refused: that is another matter.
            if told and _kind(told) == _kind(why):
                program, why, again = less, told, True
                break
    return program, why


def _kind(why: str) -> str:
    """What a failure begins with: its code, or its first word that says something."""
    return why.replace("checked, ", "").split(":")[0].split("`")[0].strip().rstrip("0123456789 ")
