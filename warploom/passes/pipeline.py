"""The passes in reading order, and the one function that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from warploom.base.target import Target
from warploom.ir.accesses import verify_accesses
from warploom.ir.kernel import Kernel
from warploom.ir.op import Stage
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import VerifyError, verify_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.assign_storage import assign_storage
from warploom.passes.check_cluster import check_cluster
from warploom.passes.check_layouts import check_layouts
from warploom.passes.check_previous import check_previous
from warploom.passes.check_target import check_target
from warploom.passes.group_maps import group_maps
from warploom.passes.guard_cluster import guard_cluster
from warploom.passes.hoist_invariants import hoist_invariants
from warploom.passes.insert_role_barriers import insert_role_barriers
from warploom.passes.insert_trace import insert_trace
from warploom.passes.insert_watch import insert_watch
from warploom.passes.lower_tiles import lower_tiles
from warploom.passes.merge_equal import merge_equal
from warploom.passes.order_tensors import order_tensors
from warploom.passes.place_roles import place_roles
from warploom.passes.plan_shared_memory import plan_shared_memory
from warploom.passes.remove_dead import remove_dead
from warploom.passes.simplify_scalars import simplify_scalars
from warploom.passes.thread_positions import thread_positions

Pass = Callable[[Kernel, Target], None]

PIPELINE: tuple[tuple[Stage, Pass], ...] = (
    (Stage.TILE, check_target),
    (Stage.TILE, check_previous),
    (Stage.TILE, simplify_scalars),
    (Stage.TILE, check_cluster),  # before there are idle warps
    (Stage.TILE, place_roles),  # layouts need the warps of a role
    (Stage.TILE, thread_positions),
    (Stage.TILE, guard_cluster),  # at the end of a role, after the items that go back there
    (Stage.TILE, remove_dead),  # before layouts, so that an unused large tile is no anchor
    (Stage.TILE, assign_layouts),
    (Stage.TILE, check_layouts),
    (Stage.TILE, order_tensors),  # while there are windows to compare, and layouts
    (Stage.MACHINE, lower_tiles),
    (Stage.MACHINE, simplify_scalars),
    (Stage.MACHINE, merge_equal),
    (Stage.MACHINE, hoist_invariants),
    (Stage.MACHINE, merge_equal),  # what two loops hoisted may be the same
    (Stage.MACHINE, remove_dead),
    (Stage.MACHINE, plan_shared_memory),  # barriers are derived from bytes, so places come first
    (Stage.MACHINE, insert_role_barriers),
    (Stage.MACHINE, group_maps),
    (Stage.MACHINE, assign_storage),  # it fixes which variable holds what
    (Stage.MACHINE, insert_trace),  # last, so that a traced kernel is otherwise the same
    (Stage.MACHINE, insert_watch),  # and so with one that is watched
)


def lower(kernel: Kernel, target: Target, until: Stage = Stage.MACHINE) -> None:
    """Take a kernel from the tile stage down to `until`, in place.

    Under WARPLOOM_VERIFY=1 the verifier runs after each pass, addresses are held against layouts,
    and the first pass that broke the IR is named; WARPLOOM_DUMP=FOLDER keeps the text after each.
    """
    verify = os.environ.get("WARPLOOM_VERIFY", "") not in ("", "0")
    dump = os.environ.get("WARPLOOM_DUMP", "")
    for number, (stage, step) in enumerate(PIPELINE):
        if stage.value > until.value:
            break
        step(kernel, target)
        if dump:
            _dump(kernel, Path(dump), f"{number:02d}_{step.__name__}")
        if verify:
            _verify(kernel, step.__name__)
            if step is lower_tiles:  # here addresses are made
                _verify(kernel, step.__name__, verify_accesses)
    if not verify:
        _verify(kernel, "the pipeline")
    elif kernel.stage is Stage.MACHINE:
        _verify(kernel, "the pipeline", verify_accesses)


def _verify(kernel: Kernel, after: str, rule: Callable[[Kernel], None] = verify_kernel) -> None:
    try:
        rule(kernel)
    except VerifyError as error:
        raise VerifyError(f"after {after}: {error}\n{print_kernel(kernel)}") from None


def _dump(kernel: Kernel, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kernel.name}.{name}.ir").write_text(print_kernel(kernel), encoding="utf-8")
