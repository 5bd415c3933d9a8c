"""`warploom run KERNEL`: make an example's launch, on the simulator or on a GPU.

Prints what the kernel printed and a line for each array that it wrote.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np

from warploom.base.diagnostics import wants_colour
from warploom.base.errors import error
from warploom.cli import json_file, kernel_name
from warploom.cli.verbs import FINE, NO
from warploom.runtime import places
from warploom.runtime.arrays import SIM
from warploom.runtime.findings import Findings
from warploom.runtime.launch import Call
from warploom.runtime.memory import to_numpy

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "run",
        description="Make the launch of a kernel's example.",
        epilog="exit codes: 0 fine, 1 a checked run found something, 2 could not run",
    )
    parser.add_argument("kernel", metavar="KERNEL", help=kernel_name.HELP)
    parser.add_argument(
        "--device",
        metavar="WORD",
        help="sim, gpu or gpu:N; default: WARPLOOM_DEVICE, else a GPU where usable",
    )
    parser.add_argument(
        "--break",
        action="append",
        default=[],
        dest="stops",
        metavar="FILE:LINE",
        help="open a prompt before this line of the kernel or of a function that it calls, on the "
        "simulator; may be given several times",
    )
    parser.add_argument("--checked", action="store_true", help="check the run on the simulator")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="checked runs to make, each in another order"
    )
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Run the example; returns the exit code."""
    found = kernel_name.find(options.kernel)
    stops = [_stop(word) for word in options.stops]
    default = SIM if options.checked or stops else places.default()
    device = places.parse(options.device) if options.device else default
    if options.checked and device != SIM:
        raise error("H021", "--checked works on the simulator", hint="leave out --device")
    if stops and device != SIM:
        raise error("H033", "--break works on the simulator", hint="leave out --device")
    if options.seeds is not None and not options.checked:
        raise error("H021", "--seeds counts checked runs", hint="add --checked")
    if options.seeds is not None and options.seeds < 1:
        raise error(
            "H021",
            f"--seeds {options.seeds}: at least one run",
            hint="--seeds 20 runs twenty schedules",
        )
    call = found.call(device)
    if stops:
        call = call.stopping(*stops)
    if options.checked:
        return _checked(found, call, options)
    start = time.perf_counter()
    with json_file.kept_clean(options.json):
        call.run()
    seconds = time.perf_counter() - start
    rows = written(call)
    if options.json:
        data = {"schema": SCHEMA, "kernel": found.kernel.name, "device": device}
        data |= {"grid": list(call.launcher.grid), "seconds": seconds, "written": rows}
        json_file.write(options.json, data)
    if options.json != "-":
        grid = " × ".join(map(str, call.launcher.grid))
        print(f"{found.title}: grid {grid} on {device}, {seconds * 1e3:.1f} ms with compilation")
        for row in rows:
            print("  " + _line(row))
    return FINE


def _stop(word: str) -> tuple[str, int]:
    """The file and line that a word of the command line names."""
    file, _, line = word.rpartition(":")
    if not file or not line.isdecimal() or int(line) < 1:
        raise error("H033", f"`{word}` is not FILE:LINE", hint="such as --break scale.py:9")
    return file, int(line)


def _checked(found: kernel_name.Found, call: Call, options: argparse.Namespace) -> int:
    with json_file.kept_clean(options.json):
        findings: Findings = call.check(seeds=options.seeds or 1)
    findings.example = found.example or next(iter(found.kernel.examples), None)
    if options.json:
        json_file.write(options.json, findings.json())
    if options.json != "-":
        print(findings.text(ansi=wants_colour(sys.stdout)))
    return FINE if findings.clean else NO


def _line(row: dict[str, Any]) -> str:
    text = f"{row['name']}: {row['dtype']} {row['shape']}"
    if "mean" in row:
        text += f", from {row['min']:.6g} to {row['max']:.6g}, mean {row['mean']:.6g}"
    if row.get("not_finite"):
        text += f", {row['not_finite']} not finite"
    return text


def written(call: Call) -> list[dict[str, Any]]:
    """Facts of each array that a launch wrote: dtype, shape, least, largest, mean, not finite."""
    arguments = call.arguments
    variant = call.kernel.variant(arguments, call.launcher.warps, call.launcher.cluster)
    rows: list[dict[str, Any]] = []
    for index in variant.written:
        view = arguments.values[index]
        given = dict(zip((p.name for p in call.kernel.signature), call.args, strict=False))
        name = arguments.names[index]
        values = to_numpy((given | call.kwargs)[name])
        row: dict[str, Any] = {"name": name, "dtype": view.dtype.name}
        row["shape"] = "x".join(map(str, view.shape))
        if values.size:
            wide = values.astype(np.float64)
            finite = wide[np.isfinite(wide)]
            row["not_finite"] = int(wide.size - finite.size)
            if finite.size:
                row["min"], row["max"] = float(finite.min()), float(finite.max())
                row["mean"] = float(finite.mean())
        rows.append(row)
    return rows
