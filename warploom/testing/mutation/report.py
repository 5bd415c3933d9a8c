"""The score of mutants as text: a line for each kind of edit, and every mutant that is not caught.

Knows no kernel and runs nothing.
"""

from __future__ import annotations

from collections import Counter

from warploom.base.diagnostics import Span, render, shown_path
from warploom.testing.mutation.score import CAUGHT, EQUIVALENT, SURVIVED, UNREACHED, Score, Verdict

_RED, _GREEN, _RESET = "\033[1;31m", "\033[1;32m", "\033[0m"
_HELP = "a launch finds more whose loops have more steps than a pipe has stages, and several tiles"


def text(score: Score, ansi: bool = False) -> str:
    """The report, in colour where `ansi`."""
    lines = [f"{name}: found without any edit\n{render(r, ansi)}" for name, r in score.alarms]
    lines += _table(score) + _kernels(score)
    for status, colour in ((SURVIVED, _RED), (UNREACHED, ""), (EQUIVALENT, "")):
        lines += _listed(score.of(status), colour if ansi else "")
    if score.plain:
        names = ", ".join(sorted(set(score.plain)))
        lines.append(f"no mutants: blocks of {names} have nothing that runs at the same time")
    if score.left:
        lines.append(f"not tried, for want of time: {score.left}")
    lines.append(_summary(score, ansi))
    if score.of(SURVIVED, UNREACHED):
        lines.append(f"help: {_HELP}")
    return "\n".join(lines)


def _summary(score: Score, ansi: bool) -> str:
    counts = f"{score.caught} of {score.counted} mutants caught"
    share = f"{100 * score.share:.1f}%"
    if ansi:
        share = f"{_GREEN if score.caught == score.counted else _RED}{share}{_RESET}"
    others = [
        f"{len(found)} {status}"
        for status in (EQUIVALENT, UNREACHED)
        if (found := score.of(status))
    ]
    plural = "es" * (score.launches != 1)
    return f"{counts} ({share}) in {score.launches} launch{plural}" + "".join(
        f", {words}" for words in others
    )


def _table(score: Score) -> list[str]:
    """A line for each kind of edit: how many are caught, and by which codes."""
    kinds = list(dict.fromkeys(v.mutant.edit.name for v in score.verdicts))
    width = max(map(len, kinds), default=0)
    lines = []
    for kind in kinds:
        own = [v for v in score.of(CAUGHT, SURVIVED) if v.mutant.edit.name == kind]
        caught = [v for v in own if v.status == CAUGHT]
        codes = Counter(v.code for v in caught)
        by = ", ".join(f"{code} {count}" for code, count in codes.most_common())
        lines.append(f"{kind:{width}}  {len(caught):4} of {len(own):4}  {by}".rstrip())
    return lines


def _kernels(score: Score) -> list[str]:
    """A line for each kernel, where there are several."""
    found = score.by_kernel()
    width = max(map(len, found), default=0)
    lines = []
    for name, states in found.items():
        counted = states[CAUGHT] + states[SURVIVED]
        share = f"{100 * states[CAUGHT] / counted:5.1f}%" if counted else ""
        more = f"{states[EQUIVALENT]:4} equivalent {states[UNREACHED]:4} unreached"
        lines.append(f"{name:{width}}  {states[CAUGHT]:4} of {counted:4}  {share}  {more}")
    return lines if len(lines) > 1 else []


def _listed(verdicts: list[Verdict], colour: str) -> list[str]:
    """Mutants that are not caught; equal ones of several launches and copies count together."""
    counts = Counter(_line(v) for v in verdicts)
    if not counts:
        return []
    (status,) = {v.status for v in verdicts}
    head = f"{colour}{status}:{_RESET}" if colour else f"{status}:"
    return [head] + [
        f"  {line}" + (f" ({count} times)" if count > 1 else "") for line, count in counts.items()
    ]


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    words = f"{mutant.edit.name} at {_place(mutant.span)}: {mutant.text}"
    if verdict.other is not None:
        words += f"; {_place(verdict.other)} orders the same accesses, {verdict.shown} "
        words += f"{verdict.other.label} too"
    if verdict.note:
        words += f"; {verdict.note}"
    return words


def _place(span: Span) -> str:
    role = f" in `{span.role}`" if span.role else ""
    return f"{shown_path(span.file)}:{span.line}:{span.column}{role}"
