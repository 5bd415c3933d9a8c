"""What integer helpers and expressions compute, asked of the compiler itself: NVRTC evaluates
them in static assertions. (Inline asm cannot be evaluated so; tests/ops runs it on a GPU.)"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from warploom.base.dtypes import BY_NAME, DType
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.codegen import expressions
from warploom.codegen.c_types import c_type, literal
from warploom.codegen.emitter import CudaSource
from warploom.codegen.prelude import INLINE, Prelude
from warploom.runtime.nvrtc import compile_ptx

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def interesting(dtype: DType) -> list[int]:
    info = np.iinfo(dtype.numpy)
    small = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64]
    edges = [info.min, info.min + 1, info.max - 1, info.max]
    numbers = small + edges + ([] if info.min == 0 else [-1, -2, -3, -7, -8])
    return sorted({n for n in numbers if info.min <= n <= info.max})


def expected(kind: str, dtype: DType, a: int, b: int) -> int:
    """The contract in Python's integers."""
    bits = dtype.bits
    inside = 0 <= b < bits
    results = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floordiv": lambda: a // b if b else 0,
        "mod": lambda: a % b if b else a,
        "max": lambda: max(a, b),
        "min": lambda: min(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shl": lambda: a << b if inside else 0,
        "shr": lambda: a >> b if inside else (-1 if a < 0 else 0),
    }
    value = results[kind]() % (1 << bits)
    signed = dtype.kind.value == "int" and value >= 1 << (bits - 1)
    return value - (1 << bits) if signed else value


def prove(prelude: Prelude, functions: list[str], claims: list[str]) -> None:
    """Compile the claims as static assertions; the message of a false one names it."""
    text = prelude.text().replace(INLINE, INLINE + " constexpr")
    text += "\n" + "\n".join(functions) + "\n"
    text += "\n".join(f"static_assert({claim});" for claim in claims)
    compile_ptx(CudaSource(text, "claims", 32, 0), SM_90A)


def test_a_false_claim_is_found():
    with pytest.raises(CompileError, match="static assertion failed"):
        prove(Prelude(), [], ["1 + 1 == 3"])


@pytest.mark.parametrize("name", INTEGERS)
def test_binary(name):
    dtype = BY_NAME[name]
    prelude, functions, claims = Prelude(), [], []
    prelude.type(dtype)
    c = c_type(dtype)
    kinds = ["add", "sub", "mul", "floordiv", "mod", "max", "min", "and", "or", "xor", "shl", "shr"]
    for kind in kinds:
        body = expressions.binary(prelude, kind, dtype, "a", "b")
        functions.append(
            f"constexpr __device__ {c} do_{kind}({c} a, {c} b) {{ {c} y = {body}; return y; }}"
        )
        for a, b in itertools.product(interesting(dtype), repeat=2):
            want = literal(expected(kind, dtype, a, b), dtype)
            claims.append(f"do_{kind}({literal(a, dtype)}, {literal(b, dtype)}) == {want}")
    prove(prelude, functions, claims)


@pytest.mark.parametrize("name", INTEGERS)
def test_binary_with_a_literal(name):
    """Literals take shortcuts: shifts and masks for powers of two, unsigned literals."""
    dtype = BY_NAME[name]
    prelude, functions, claims = Prelude(), [], []
    prelude.type(dtype)
    c = c_type(dtype)
    numbers = [n for n in interesting(dtype) if abs(n) < 64] + [np.iinfo(dtype.numpy).max]
    for kind in ["add", "sub", "mul", "floordiv", "mod", "shl", "shr"]:
        for place, number in enumerate(numbers):
            text = literal(number, dtype)
            right = expressions.binary(prelude, kind, dtype, "a", text)
            left = expressions.binary(prelude, kind, dtype, text, "a")
            for side, body in (("r", right), ("l", left)):
                head = f"constexpr __device__ {c} {kind}_{side}{place}({c} a)"
                functions.append(f"{head} {{ {c} y = {body}; return y; }}")
            for a in interesting(dtype):
                one = literal(a, dtype)
                want = literal(expected(kind, dtype, a, number), dtype)
                claims.append(f"{kind}_r{place}({one}) == {want}")
                want = literal(expected(kind, dtype, number, a), dtype)
                claims.append(f"{kind}_l{place}({one}) == {want}")
    prove(prelude, functions, claims)


@pytest.mark.parametrize("name", INTEGERS)
def test_unary_and_compare(name):
    dtype = BY_NAME[name]
    prelude, functions, claims = Prelude(), [], []
    prelude.type(dtype)
    c = c_type(dtype)
    results = {"neg": lambda a: -a, "abs": abs, "not": lambda a: ~a}
    for kind, result in results.items():
        body = expressions.unary(prelude, kind, dtype, "a")
        functions.append(
            f"constexpr __device__ {c} do_{kind}({c} a) {{ {c} y = {body}; return y; }}"
        )
        for a in interesting(dtype):
            want = literal(expected("add", dtype, result(a), 0), dtype)
            claims.append(f"do_{kind}({literal(a, dtype)}) == {want}")
    for kind, sign in (("lt", "<"), ("ge", ">="), ("ne", "!=")):
        body = expressions.compare(prelude, kind, dtype, "a", "b")
        functions.append(f"constexpr __device__ bool do_{kind}({c} a, {c} b) {{ return {body}; }}")
        for a, b in itertools.product(interesting(dtype), repeat=2):
            truth = str(eval(f"{a} {sign} {b}")).lower()
            claims.append(f"do_{kind}({literal(a, dtype)}, {literal(b, dtype)}) == {truth}")
    prove(prelude, functions, claims)


@pytest.mark.parametrize("source", INTEGERS)
def test_casts_among_integers_wrap(source):
    dtype = BY_NAME[source]
    prelude, functions, claims = Prelude(), [], []
    prelude.use("u32", "u64")
    for name in INTEGERS:
        to = BY_NAME[name]
        body = expressions.cast(prelude, dtype, to, "a")
        c = c_type(to)
        functions.append(
            f"constexpr __device__ {c} to_{name}({c_type(dtype)} a) {{ return {body}; }}"
        )
        for a in interesting(dtype):
            want = literal(expected("add", to, a, 0), to)
            claims.append(f"to_{name}({literal(a, dtype)}) == {want}")
    prove(prelude, functions, claims)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_the_better_pair(kind):
    """NaN above all, then the value, then the lower index; zeros of both signs are equal."""
    prelude = Prelude()
    prelude.use(f"take_{kind}_f32")
    function = (
        "constexpr __device__ int better(float best, int at, float x, int index) {"
        f" take_{kind}_f32(best, at, x, index); return at; }}"
    )
    nan = "__builtin_bit_cast(float, 0x7fffffff)"
    numbers = {nan: None, "1.0f": 1.0, "2.0f": 2.0, "0.0f": 0.0, "(-0.0f)": -0.0}
    claims = []
    for (a, x), (b, y) in itertools.product(numbers.items(), repeat=2):
        for i, j in ((3, 5), (5, 3)):
            want = _winner(kind, (x, i), (y, j))
            claims.append(f"better({a}, {i}, {b}, {j}) == {want}")
    prove(prelude, [function], claims)


def _winner(kind, *pairs):
    def rank(pair):
        value, at = pair
        if value is None:
            return (0, 0.0, at)
        return (1, -value if kind == "max" else value, at)

    return min(pairs, key=rank)[1]
