"""The checker's score at the mutants of a kernel: which are caught, and what the others mean.

A mutant that survives is *equivalent* only where another operation orders the same accesses: the
two dropped together show a finding that the other one dropped alone does not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warploom.base.diagnostics import Report, Span
from warploom.ir.kernel import Kernel
from warploom.runtime.findings import span_json
from warploom.sim.translate import Translator
from warploom.testing.mutation.edits import renamed
from warploom.testing.mutation.mutants import Mutant, mutants_of
from warploom.testing.mutation.stand_ins import StandIns
from warploom.testing.mutation.trials import Trial

CAUGHT, SURVIVED, EQUIVALENT, UNREACHED = "caught", "survived", "equivalent", "unreached"


@dataclass(slots=True)
class Verdict:
    """What became of a mutant. `code` caught it in the launch `trial`; `other` is the edge that
    stands in for it, `shown` the code that tells so; `note` says more of a survivor."""

    kernel: str
    mutant: Mutant
    status: str
    code: str = ""
    trial: str = ""
    other: Span | None = None
    shown: str = ""
    note: str = ""

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "kernel": self.kernel,
            "edit": self.mutant.edit.name,
            "change": self.mutant.text,
            "span": span_json(self.mutant.span),
            "status": self.status,
            "caught_by": self.code,
            "instance": self.trial,
            "other_edge": None if self.other is None else span_json(self.other),
            "together": self.shown,
            "note": self.note,
        }


@dataclass(slots=True)
class Score:
    """All verdicts, and what was found in kernels that nobody has altered: those have no mutants.
    `plain` names kernels whose blocks have nothing that runs at the same time; `left` counts
    mutants that there was no time for; `made` how many there are of each kernel, tried or not."""

    verdicts: list[Verdict] = field(default_factory=list)
    alarms: list[tuple[str, Report]] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    launches: int = 0
    left: int = 0
    made: dict[str, int] = field(default_factory=dict)

    def of(self, *states: str) -> list[Verdict]:
        """Verdicts in some states."""
        return [v for v in self.verdicts if v.status in states]

    @property
    def counted(self) -> int:
        """Mutants that are executed and not equivalent."""
        return len(self.of(CAUGHT, SURVIVED))

    @property
    def caught(self) -> int:
        """Those that are found."""
        return len(self.of(CAUGHT))

    @property
    def share(self) -> float:
        """Caught among counted; 1 where there is nothing to catch."""
        return self.caught / self.counted if self.counted else 1.0

    def by_kernel(self) -> dict[str, dict[str, int]]:
        """Mutants of each kernel in each state."""
        found: dict[str, dict[str, int]] = {}
        for verdict in self.verdicts:
            states: dict[str, int] = {
                state: 0 for state in (CAUGHT, SURVIVED, EQUIVALENT, UNREACHED)
            }
            found.setdefault(verdict.kernel, states)[verdict.status] += 1
        return found

    def sampled(self) -> dict[str, dict[str, int]]:
        """How many mutants have been tried, and how many there are, of kernels of which not all
        have been."""
        tried = {kernel: sum(states.values()) for kernel, states in self.by_kernel().items()}
        return {
            kernel: {"tried": tried.get(kernel, 0), "of": count}
            for kernel, count in self.made.items()
            if tried.get(kernel, 0) < count
        }

    def json(self) -> dict[str, Any]:
        """Counts and mutants as plain data."""
        return {
            "kernels": self.by_kernel(),
            "counted": self.counted,
            "caught": self.caught,
            "survived": len(self.of(SURVIVED)),
            "equivalent": len(self.of(EQUIVALENT)),
            "unreached": len(self.of(UNREACHED)),
            "not_tried": self.left,
            "sampled": self.sampled(),
            "without_mutants": self.plain,
            "launches": self.launches,
            "score": self.share,
            "mutants": [v.json() for v in self.verdicts],
        }


def scored(
    trials: Sequence[Trial],
    *,
    until: float | None = None,
    sample: tuple[int, int] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Score:
    """Try the mutants of the kernels of some launches.

    Launches of one compiled kernel share its mutants: each is tried in one after the other, until
    it is found. `sample`: so many mutants of each kernel, drawn by a seed; `until`: no more are
    begun after that moment of `time.monotonic`.
    """
    score = Score(launches=len(trials))
    groups: dict[Kernel, list[Trial]] = {}
    for trial in trials:
        score.alarms += [(trial.name, report) for report in trial.findings]
        groups.setdefault(trial.kernel, []).append(trial)
    order = list(groups.items())
    if sample is not None:  # with little time, other kernels each time
        random.Random(sample[1]).shuffle(order)
    for kernel, group in order:
        if not Translator(kernel, checked=True).waits:
            score.plain.append(kernel.name)
        elif not any(trial.findings for trial in group):
            tell(f"{kernel.name}: {', '.join(t.name for t in group)}")
            _Group(kernel, group, until, sample).into(score)
    return score


class _Group:
    """A compiled kernel, its launches, those that reach most first."""

    def __init__(
        self,
        kernel: Kernel,
        trials: Sequence[Trial],
        until: float | None,
        sample: tuple[int, int] | None,
    ) -> None:
        self.kernel, self.until, self.sample = kernel, until, sample
        self.trials = sorted(trials, key=lambda t: (-len(t.reached), t.steps))
        self.mutants = mutants_of(kernel)
        self.stand_ins = StandIns(kernel, self.trials, self.mutants, self._late)

    def into(self, score: Score) -> None:
        """Try all mutants, then look for what stands in for those that survive."""
        chosen = self.mutants
        if self.sample is not None and self.sample[0] < len(chosen):
            count, seed = self.sample
            numbers = sorted(random.Random(seed).sample(range(len(chosen)), count))
            chosen = [chosen[n] for n in numbers]
        verdicts: list[Verdict] = []
        for mutant in chosen:
            if self._late():
                break
            verdicts.append(self._tried(mutant))
        score.left += len(chosen) - len(verdicts)
        name = self.kernel.name
        score.made[name] = score.made.get(name, 0) + len(self.mutants)
        for verdict in verdicts:
            if verdict.status == SURVIVED:
                self._explain(verdict, verdicts)
        score.verdicts += verdicts

    def _late(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    def _where(self, *mutants: Mutant) -> Iterable[Trial]:
        """The launches that reach all of these."""
        return (t for t in self.trials if all(m.number in t.reached for m in mutants))

    def _tried(self, mutant: Mutant) -> Verdict:
        name, made = self.kernel.name, mutant.of(self.kernel)
        verdict = Verdict(name, mutant, UNREACHED)
        for trial in self._where(mutant):
            outcome = trial.run(made)
            if outcome.code:
                return Verdict(name, mutant, CAUGHT, outcome.code, trial.name)
            verdict.status = SURVIVED
            if outcome.failure:
                verdict.note = f"the simulator failed in {trial.name}: {outcome.failure}"
            elif not outcome.same:
                verdict.note = f"{trial.name} writes something else"
        return verdict

    def _explain(self, verdict: Verdict, verdicts: Sequence[Verdict]) -> None:
        """Find the edge that orders what the mutant's operation does, if there is one; or show that
        it does the same under another name."""
        mutant = verdict.mutant
        if not mutant.edit.weakens:
            same = renamed(self.kernel, mutant.edit.name, self.stand_ins.ops[mutant.number])
            if same:
                verdict.status, verdict.note = EQUIVALENT, same
            return
        survivors = [v.mutant for v in verdicts if v.status in (SURVIVED, EQUIVALENT)]
        found = self.stand_ins.of(mutant, survivors)
        if found is not None:
            verdict.status, verdict.other, verdict.shown = EQUIVALENT, found.span, found.shown
