"""Cases of a suite in a process of their own: python -m warploom.bench.case SUITE CASE … --out FILE

A fault, a hang or a lack of memory costs one row. Each case adds a line to the file when it is
done, so that whoever waits knows which one is at work.
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
    """Measure the cases and write {row, limits} to --out, a line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--device", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for case in options.cases:
        context = Context(options.device, options.seed)
        row = suites.load(options.suite).measure(case, context)
        row.settle()
        answer = {"row": row.to_json(), "limits": context.limits}
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
