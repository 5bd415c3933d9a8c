"""One case of a suite in a process of its own: python -m warploom.bench.case SUITE CASE …

A fault, a hang or a lack of memory costs one row, and peak memory is that of the case alone.
"""

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from warploom.bench import suites


@dataclass
class Context:
    """What a case is told, and what it tells besides its row."""

    device: str
    seed: int
    limits: dict[str, dict[str, object]] = field(default_factory=dict)


def main() -> int:
    """Measure the case and write {row, limits} to --out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("case")
    parser.add_argument("--device", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    context = Context(options.device, options.seed)
    row = suites.load(options.suite).measure(options.case, context)
    row.settle()
    answer = {"row": row.to_json(), "limits": context.limits}
    options.out.write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
