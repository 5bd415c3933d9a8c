"""One line of a good kernel is wrong: the report says where, what was found, and one fix."""

import ast
import time

import pytest

GOOD = """
import numpy as np

SCALE = 0.5

@wl.function
def soft(t, top):
    return wl.exp(t - top[:, None])

def kernel(
    x: wl.Tensor, w: wl.Tensor, ids: wl.Tensor, y: wl.Tensor, n: wl.i32, BM: wl.const, BN: wl.const
):
    m = wl.program_id(0) * BM
    top = wl.full((BM,), -1e30, wl.f32)
    acc = wl.zeros((BM, BN), wl.f32)
    for k in wl.range(0, x.shape[1], BN):
        t = wl.load(x[wl.ds(m, BM), wl.ds(k, BN)])
        top = wl.maximum(top, wl.max(t, axis=1))
        acc = acc + soft(t, top) * SCALE
    if n > 0:
        shift = wl.load(w[wl.ds(0, BN)]).cast(wl.f32)
    else:
        shift = wl.zeros((BN,), wl.f32)
    rows = wl.arange(BM) + m
    picked = wl.gather(ids, (rows,))
    total = wl.sum(acc, axis=1) + picked.cast(wl.f32)
    out = acc * wl.rsqrt(total)[:, None] + shift[None, :]
    assert n >= 0, "n counts rows"
    wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], out.cast(y.dtype))
"""

GIVEN = {"x": "f32 n1", "w": "bf16 1", "ids": "i32 1", "y": "bf16 n1", "BM": 4, "BN": 64}

MUTATIONS = {
    # name: (code, line as it is, line as it becomes)
    "return_in_loop": ("F018", "acc = acc + soft(t, top) * SCALE", "return"),
    "carried_dtype": ("F016", "acc = acc + soft(t, top) * SCALE", "acc = (acc + t).cast(wl.bf16)"),
    "carried_shape": ("F016", "acc = acc + soft(t, top) * SCALE", "acc = wl.sum(acc + t, axis=1)"),
    "carried_from_number": ("F016", "acc = wl.zeros((BM, BN), wl.f32)", "acc = 0.0"),
    "one_branch_only": ("F014", "shift = wl.zeros((BN,), wl.f32)", "pass"),
    "two_types_after_if": (
        "F017",
        "shift = wl.zeros((BN,), wl.f32)",
        "shift = wl.zeros((BN,), wl.f16)",
    ),
    "recursion": ("F020", "return wl.exp(t - top[:, None])", "return soft(t, top)"),
    "error_in_function": ("T005", "return wl.exp(t - top[:, None])", "return wl.exp(t - top)"),
    "unknown_method": ("F025", "picked = wl.gather(ids, (rows,))", "picked = rows.to(wl.i32)"),
    "unknown_wl_name": (
        "F024",
        "top = wl.maximum(top, wl.max(t, axis=1))",
        "top = wl.maximun(top, t)",
    ),
    "numpy_function": (
        "F023",
        "return wl.exp(t - top[:, None])",
        "return np.exp(t - top[:, None])",
    ),
    "index_by_tile": ("T007", "picked = wl.gather(ids, (rows,))", "picked = wl.load(ids[rows])"),
    "float_in_int_tile": ("T002", "rows = wl.arange(BM) + m", "rows = wl.arange(BM) + 0.5"),
    "print_f_string": ("F028", 'assert n >= 0, "n counts rows"', 'print(f"n is {n}")'),
    "import_inside": ("F012", 'assert n >= 0, "n counts rows"', "import math"),
    "shape_not_constant": (
        "T008",
        "acc = wl.zeros((BM, BN), wl.f32)",
        "acc = wl.zeros((n, BN), wl.f32)",
    ),
    "window_not_constant": (
        "T009",
        "t = wl.load(x[wl.ds(m, BM), wl.ds(k, BN)])",
        "t = wl.load(x[wl.ds(m, BM), k : n])",
    ),
    "wrong_rank": (
        "T006",
        "t = wl.load(x[wl.ds(m, BM), wl.ds(k, BN)])",
        "t = wl.load(x[wl.ds(k, BN)])",
    ),
    "two_dtypes": (
        "T001",
        "total = wl.sum(acc, axis=1) + picked.cast(wl.f32)",
        "total = wl.sum(acc, axis=1) + picked",
    ),
    "stored_dtype": (
        "T010",
        "wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], out.cast(y.dtype))",
        "wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], out)",
    ),
    "stored_shape": (
        "T011",
        "wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], out.cast(y.dtype))",
        "wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], out.cast(y.dtype).T)",
    ),
    "tile_as_condition": ("F030", "if n > 0:", "if top > 0:"),
    "misspelt_name": (
        "F013",
        "acc = acc + soft(t, top) * SCALE",
        "acc = acc + soft(t, top) * SCALES",
    ),
    "wrong_keyword": (
        "F026",
        "top = wl.maximum(top, wl.max(t, axis=1))",
        "top = wl.maximum(top, wl.max(t, dim=1))",
    ),
    "axis_out_of_range": (
        "T012",
        "top = wl.maximum(top, wl.max(t, axis=1))",
        "top = wl.maximum(top, wl.max(t, axis=2))",
    ),
    "and_of_tiles": ("F031", "rows = wl.arange(BM) + m", "rows = wl.arange(BM) and m"),
    "integer_division": ("T004", "rows = wl.arange(BM) + m", "rows = wl.arange(BM) / 2"),
    "tensor_as_value": ("T019", "picked = wl.gather(ids, (rows,))", "picked = ids * 2"),
    "assigned_in_place": ("F035", "top = wl.maximum(top, wl.max(t, axis=1))", "acc[0] = top"),
    "break": ("F019", "acc = acc + soft(t, top) * SCALE", "break"),
}


# Where the line that is wrong is not the one that was changed.
ELSEWHERE = ("one_branch_only",)


def mutant(name: str) -> str:
    """The good kernel with one line changed."""
    _, before, after = MUTATIONS[name]
    assert GOOD.count(before) == 1
    return GOOD.replace(before, after)


def rows(text: str) -> list[str]:
    """The lines behind the import that the fixture writes."""
    return text.lstrip("\n").split("\n")


def test_good(source):
    source.build(GOOD, **GIVEN)


@pytest.mark.case("C36")
@pytest.mark.parametrize("name", MUTATIONS)
def test_report(name, source, golden):
    text = mutant(name)
    ast.parse(text)
    module = source.module(text)
    started = time.process_time()
    error = source.error(module.kernel, **GIVEN)
    seconds = time.process_time() - started
    (report,) = error.reports
    assert report.code == MUTATIONS[name][0]
    changed = [
        at
        for at, (old, new) in enumerate(zip(rows(GOOD), rows(text), strict=True), 3)
        if old != new
    ]
    assert set(changed) & {span.line for span in report.spans} or name in ELSEWHERE
    assert report.spans[0].column > 0
    assert seconds < 0.2
    golden(str(error))
