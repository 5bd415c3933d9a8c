"""`warploom hw`: what this GPU can do at most, measured, beside what is written down about its kind
(`base/hw`)."""

import argparse
import sys
from typing import Any

from warploom.base.errors import error
from warploom.base.table import aligned
from warploom.bench import limits, machine
from warploom.cli import json_file
from warploom.cli.verbs import FINE
from warploom.runtime import driver, places
from warploom.runtime.arrays import SIM

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "hw",
        description="Measure what a GPU can do at most: reading memory, products in bf16 and fp8.",
        epilog="needs a GPU that nothing else uses, for some ten seconds. exit codes: 0 fine, "
        "2 there is no GPU",
    )
    parser.add_argument("--device", metavar="WORD", default="gpu", help="gpu or gpu:N")
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Measure and print; returns the exit code."""
    place = places.parse(options.device)
    if place == SIM:
        raise error("H020", "limits are those of a GPU", hint="--device gpu")
    device = places.gpu_number(place)
    if problem := driver.problem():
        raise problem
    found = limits.measure(device, lambda text: print(f"hw: {text}", file=sys.stderr))
    facts = driver.facts(device)
    name = machine.name(facts.name)
    known = machine.facts(name)
    data = {
        "schema": SCHEMA,
        "machine": name,
        "device": facts.name,
        "multiprocessors": facts.multiprocessors,
        "limits": {
            one.name: {"value": one.value, "unit": one.unit, "how": one.how} for one in found
        },
        "written": {one.name: limits.written(one.name, known) for one in found},
    }
    if options.json:
        json_file.write(options.json, data)
    if options.json != "-":
        print("\n".join(text(data)))
    return FINE


def text(data: dict[str, Any]) -> list[str]:
    """The limits as a table."""
    rows: list[tuple[object, ...]] = [("limit", "measured", "", "written down", "", "measured by")]
    for name, one in data["limits"].items():
        known = data["written"][name].get("value")
        value = "-" if one["value"] is None else f"{one['value']:.4g}"
        share = f"{100 * one['value'] / known:.0f}%" if known and one["value"] else ""
        shown = f"{known:g}" if known else "-"
        rows.append((name, value, one["unit"], shown, share, one["how"]))
    head = f"{data['machine']}: {data['device']}, {data['multiprocessors']} multiprocessors"
    notes = [
        f"{name} written down: {data['written'][name]['how']}"
        for name in data["limits"]
        if data["written"][name].get("how")
    ]
    return [head, *aligned(rows, "lrlrrl"), *notes]
