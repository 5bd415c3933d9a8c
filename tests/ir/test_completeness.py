"""Nothing without its rule: machine operations on both devices, all others in lowering."""

import ast
import re
from pathlib import Path

import pytest

import warploom.codegen.rules
import warploom.ir.ops
import warploom.passes.lowering
import warploom.sim.rules
from warploom.codegen.registry import emits
from warploom.ir.op import REGISTRY, Effect, FieldKind, Op, Stage
from warploom.passes.lowering.context import lowers
from warploom.sim.registry import simulates

OPS = Path(warploom.ir.ops.__file__).parent


def test_rules_are_registered_by_importing_their_packages() -> None:
    packages = (warploom.sim.rules, warploom.codegen.rules, warploom.passes.lowering)
    assert all(package.__file__ for package in packages)


def test_every_machine_operation_is_simulated() -> None:
    assert simulates.missing() == []


def test_every_machine_operation_is_emitted() -> None:
    assert emits.missing() == []


def test_every_other_operation_is_lowered() -> None:
    assert lowers.missing() == []


def test_no_rule_without_an_operation() -> None:
    known = set(REGISTRY.values())
    assert set(lowers.rules) <= known
    for cls in known:
        if Stage.MACHINE not in cls.STAGES:
            assert simulates.find(cls) is None, f"{cls.OPCODE} is never simulated"
            assert emits.rule_of(cls) is None, f"{cls.OPCODE} is never emitted"


@pytest.mark.parametrize("opcode", sorted(REGISTRY))
def test_declarations(opcode: str) -> None:
    cls = REGISTRY[opcode]
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", opcode)
    assert cls.__module__ == f"warploom.ir.ops.{cls.FAMILY}", "a family is a file"
    assert cls.__doc__ and cls.__doc__.strip()[-1] in ".)", "what it does, in a sentence"
    kinds = [info.kind for info in cls.FIELDS]
    values = (FieldKind.OPERAND, FieldKind.OPERANDS, FieldKind.OPTIONAL)
    order = [0 if k in values else 1 if k is FieldKind.ATTRIBUTE else 2 for k in kinds]
    assert order == sorted(order), "operands, then attributes, then regions"
    assert cls.TERMINATOR == (opcode == "control.yield")
    if FieldKind.REGION in kinds:
        assert Effect.CONTROL in cls.EFFECTS


def test_every_operation_of_tiles_declares_its_dtypes() -> None:
    """tests/ops covers each declared pair."""
    without = {
        opcode
        for opcode, cls in REGISTRY.items()
        if cls.FAMILY == "tile" and not cls.DTYPES and Effect.OUTSIDE not in cls.EFFECTS
    }
    assert without == set()


def test_every_family_is_imported() -> None:
    declaring = {
        path.stem
        for path in OPS.glob("*.py")
        if any(
            isinstance(node, ast.ClassDef) and node.decorator_list
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert declaring == {cls.FAMILY for cls in REGISTRY.values()}
    assert declaring == set(warploom.ir.ops.__all__)


def test_pure_operations_have_results() -> None:
    for opcode, cls in REGISTRY.items():
        if not cls.EFFECTS and opcode != "tensor.rows":
            assert cls.infer is not Op.infer, opcode
