"""The prelude: only what is used, each helper once, what a helper needs before it."""

from __future__ import annotations

import re

import pytest

from warploom.base.dtypes import ALL, bf16, f32, f64, i32
from warploom.base.target import TARGETS
from warploom.codegen import access_helpers
from warploom.codegen.emitter import CudaSource
from warploom.codegen.names import Names
from warploom.codegen.prelude import FIXED, Prelude
from warploom.runtime.nvrtc import compile_ptx


def defined(text: str) -> list[str]:
    """Names of the functions that a text defines, in order."""
    return re.findall(r"__forceinline__ .*?(\w+)\(", text)


def test_nothing_is_printed_unasked():
    assert Prelude().text() == ""


def test_a_helper_comes_after_what_it_calls():
    prelude = Prelude()
    prelude.use("take_max_bf16", "to_i8_f32", "take_max_bf16")
    text = prelude.text()
    assert defined(text) == ["to_f32", "take_max_bf16", "to_i32", "to_i8"]
    assert text.startswith("struct bf16")


def test_one_name_can_have_several_forms():
    prelude = Prelude()
    for guard in ("", "p", "p, other", "p"):
        access_helpers.load(prelude, "global", f32, 4, guard=guard)
    assert defined(prelude.text()) == ["ld_global_f32x4"] * 3


def test_helpers_are_named_like_what_they_do():
    prelude = Prelude()
    name = access_helpers.load(prelude, "global", bf16, 8, read_only=True, cache="no_allocate")
    assert name == "ld_global_nc_no_allocate_bf16x8"
    assert "ld.global.nc.L1::no_allocate.v4.b32" in prelude.text()
    assert access_helpers.store(prelude, "shared", f32, 2) == "st_shared_f32x2"
    assert access_helpers.shuffle(prelude, f64, "xor") == "shfl_xor_f64"


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_all_helpers_together_compile(target):
    prelude = Prelude()
    prelude.use(*FIXED)
    for dtype in ALL:
        access_helpers.shuffle(prelude, dtype, "xor")
        for space in ("global", "shared"):
            for guard in ("", "p"):
                access_helpers.load(prelude, space, dtype, 2, guard=guard)
                access_helpers.store(prelude, space, dtype, 2, guard=guard)
    compile_ptx(CudaSource(prelude.text(), "all", 32, 0), target)


def test_names_of_helpers_are_kept_from_the_user():
    """A variable of the user is never called like a helper or a macro."""
    prelude = Prelude()
    prelude.use(*FIXED)
    access_helpers.load(prelude, "global", i32, 4)
    access_helpers.store(prelude, "shared", i32, 4)
    access_helpers.shuffle(prelude, i32, "xor")
    macros = re.findall(r"#define (\w+)", prelude.text())
    types = re.findall(r"^(?:typedef .*|struct )(\b\w+)(?:;| \{)", prelude.text(), re.M)
    assert {"UNROLL", "bf16", "u32"} <= {*macros, *types}
    for name in {*defined(prelude.text()), *macros, *types}:
        assert Names().take(name) != name
