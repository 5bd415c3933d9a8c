"""Descriptions of library calls: what they write follows from the IR, and nothing loads torch."""

import subprocess
import sys

import pytest

import warploom as wl
from warploom.interop import operators
from warploom.interop.operators import Operator
from warploom.kernels import activation, gemm, kv, linear, norm, rope

FAMILIES = (activation, gemm, kv, linear, norm, rope)


@wl.kernel
def halves(x: wl.Tensor, low: wl.Tensor, high: wl.Tensor, SIZE: wl.const):
    wl.store(low[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)]))
    wl.store(high[wl.ds(0, SIZE)], wl.load(x[wl.ds(SIZE, SIZE)]))


@halves.example
def _small(make):
    return halves.launch(1).call(make.randn(8), make.empty(4), make.empty(4), SIZE=4)


@pytest.mark.parametrize("name", sorted(operators.declared))
def test_a_call_writes_its_result_or_what_it_is_for(name):
    operator = operators.declared[name]
    expected = {"out"} if operator.result else {"k_cache", "v_cache"}
    assert operator.written() == expected


def test_every_family_with_a_description_is_known():
    """Each is declared once, under its own name, and by a call that exists."""
    calls = {id(operator.call) for operator in operators.declared.values()}
    assert len(calls) == len(operators.declared)
    for family in FAMILIES:
        held = vars(family).values()
        assert any(operator.call in held for operator in operators.declared.values())


def test_what_a_kernel_writes_gets_the_names_of_the_call():
    made = Operator("halves", halves, ("Tensor x",), (halves,), None, {"high": "upper"})
    assert made.written() == {"low", "upper"}


def test_a_name_is_taken_once():
    known = next(iter(operators.declared.values()))
    with pytest.raises(ValueError, match="two operators are called"):
        operators.declare(known)


def test_later_declarations_reach_who_follows(monkeypatch):
    monkeypatch.setattr(operators, "declared", {})
    monkeypatch.setattr(operators, "_followers", [])
    one, two = (Operator(name, halves, (), (halves,)) for name in ("one", "two"))
    seen = []
    operators.declare(one)
    operators.follow(lambda operator: seen.append(operator.name))
    operators.declare(two)
    assert seen == ["one", "two"]


def test_names_of_arguments():
    made = Operator("f", halves, ("Tensor x", "Tensor? bias=None", 'str style="half"'), ())
    assert made.argument_names == ("x", "bias", "style")


def test_kernels_load_no_torch():
    text = "import warploom.kernels.gemm, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", text], check=True)
