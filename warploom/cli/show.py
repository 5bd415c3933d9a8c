"""`warploom show KERNEL --level LEVEL`: print a kernel at one of its levels. Needs no GPU."""

import argparse
from typing import Any

from warploom.cli import kernel_name
from warploom.cli.verbs import FINE
from warploom.runtime.arrays import SIM
from warploom.runtime.compile import LEVELS


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "show",
        description="Print a kernel as its example's arguments compile it.",
        epilog="levels: tile (as written), roles, machine (what both devices run), cuda, ptx, "
        "sass (needs the wheel nvidia-cuda-nvdisasm)",
    )
    parser.add_argument("kernel", metavar="KERNEL", help=kernel_name.HELP)
    parser.add_argument("--level", choices=LEVELS, default="tile", help="default: tile")
    parser.add_argument("--arch", default="", help="architecture, e.g. sm_80; default sm_90a")


def run(options: argparse.Namespace) -> int:
    """Print the text; returns the exit code."""
    call = kernel_name.find(options.kernel).call(SIM)
    print(call.text(options.level, options.arch).rstrip("\n"))
    return FINE
