"""What belongs to the key of a compiled kernel: source, what it reaches, captured values."""

import pytest

from warploom.frontend.capture import NotConstant, admit, canonical, captured, source_key_parts
from warploom.frontend.source import read

TEXT = """
import math
import types
import numpy as np

SCALE = 0.5
OTHER = 7
settings = types.SimpleNamespace(size=3)
tools = types.ModuleType("tools")
tools.SIZE = 4

@wl.function
def deep(t, k=OTHER):
    return t * SCALE

@wl.function
def helper(t):
    return deep(t) + tools.SIZE

@wl.function
def unused(t):
    return t

def kernel(x: wl.Tensor, epilogue: wl.const):
    local = 1
    t = helper(wl.load(x[0:4])) + math.pi
    OTHER_LOCAL = [t for OTHER_LOCAL in (1, 2)]
    wl.store(x[0:4], epilogue(t))
"""


def parts(module, **constants) -> dict[str, str]:
    """The key parts of a kernel by name."""
    return dict(source_key_parts(module.kernel, constants))


def test_what_is_reached(source):
    module = source.module(TEXT)
    found = parts(module, epilogue=module.unused)
    sources = {name.split(" ")[1].rsplit(".", 1)[1] for name in found if name.startswith("source")}
    assert sources == {"kernel", "helper", "deep", "unused"}
    assert {"x"}.isdisjoint(captured(read(module.kernel)))
    assert captured(read(module.kernel)).keys() == {"helper", "math.pi"}
    assert captured(read(module.deep)).keys() == {"SCALE"}
    assert captured(read(module.helper)).keys() == {"deep", "tools.SIZE"}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "SCALE", 0.25),
        lambda m: setattr(m.tools, "SIZE", 5),
        lambda m: setattr(m.deep.__wrapped__, "__defaults__", (8,)),
        lambda m: setattr(m, "deep", m.unused),
    ],
)
def test_each_captured_value_counts(source, change):
    module = source.module(TEXT)
    before = parts(module, epilogue=module.unused)
    assert parts(module, epilogue=module.unused) == before
    change(module)
    assert parts(module, epilogue=module.unused) != before


def test_what_is_not_reached_does_not_count(source):
    module = source.module(TEXT)
    before = parts(module, epilogue=None)
    module.OTHER, module.unused = 8, None
    assert parts(module, epilogue=None) == before


def test_source_text_counts(source):
    before = parts(source.module(TEXT), epilogue=None)
    after = parts(source.module(TEXT.replace("t * SCALE", "t + SCALE")), epilogue=None)
    assert [v for k, v in before.items() if "deep" in k] != [
        v for k, v in after.items() if "deep" in k
    ]


def test_closure_counts():
    def make(size):
        import warploom as wl

        def kernel(x: wl.Tensor):
            wl.store(x[wl.ds(0, size)], 1.0)

        return kernel

    assert source_key_parts(make(4), {}) != source_key_parts(make(8), {})
    assert source_key_parts(make(4), {}) == source_key_parts(make(4), {})


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), ((1, 2), (12,)), (None, "None"), (1, 2)],
)
def test_constants_that_differ(a, b):
    assert canonical(a) != canonical(b)


def test_nan_equals_itself():
    assert canonical(float("nan")) == canonical(float("nan"))


def test_admitted():
    import numpy as np

    assert admit(np.float32(0.5)) == 0.5
    assert type(admit(np.int64(3))) is int
    assert admit([1, (2, np.bool_(True))]) == (1, (2, True))
    for value in (np.zeros(3), {1: 2}, {1}, object(), [np.zeros(1)]):
        with pytest.raises(NotConstant):
            admit(value)


def test_classes_and_enums_count_with_their_values(source):
    text = """
import enum

class Sizes:
    ROWS = 4
    names = {1: 2}

class Mode(enum.IntEnum):
    FAST = 1

def kernel(x: wl.Tensor):
    wl.store(x[wl.ds(0, Sizes.ROWS)], Mode.FAST.value)
"""
    module = source.module(text)
    before = parts(module)
    module.Sizes.ROWS = 8
    assert parts(module) != before
    other = source.module(text.replace("FAST = 1", "FAST = 3"))
    values = [[v for k, v in parts(m).items() if "Mode" in k] for m in (module, other)]
    assert values[0] != values[1]
    assert "sizes=(8,)" in source.text_of(module.kernel, x="f32 1")


def test_what_a_key_cannot_show_is_not_read(source):
    text = """
class Sizes:
    table = {1: 2}

    @property
    def rows(self):
        return 4

SIZES = Sizes()

def kernel(x: wl.Tensor):
    a = Sizes.table
    b = SIZES.rows
"""
    codes = [r.code for r in source.error(source.module(text).kernel, x="f32 1").reports]
    assert codes == ["F025", "F029"]
