"""`if` and conditional expressions, at compile time and at run time."""

import pytest

from warploom.ir.kernel import walk
from warploom.ir.ops import control


def test_merges_what_is_read_later(source, golden):
    body = """
t = wl.load(x[0:4])
k = 1
if n > 3:
    u = t * 2
    t = t + u
    k = n
elif n < 0:
    t = t - 1
wl.store(x[wl.ds(k, 4)], t)
"""
    golden(source.body(body, x="f32 1"))


def test_temporaries_may_differ(source):
    body = """
if n > 3:
    u = wl.arange(4)
    wl.store(x[0], 1.0)
else:
    u = 3.0
    wl.store(x[1], u)
"""
    assert "control.if" in source.body(body, x="f32 1")


def test_constant_takes_one_way(source):
    body = """
if flag:
    wl.store(x[0], 1.0)
else:
    nonsense(everywhere)
"""
    assert "control.if" not in source.body(body, x="f32 1", flag=True)
    codes = [r.code for r in source.refused_body(body, x="f32 1", flag=False).reports]
    assert codes == ["F013"]


def test_none_vanishes(source):
    text = """
def kernel(x: wl.Tensor, bias: wl.Tensor = None):
    t = wl.load(x[0:4])
    if bias is not None and bias.shape[0] > 3:
        t = t + wl.load(bias[0:4])
    wl.store(x[0:4], t)
"""
    assert "control.if" not in source.ir(text, x="f32 1")
    assert "control.if" in source.ir(text, x="f32 1", bias="f32 1")


def test_early_return_of_a_constant(source):
    text = """
def kernel(x: wl.Tensor, flag: wl.const):
    if flag:
        wl.store(x[0], 1.0)
        return
    wl.store(x[1], 1.0)
"""
    assert source.ir(text, x="f32 1", flag=True).count("tile.store") == 1


def test_numbers_become_scalars(source):
    body = "k = 1\nif n > 3:\n    k = 2.5\nwl.store(x[0], k)"
    text = source.body(body, x="f32 1")
    assert "%k: f32@grid = control.if" in text


def test_equal_numbers_stay_constant(source):
    body = """
if n > 3:
    size = 4
    wl.store(x[0], 1.0)
else:
    size = 4
wl.store(x[wl.ds(0, size)], 0.0)
"""
    assert "sizes=(4,)" in source.body(body, x="f32 1")


def test_result_is_as_uniform_as_the_condition(source):
    body = "k = n\nif wl.program_id(0) > 2:\n    k = n + 1\nwl.store(x[k], 1.0)"
    assert "%k.1: i32@block = control.if" in source.body(body, x="f32 1")


def test_integer_condition(source):
    assert "scalar.compare" in source.body("if n:\n    wl.store(x[0], 1.0)", x="f32 1")


def test_conditional_scalars_become_a_select(source):
    text = source.body("k = n if s > 0.0 else 4\nwl.store(x[k], 1.0)", x="f32 1")
    assert "scalar.select" in text and "control.if" not in text


def test_conditional_tiles_become_a_branch(source):
    text = source.body(
        "t = wl.load(x[0:4]) if n > 0 else wl.zeros(4, wl.f32)\nwl.store(x[0:4], t)", x="f32 1"
    )
    assert "f32<4> = control.if" in text


def test_store_in_one_way_stays_there(source):
    text = """
@wl.function
def mark(x):
    wl.store(x[0], 1.0)
    return 1

def kernel(x: wl.Tensor, n: wl.i32):
    k = mark(x) if n > 0 else 2
    wl.store(x[k], 2.0)
"""
    kernel = source.build(text, x="f32 1")
    (branch,) = [op for op in walk(kernel.body) if isinstance(op, control.If)]
    assert any(op.OPCODE == "tile.store" for op in branch.then.ops)


def test_and_or_not(source):
    body = "if (n > 0 and s < 1.0) or not n < 5:\n    wl.store(x[0], 1.0)"
    text = source.body(body, x="f32 1")
    assert 'kind="and"' in text and 'kind="or"' in text and 'kind="not"' in text


@pytest.mark.parametrize(
    ("expression", "code"),
    [("flag and missing", None), ("flag or missing", "F013"), ("not flag or n > 0", None)],
)
def test_constants_decide_in_a_chain(source, expression, code):
    body = f"if {expression}:\n    wl.store(x[0], 1.0)"
    if code is None:
        source.body(body, x="f32 1", flag=False)
    else:
        (report,) = source.refused_body(body, x="f32 1", flag=False).reports
        assert report.code == code


def test_chained_comparison(source):
    assert source.body("if 0 < n < 5:\n    wl.store(x[0], 1.0)", x="f32 1").count("compare") == 2


def test_unbound_at_the_end_of_some_trips(source):
    body = """
if n > 0:
    k = 1
for i in wl.range(n):
    if i > 2:
        k = i
    wl.store(x[k], 1.0)
"""
    codes = [r.code for r in source.refused_body(body, x="f32 1").reports]
    assert codes == ["F014"]


def test_bound_in_one_branch_within_a_loop(source):
    body = """
for i in wl.range(n):
    if i > 2:
        k = i
    wl.store(x[k], 1.0)
"""
    codes = [r.code for r in source.refused_body(body, x="f32 1").reports]
    assert codes == ["F014"]
