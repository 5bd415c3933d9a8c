"""Every declared pair of operation and dtype has a case, and every case holds on both devices."""

import re

import pytest

from tests.ops import (
    arithmetic,
    atomic,
    bulk,
    cluster,
    control,
    cp_async,
    debug,
    descriptor,
    flagged,
    flags,
    grid,
    lanes,
    layouts,
    mbarrier,
    memory,
    mma,
    ptx,
    registers,
    remote,
    scalar,
    shared,
    sync,
    tensor,
    tile,
    tma,
    watch,
    wgmma,
)
from tests.ops.trial import Case, differences
from warploom.ir.kernel import walk
from warploom.ir.op import REGISTRY, Stage
from warploom.ir.parser import parse_kernel
from warploom.testing.devices import SimDevice

FAMILIES = (
    *(
        arithmetic,
        atomic,
        control,
        debug,
        descriptor,
        lanes,
        layouts,
        mbarrier,
        memory,
        registers,
        scalar,
        shared,
        tensor,
        tile,
    ),
    *(bulk, cp_async, mma, ptx, sync, tma, wgmma, grid, cluster, flags, flagged, watch, remote),
)
CASES: list[Case] = [case for family in FAMILIES for case in family.CASES]


def covers(case: Case, text: str) -> bool:
    """Whether a kernel has the operation with a result or an operand of the dtype."""
    for op in walk(parse_kernel(text).body):
        if op.OPCODE == case.op:
            types = [v.type for v in (*op.results, *op.operand_values())]
            if not case.dtype or case.dtype in {t.dtype.name for t in types if hasattr(t, "dtype")}:
                return True
    return False


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, device, capfd):
    trial = case.make(device)
    # Conversions of layouts join at the stage of roles, positions in pipes are gone there, and some
    # fences join at the stage of the machine.
    stages = REGISTRY[case.op].STAGES
    levels = [name for name in ("roles", "machine") if Stage[name.upper()] in stages]
    if case.op in ("roles.position", "roles.round", "roles.hand_back", "roles.skip"):
        levels = ["tile"]
    texts = [trial.call.text(level) for level in levels]
    found = any(covers(case, text) for text in texts)
    assert found, f"{case.op} of {case.dtype} is not in this kernel:\n{texts[-1]}"
    trial.call.run()
    for found, expected in trial.pairs:
        wrong = differences(device.get(found), expected, trial.ulp, trial.absolute)
        assert not wrong, "\n".join(wrong)
    if trial.printed is not None:
        device.synchronise()
        lines = [line.strip() for line in capfd.readouterr().out.splitlines()]
        assert sorted(lines) == sorted(trial.printed.splitlines())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_checked_mode_gives_the_same_bits(case: Case):
    plain, checked = case.make(SimDevice()), case.make(SimDevice())
    plain.call.run()
    findings = checked.call.check()
    assert findings.clean, findings.text()
    for (one, _), (other, _) in zip(plain.pairs, checked.pairs, strict=True):
        assert one.tobytes() == other.tobytes()


def test_every_declared_dtype_has_a_case():
    listed = {(case.op, case.dtype) for case in CASES}
    missing = [
        f"{op.OPCODE} {dtype}"
        for op in REGISTRY.values()
        for dtype in op.DTYPES
        if (op.OPCODE, dtype.name) not in listed
    ]
    assert not missing, f"no case for {', '.join(missing)}"


def test_every_operation_has_a_case():
    listed = {case.op for case in CASES}
    assert not sorted(set(REGISTRY) - listed)


def test_case_names_are_unique():
    names = [str(case) for case in CASES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[\w.,-]+", name) for name in names)
