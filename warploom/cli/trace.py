"""`warploom trace KERNEL`: what each role of an example's launch did, when, and how long it waited
for what. A launch of the simulator counts operations, one of a GPU cycles."""

import argparse
from typing import Any

from warploom.cli import json_file, kernel_name
from warploom.cli.verbs import FINE
from warploom.runtime import places

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "trace",
        description="Make the launch of a kernel's example, and tell what its roles did and when.",
        epilog="events: begin and end of a role, wait (with how long), arrive, turn of a loop",
    )
    parser.add_argument("kernel", metavar="KERNEL", help=kernel_name.HELP)
    parser.add_argument(
        "--device",
        metavar="WORD",
        help="sim, gpu or gpu:N; default: WARPLOOM_DEVICE, else a GPU where usable",
    )
    parser.add_argument("--blocks", type=int, default=1, metavar="N", help="blocks; default: 1")
    parser.add_argument(
        "--events", type=int, default=4096, metavar="N", help="events of a role; default: 4096"
    )
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Run and print; returns the exit code."""
    found = kernel_name.find(options.kernel)
    device = places.parse(options.device) if options.device else places.default()
    with json_file.kept_clean(options.json):
        made = found.call(device).trace(options.blocks, options.events)
    if options.json:
        json_file.write(options.json, {"schema": SCHEMA, "device": device, **made.json()})
    if options.json != "-":
        print(made.text())
    return FINE
