"""What stands in for a mutant that survives: another edge that orders the same accesses.

Looked for are, first, operations that dropped together with the mutant's show a finding that they
alone do not; then such that only order less (`weaker`). Knows nothing of what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from warploom.base.diagnostics import Report, Span
from warploom.ir.kernel import Kernel, walk
from warploom.testing.mutation.mutants import Mutant, altered, altered_around, roles_of
from warploom.testing.mutation.trials import Trial, keys
from warploom.testing.mutation.weaker import Less, Weaker, ways

# Launches in which pairs are tried, with so many operations nearby; of so many, each two together.
_PAIRED, _NEAR, _TWO = 2, 16, 6
# Operations that are executed for one mutant at most: of a launch that takes long, fewer pairs.
_WORK = 3_000_000
# Findings about accesses, which an order that is missing explains; and about the making of
# barriers, which one explains that is there for it.
_ACCESSES = ("R", "M002", "M013", "M014", "M015", "M016", "M031")
_MADE, _FOR_MAKING = ("U104",), "barriers are made"


class StandIn(NamedTuple):
    """The other edge (what its absence would be stands in its label), and the code of a finding
    where both are gone."""

    span: Span
    shown: str


class StandIns:
    """Those of one kernel, in its launches; `late` tells when to give up."""

    def __init__(
        self,
        kernel: Kernel,
        trials: Sequence[Trial],
        mutants: Sequence[Mutant],
        late: Callable[[], bool],
    ) -> None:
        # Those that reach most, and of these the longest.
        chosen = sorted(trials, key=lambda t: (-len(t.reached), -t.steps))[:_PAIRED]
        self.kernel, self.trials, self.late = kernel, chosen, late
        self.drops = [m for m in mutants if m.drops and m.edit.weakens]
        self.ops = list(walk(kernel.body))
        self._roles = roles_of(kernel)
        self._found: dict[Any, dict[Any, Report]] = {}
        self._work = 0

    def _enough(self) -> bool:
        """Whether the search for one mutant shall end."""
        return self._work > _WORK or self.late()

    def of(self, mutant: Mutant, survivors: Sequence[Mutant]) -> StandIn | None:
        """What stands in for a mutant; other survivors are tried first."""
        self._work = 0
        others = [m for m in self.drops if m.number != mutant.number]
        others.sort(key=lambda m: (m not in survivors, abs(m.number - mutant.number)))
        for other in others[: _NEAR + len(survivors)]:
            if self._enough():
                return None
            shown = self._without_all(mutant, other)
            if shown:
                return StandIn(other.span, shown)
        near = sorted(others, key=lambda m: abs(m.number - mutant.number))
        near = [m for m in near if m.edit.name == mutant.edit.name][:_TWO]
        for both in combinations(near, 2):
            if self._enough():
                return None
            shown = self._without_all(mutant, *both)
            if shown:
                one, two = both
                label = f"{one.text}, {two.text} at {two.span.line}:{two.span.column}"
                return StandIn(replace(one.span, label=label), shown)
        for numbers, less in self._near(mutant.number):
            if self._enough():
                return None
            shown = self._with_less(mutant, numbers, less)
            if shown:
                return StandIn(self._span(numbers[0], less), shown)
        return None

    def _where(self, *numbers: int) -> Iterator[Trial]:
        return (trial for trial in self.trials if trial.reached.issuperset(numbers))

    def _near(self, number: int) -> list[tuple[tuple[int, ...], Less]]:
        """Operations that can order less, the nearest first: what sends, all together."""
        found = [(n, less) for n, op in enumerate(self.ops) if n != number for less in ways(op)]
        found.sort(key=lambda each: abs(each[0] - number))
        tell = tuple(n for n, less in found if less is Less.TELLS)
        hear = [((n,), less) for n, less in found if less is Less.HEARS][:_NEAR]
        return [*hear, (tell, Less.TELLS)] if tell else hear

    def _span(self, number: int, less: Less) -> Span:
        op = self.ops[number]
        label = less.value.format(op.OPCODE)
        return Span.at(op.loc, role=self._roles.get(number, ""), label=label)

    # ---- pairs -----------------------------------------------------------------------------

    def _without_all(self, mutant: Mutant, *others: Mutant) -> str:
        """The code of a finding that all edits show together and the others alone do not."""
        for trial in self._where(mutant.number, *(m.number for m in others)):
            alone = self._alone(trial, *others)
            if any(code in ("D001", "M010") for code, _ in alone):
                continue  # what comes behind is not seen
            self._work += trial.steps
            found = trial.run(altered(self.kernel, mutant, *others), first=False)
            shown = self._more(mutant, keys(found.findings), alone)
            if shown:
                return shown
        return ""

    def _alone(self, trial: Trial, *others: Mutant) -> dict[Any, Report]:
        key = (trial, *((m.number, m.edit.name) for m in others))
        if key not in self._found:
            self._work += trial.steps
            outcome = trial.run(altered(self.kernel, *others), first=False)
            self._found[key] = keys(outcome.findings)
        return self._found[key]

    def _with_less(self, mutant: Mutant, numbers: tuple[int, ...], less: Less) -> str:
        """The same of operations that order less."""
        for trial in self._where(mutant.number, *numbers):
            key = (trial, numbers, less)
            if key not in self._found:
                self._found[key] = keys(self._weakened(trial, numbers, less))
            both = keys(self._weakened(trial, numbers, less, mutant))
            shown = self._more(mutant, both, self._found[key])
            if shown:
                return shown
        return ""

    def _weakened(
        self, trial: Trial, numbers: tuple[int, ...], less: Less, *mutants: Mutant
    ) -> Sequence[Report]:
        self._work += trial.steps
        made, ops = altered_around(self.kernel, numbers, *mutants)
        return trial.run(made, first=False, weaker=Weaker(ops, less)).findings

    def _more(self, mutant: Mutant, both: dict[Any, Report], alone: dict[Any, Report]) -> str:
        """The code of a finding that is there only if both are gone."""
        why = getattr(self.ops[mutant.number], "why", "")
        codes = _ACCESSES + _MADE * why.startswith(_FOR_MAKING)
        return next((k[0] for k in both if k not in alone and k[0].startswith(codes)), "")
