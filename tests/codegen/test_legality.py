"""The list of what the matrix unit can do (`base/target.py`) is what the assembler takes: every row
in full, and nothing beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warploom.base.dtypes import DType
from warploom.base.errors import CompileError
from warploom.base.target import PRODUCTS, SM_80, SM_90A, WARP_PRODUCTS, Product
from warploom.codegen import product_helpers
from warploom.codegen.emitter import CudaSource
from warploom.codegen.prelude import Prelude
from warploom.runtime.nvrtc import compile_cubin

PAIRS = [(can, a, b) for can in PRODUCTS for a, b in can.pairs]
ROWS = [pytest.param(can, id=f"{can.pairs[0][0]}") for can in PRODUCTS]


def name_of(part: object) -> str:
    return part.unit if isinstance(part, Product) else str(part)


def assemble(helpers: list[tuple[str, DType, bool]], prelude: Prelude) -> str:
    """Compile a kernel that runs products, each with its accumulator; returns its PTX."""
    lines = []
    for name, sums, in_registers in helpers:
        a = "a, a, a, a" if in_registers else "(u64)a"
        c = "int" if sums.is_int else "float"
        lines.append(
            f"{{ {c} acc[128] = {{}}; {name}(acc, acc + 64, {a}, (u64)a);"
            ' asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"'
            ' ::: "memory"); }'
        )
    prelude.use("u32", "u64")
    body = "\n".join(lines)
    text = f'{prelude.text()}\nextern "C" __global__ void all(u32 a) {{\n{body}\n}}\n'
    return compile_cubin(CudaSource(text, "all", 128, 0), SM_90A).ptx


def helper(can: Product, dtypes: tuple[DType, DType], n: int, turned=(False, False)):
    """A helper for a row of the list, or for one that stands beside it."""
    prelude = Prelude()
    kinds = [product_helpers._OPERAND.get(t.name, t.name) for t in dtypes]
    prelude.make("one", lambda: product_helpers._multiply("one", kinds, n, can, turned))
    return assemble([("one", can.sums, turned[0] is None)], prelude)


@pytest.mark.parametrize(("can", "a", "b"), PAIRS, ids=name_of)
def test_every_row_is_assembled(can, a, b):
    prelude = Prelude()
    turns = [(x, y) for x in (False, True) for y in (False, True)] if can.turned else []
    forms = [(n, (False, False)) for n in can.columns]
    forms += [(16, turned) for turned in turns] + [(n, (None, False)) for n in can.columns[::4]]
    forms += [(16, (None, True))] if can.turned else []
    helpers = [
        (product_helpers.multiply(prelude, (a, b), n, turned), can.sums, turned[0] is None)
        for n, turned in forms
    ]
    ptx = assemble(helpers, prelude)
    assert ptx.count("wgmma.mma_async.") == len(forms)


@pytest.mark.parametrize("can", ROWS)
def test_what_stands_beside_a_row_is_refused(can):
    pair = can.pairs[0]
    helper(can, pair, 16)
    every = set(range(8, 257, 8))
    for n in sorted({4, 12, 20, *(every - set(can.columns))}):
        with pytest.raises(CompileError):
            helper(can, pair, n)
    for depth in {8, 16, 32, 64} - {can.depth}:
        with pytest.raises(CompileError):
            helper(replace(can, depth=depth), pair, 16)
    if not can.turned:
        for turned in ((True, False), (False, True)):
            with pytest.raises(CompileError):
                helper(replace(can, turned=True), pair, 16, turned)


def test_pairs_that_are_not_listed_are_refused():
    listed = {pair for can in PRODUCTS for pair in can.pairs}
    kinds = {t: can for can in PRODUCTS for pair in can.pairs for t in pair}
    for a, can in kinds.items():
        for b in kinds:
            if (a, b) not in listed:
                with pytest.raises(CompileError):
                    helper(can, (a, b), 16)


def in_warp(can: Product, a: DType, b: DType) -> str:
    """The PTX of a kernel with one product of a warp, for the architecture that the list names."""
    prelude = Prelude()
    prelude.make("one", lambda: product_helpers._multiply_in_warp("one", can, a, b))
    text = (
        f'{prelude.text()}\nextern "C" __global__ void all(u32 x, float c, float* out) {{\n'
        "float d[4]; one(d, x, x, x, x, x, x, c, c, c, c); *out = d[0] + d[1] + d[2] + d[3];\n}\n"
    )
    assert can.since == SM_80.arch
    return compile_cubin(CudaSource(text, "all", 32, 0), SM_80).ptx


@pytest.mark.parametrize("can", WARP_PRODUCTS, ids=name_of)
def test_products_of_a_warp(can):
    for a, b in can.pairs:
        assert "mma.sync.aligned.m16n8k16" in in_warp(can, a, b)
    for near in (replace(can, depth=32), replace(can, columns=(16,)), replace(can, rows=8)):
        with pytest.raises(CompileError):
            in_warp(near, *can.pairs[0])
    with pytest.raises(CompileError):
        in_warp(can, can.pairs[0][0], can.pairs[1][1])
