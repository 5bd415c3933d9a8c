"""Functions of users are inlined: arguments, defaults, results, call chains, captured values."""

from warploom.ir.kernel import walk


def test_inlined_with_call_chain(source):
    text = """
@wl.function
def inner(t):
    return t * 2

@wl.function
def outer(t, *more, scale=1.0):
    u = inner(t)
    for one in more:
        u = u + one
    return u * scale, len(more)

def kernel(x: wl.Tensor):
    a, count = outer(wl.load(x[0:4]), 1, 2, scale=0.5)
    wl.store(x[wl.ds(0, 4)], a + count)
"""
    kernel = source.build(text, x="f32 1")
    deep = [op for op in walk(kernel.body) if len(op.loc.chain) == 2]
    assert deep
    assert [place.line for place in deep[0].loc.chain] == [9, 15]
    assert deep[0].loc.line == 5


def test_function_as_constant(source):
    text = """
@wl.function
def relu(t):
    return wl.maximum(t, 0)

def kernel(x: wl.Tensor, epilogue: wl.const = None):
    t = wl.load(x[0:4])
    if epilogue is not None:
        t = epilogue(t)
    wl.store(x[0:4], t)
"""
    module = source.module(text)
    assert 'kind="max"' not in source.ir(text, x="f32 1")
    kernel = source.build(text, x="f32 1", epilogue=module.relu)
    assert any(getattr(op, "kind", "") == "max" for op in walk(kernel.body))


def test_functions_take_tensors_dtypes_and_tuples(source):
    text = """
@wl.function
def read(x, at, shape, dtype):
    return wl.load(x[wl.ds(at, shape[0])]).cast(dtype)

def kernel(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[0:4], read(x, 0, (4,), y.dtype))
"""
    assert "tile.cast" in source.ir(text, x="bf16 1", y="f32 1")


def test_early_return_in_unrolled_loop(source):
    text = """
@wl.function
def first_even(numbers):
    for number in numbers:
        if number % 2 == 0:
            return number
    return 0

def kernel(x: wl.Tensor):
    wl.store(x[wl.ds(0, first_even((3, 5, 8, 4)))], 1.0)
"""
    assert "sizes=(8,)" in source.ir(text, x="f32 1")


def test_names_of_a_function_are_its_own(source):
    text = """
@wl.function
def double(t):
    u = t * 2
    return u

def kernel(x: wl.Tensor, n: wl.i32):
    u = wl.load(x[0:4])
    for k in wl.range(n):
        v = double(u)
        wl.store(x[wl.ds(k, 4)], v)
    wl.store(x[0:4], u)
"""
    lines = source.ir(text, x="f32 1").splitlines()
    (head,) = [line for line in lines if "control.for" in line]
    assert ", [])" in head


def test_mutual_recursion(source, golden):
    text = """
@wl.function
def even(n):
    return odd(n - 1)

@wl.function
def odd(n):
    return even(n - 1)

def kernel(n: wl.i32):
    a = even(n)
"""
    golden(str(source.refused(text)))


def test_wrong_arguments_of_a_function(source, golden):
    text = """
@wl.function
def pair(a, b):
    return a + b

def kernel(n: wl.i32):
    a = pair(n)
    b = pair(n, c=3)
"""
    golden(str(source.refused(text)))


def test_functions_of_a_module(source):
    text = """
import types
tools = types.ModuleType("tools")

@wl.function
def half(t):
    return t * 0.5

tools.half = half
tools.SIZE = 4

def kernel(x: wl.Tensor):
    wl.store(x[wl.ds(0, tools.SIZE)], tools.half(wl.load(x[0:4])))
"""
    assert "tile.binary" in source.ir(text, x="f32 1")


def test_dataclass_and_enum_constants(source):
    text = """
import enum
from dataclasses import dataclass

class Mode(enum.Enum):
    FAST = 1
    EXACT = 2

@dataclass(frozen=True)
class Config:
    size: int
    mode: Mode

CONFIG = Config(8, Mode.EXACT)

def kernel(x: wl.Tensor, config: wl.const):
    size = CONFIG.size if config.mode == Mode.FAST else config.size
    wl.store(x[wl.ds(0, size)], 1.0)
"""
    module = source.module(text)
    fast = module.Config(2, module.Mode.FAST)
    assert "sizes=(8,)" in source.text_of(module.kernel, x="f32 1", config=fast)
    exact = module.Config(2, module.Mode.EXACT)
    assert "sizes=(2,)" in source.text_of(module.kernel, x="f32 1", config=exact)


def test_bug_of_the_front_end_is_a_report(source, monkeypatch, golden):
    def broken(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("warploom.frontend.expressions.window", broken)
    error = source.refused_body("t = wl.load(x[0])\nu = t + 1\nv = wl.load(x[1])", x="f32 1")
    assert [r.code for r in error.reports] == ["F099", "F099"]
    assert isinstance(error.__cause__, RuntimeError)
    golden(str(error))
