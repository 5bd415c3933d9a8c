"""What a checked run found, for people and as JSON (SURFACE 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from warploom.base.diagnostics import Report, Span, render
from warploom.base.errors import CODES

SCHEMA = 1
EXPLORED = "explored"
"""The schedule of findings of exploration."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: its report, and the seed and name of the schedule that showed it."""

    report: Report
    seed: int = 0
    schedule: str = ""

    @property
    def code(self) -> str:
        """The code, e.g. M002."""
        return self.report.code

    def json(self) -> dict[str, Any]:
        """The finding as plain data."""
        report = self.report
        listed = CODES.get(report.code)
        return {
            "code": report.code,
            "title": listed.title if listed else report.message,
            "message": report.message,
            "spans": [span_json(s) for s in report.spans],
            "facts": {"notes": list(report.notes), **report.facts},
            "hint": report.hint,
            "seed": self.seed,
            "schedule": self.schedule,
        }


def _shown(finding: Finding, ansi: bool) -> str:
    """A report, and how to see it again where not every schedule may show it."""
    text = render(finding.report, ansi)
    if not finding.seed:
        return text
    again = f"--seed {finding.seed} --schedule {finding.schedule}"
    return f"{text}\n  = first shown by seed {finding.seed}: `warploom check … {again}`"


def span_json(span: Span) -> dict[str, Any]:
    """A place as plain data."""
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "role": span.role,
        "label": span.label,
    }


@dataclass(slots=True)
class Findings:
    """The verdict over one call. Iterates over its findings. `words`: what exploration visited."""

    kernel: str
    example: str | None = None
    seeds: int = 1
    steps: int = 0
    found: list[Finding] = field(default_factory=list)
    bounds: dict[str, Any] = field(default_factory=dict)
    words: str = ""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.found

    @property
    def verdict(self) -> str:
        """`clean` or `findings`."""
        return "clean" if self.clean else "findings"

    def text(self, ansi: bool = False) -> str:
        """All reports, or one line that says that there are none."""
        if self.clean:
            words = self.words or f"{self.seeds} seed{'s' * (self.seeds != 1)}"
            return f"{self.kernel}: clean ({words})"
        return "\n\n".join(_shown(f, ansi) for f in self.found)

    def json(self) -> dict[str, Any]:
        """The verdict as plain data, with `schema`."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "example": self.example,
            "seeds": self.seeds,
            "steps": self.steps,
            "verdict": self.verdict,
            "findings": [f.json() for f in self.found],
            "bounds": self.bounds,
        }


def merge(findings: Sequence[Findings]) -> Findings:
    """One verdict over runs with several seeds; equal reports count once."""
    first = findings[0]
    out = Findings(first.kernel, first.example, len(findings), sum(f.steps for f in findings))
    seen: set[tuple[str, str, tuple[Span, ...]]] = set()
    for one in findings:
        for finding in one:
            key = (finding.code, finding.report.message, finding.report.spans)
            if key not in seen:
                seen.add(key)
                out.found.append(finding)
    return out
