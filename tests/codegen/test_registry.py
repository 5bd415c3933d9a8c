"""Rules: one an operation, none missing."""

import pytest

from warploom.codegen.emitter import emits
from warploom.codegen.registry import Rules
from warploom.ir.ops import sync, tile


def test_a_second_rule_is_refused():
    rules = Rules()
    rules(sync.Barrier)(lambda out, op: None)
    with pytest.raises(ValueError, match=r"sync\.barrier has two rules"):
        rules(sync.Barrier)(lambda out, op: None)


def test_missing_rules_are_named():
    rules = Rules()
    rules(sync.Barrier)(lambda out, op: None)
    assert "sync.warp" in rules.missing() and "sync.barrier" not in rules.missing()
    assert not any(name.startswith("tile.") for name in rules.missing())


def test_explain_finds_a_rule():
    assert emits.rule_of(sync.Barrier).__module__ == "warploom.codegen.rules.sync"
    assert emits.rule_of(tile.Load) is None
