"""Parameters from annotations."""

import pytest

from warploom.base.dtypes import f32, i64
from warploom.base.errors import CompileError
from warploom.frontend.signature import MISSING, parse_signature


def test_kinds(source):
    module = source.module("""
def kernel(x: wl.Tensor, n: wl.i64, eps: wl.f32, B: wl.const, flag: wl.const = False,
           bias: wl.Tensor = None, more: wl.Tensor | None = None):
    pass
""")
    found = [(p.name, p.kind, p.dtype, p.default) for p in parse_signature(module.kernel)]
    assert found == [
        ("x", "tensor", None, MISSING),
        ("n", "scalar", i64, MISSING),
        ("eps", "scalar", f32, MISSING),
        ("B", "const", None, MISSING),
        ("flag", "const", None, False),
        ("bias", "tensor", None, None),
        ("more", "tensor", None, None),
    ]


def test_annotations_as_text(source):
    path = source.folder / "later.py"
    path.write_text(
        "from __future__ import annotations\nimport warploom as wl\n\n"
        "def make():\n    kind = wl.const\n"
        "    def kernel(x: wl.Tensor, B: kind):\n        return kind\n    return kernel\n"
    )
    names: dict = {"__name__": "later"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert [p.kind for p in parse_signature(names["make"]())] == ["tensor", "const"]


WRONG = {
    "no_annotation": "x, y: wl.Tensor",
    "python_types": "n: int, s: float",
    "other_types": "n: list, b: wl.bf16, t: wl.boolean",
    "star": "*xs, **more",
    "scalar_default": "n: wl.i32 = 3",
    "tensor_default": "x: wl.Tensor = 3",
    "unknown_name": "x: 'missing.Tensor'",
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name, source, golden):
    module = source.module(f"def kernel({WRONG[name]}):\n    pass\n")
    with pytest.raises(CompileError) as caught:
        parse_signature(module.kernel)
    golden(str(caught.value))
