"""Random mutants of programs of the abstract machine: one operation dropped, doubled, swapped,
moved or changed."""

from __future__ import annotations

import copy

import numpy as np

from tests.sim.order.abstract import Op, Program

EDITS = ("drop", "double", "swap", "move", "change")


def mutant(program: Program, rng: np.random.Generator) -> Program:
    """A program with one random edit."""
    made = copy.deepcopy(program)
    names = [name for name, ops in made.actors.items() if ops]
    if not names:
        return made
    ops = made.actors[names[int(rng.integers(len(names)))]]
    at = int(rng.integers(len(ops)))
    edit = EDITS[int(rng.integers(len(EDITS)))]
    if edit == "drop":
        del ops[at]
    elif edit == "double":
        ops.insert(at, ops[at])
    elif edit == "swap":
        other = min(at + 1, len(ops) - 1)
        ops[at], ops[other] = ops[other], ops[at]
    elif edit == "move":
        op = ops.pop(at)
        ops.insert(int(rng.integers(len(ops) + 1)), op)
    else:
        ops[at] = _changed(ops[at], made, rng)
    return made


def _changed(op: Op, program: Program, rng: np.random.Generator) -> Op:
    """An operation with another operand: barrier, parity, cell, number of bytes or groups."""
    barriers = sorted(program.barriers)
    name, *of = op
    if not of:
        return op
    at = int(rng.integers(len(of)))
    value = of[at]
    if isinstance(value, tuple):
        cell, barrier, size = value
        kind = int(rng.integers(3))
        if kind == 0:
            value = (int(rng.integers(program.locations)), barrier, size)
        elif kind == 1:
            value = (cell, barriers[int(rng.integers(len(barriers)))], size)
        else:
            value = (cell, barrier, 2 * size)
    elif isinstance(value, bool):
        value = not value
    elif isinstance(value, str) and value in program.barriers:
        value = barriers[int(rng.integers(len(barriers)))]
    elif isinstance(value, int):
        if name in ("wait", "wait_one"):
            value ^= 1
        elif name in ("bar", "bar_arrive"):
            value = value if at else 3 - value
        else:
            value = max(0, value + int(rng.choice([-1, 1]))) % program.locations
            value = value or int(name == "add")
    return (name, *of[:at], value, *of[at + 1 :])
