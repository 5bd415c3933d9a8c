"""Kinds of arithmetic on tiles and on scalars, at the edges of every dtype."""

import math

import numpy as np

import warploom as wl
from tests.ops.trial import ALL, FLOATS, INTEGERS, NUMBERS, Case, Trial, binary, edges, pairs, wide

# Bounds of functions that are not correctly rounded, in units of the last place.
ULP = {
    "exp": 2, "exp2": 2, "log": 1, "log2": 1, "rsqrt": 2, "sin": 2, "cos": 2, "tanh": 2,
    "erf": 2, "rcp": 1,
}  # fmt: skip


@wl.function
def add(a, b):
    return a + b


@wl.function
def sub(a, b):
    return a - b


@wl.function
def mul(a, b):
    return a * b


@wl.function
def div(a, b):
    return a / b


@wl.function
def floordiv(a, b):
    return a // b


@wl.function
def mod(a, b):
    return a % b


@wl.function
def and_(a, b):
    return a & b


@wl.function
def or_(a, b):
    return a | b


@wl.function
def xor(a, b):
    return a ^ b


@wl.function
def shl(a, b):
    return a << b


@wl.function
def shr(a, b):
    return a >> b


@wl.function
def maximum(a, b):
    return wl.maximum(a, b)


@wl.function
def minimum(a, b):
    return wl.minimum(a, b)


BINARY = {
    "add": add, "sub": sub, "mul": mul, "div": div, "floordiv": floordiv, "mod": mod, "and": and_,
    "or": or_, "xor": xor, "shl": shl, "shr": shr, "max": maximum, "min": minimum,
}  # fmt: skip


@wl.kernel
def on_tiles(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, F: wl.const, SIZE: wl.const):
    i = wl.program_id(0) * SIZE
    wl.store(z[wl.ds(i, SIZE)], F(wl.load(x[wl.ds(i, SIZE)]), wl.load(y[wl.ds(i, SIZE)])))


@wl.kernel
def on_scalars(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, F: wl.const):
    i = wl.program_id(0)
    wl.store(z[wl.ds(i, 1)], F(wl.load(x[i]), wl.load(y[i])))


def _binary(op, kind, dtype):
    def make(device):
        a, b = pairs(dtype)
        out = device.empty(a.shape, a.dtype)
        given = (device.put(a), device.put(b), out)
        if op == "tile.binary":
            call = on_tiles.launch(3).call(*given, F=BINARY[kind], SIZE=-(-len(a) // 3))
        else:
            call = on_scalars.launch(len(a)).call(*given, F=BINARY[kind])
        return Trial(call, [(out, binary(kind, dtype, a, b))])

    return Case(op, dtype, make, kind)


_KINDS = {
    FLOATS: ("add", "sub", "mul", "div", "floordiv", "mod", "max", "min"),
    INTEGERS: (
        "add", "sub", "mul", "floordiv", "mod", "max", "min", "and", "or", "xor", "shl", "shr",
    ),
    ("bool",): ("and", "or", "xor"),
}  # fmt: skip

CASES = [
    _binary(op, kind, dtype)
    for op in ("tile.binary", "scalar.binary")
    for dtypes, kinds in _KINDS.items()
    for dtype in dtypes
    for kind in kinds
]


# ---- comparison --------------------------------------------------------------------------------


@wl.function
def eq(a, b):
    return a == b


@wl.function
def ne(a, b):
    return a != b


@wl.function
def lt(a, b):
    return a < b


@wl.function
def le(a, b):
    return a <= b


@wl.function
def gt(a, b):
    return a > b


@wl.function
def ge(a, b):
    return a >= b


COMPARE = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}
_NUMPY = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def _compare(op, kind, dtype):
    def make(device):
        a, b = pairs(dtype)
        out = device.empty(a.shape, np.bool_)
        given = (device.put(a), device.put(b), out)
        if op == "tile.compare":
            call = on_tiles.launch(3).call(*given, F=COMPARE[kind], SIZE=-(-len(a) // 3))
        else:
            call = on_scalars.launch(len(a)).call(*given, F=COMPARE[kind])
        return Trial(call, [(out, _NUMPY[kind](wide(a), wide(b)))])

    return Case(op, dtype, make, kind)


CASES += [
    _compare(op, kind, dtype)
    for op in ("tile.compare", "scalar.compare")
    for dtype in ALL
    for kind in (COMPARE if dtype != "bool" else ("eq", "ne"))
]


# ---- one operand -------------------------------------------------------------------------------


@wl.function
def neg(a):
    return -a


@wl.function
def invert(a):
    return ~a


@wl.function
def absolute(a):
    return wl.abs(a)


@wl.function
def floor(a):
    return wl.floor(a)


@wl.function
def ceil(a):
    return wl.ceil(a)


@wl.function
def to_even(a):
    return wl.round(a)


@wl.function
def sqrt(a):
    return wl.sqrt(a)


@wl.function
def exp(a):
    return wl.exp(a)


@wl.function
def exp2(a):
    return wl.exp2(a)


@wl.function
def log(a):
    return wl.log(a)


@wl.function
def log2(a):
    return wl.log2(a)


@wl.function
def rsqrt(a):
    return wl.rsqrt(a)


@wl.function
def sin(a):
    return wl.sin(a)


@wl.function
def cos(a):
    return wl.cos(a)


@wl.function
def tanh(a):
    return wl.tanh(a)


@wl.function
def erf(a):
    return wl.erf(a)


@wl.function
def rcp(a):
    return wl.rcp(a)


UNARY = {
    "neg": neg, "not": invert, "abs": absolute, "floor": floor, "ceil": ceil, "round": to_even,
    "sqrt": sqrt, "exp": exp, "exp2": exp2, "log": log, "log2": log2, "rsqrt": rsqrt, "sin": sin,
    "cos": cos, "tanh": tanh, "erf": erf, "rcp": rcp,
}  # fmt: skip


@wl.kernel
def one_tile(x: wl.Tensor, z: wl.Tensor, F: wl.const, SIZE: wl.const):
    i = wl.program_id(0) * SIZE
    wl.store(z[wl.ds(i, SIZE)], F(wl.load(x[wl.ds(i, SIZE)])))


@wl.kernel
def one_scalar(x: wl.Tensor, z: wl.Tensor, F: wl.const):
    i = wl.program_id(0)
    wl.store(z[wl.ds(i, 1)], F(wl.load(x[i])))


def _special(name, values):
    """A function by the mathematical library, float64 rounded once."""
    function = {
        "exp2": lambda v: 2.0**v,
        "rsqrt": lambda v: 1 / math.sqrt(v) if v else math.copysign(math.inf, v),
        "rcp": lambda v: 1 / v if v else math.copysign(math.inf, v),
        "log": lambda v: math.log(v) if v else -math.inf,
        "log2": lambda v: math.log2(v) if v else -math.inf,
    }.get(name) or getattr(math, name)

    def one(value):
        try:
            return function(value)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    with np.errstate(all="ignore"):
        return np.array([one(float(v)) for v in values]).astype(np.float32)


def _unary_expected(kind, values):
    if kind in ULP:
        return _special(kind, values)
    if values.dtype.kind in "bi":
        with np.errstate(all="ignore"):
            return {"neg": np.negative, "not": np.invert, "abs": np.abs}[kind](values)
    f = {
        "neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
        "sqrt": np.sqrt,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return f[kind](wide(values)).astype(values.dtype)


def _points(kind, dtype):
    values = edges(dtype)
    if kind in ULP:
        rng = np.random.default_rng(0)
        more = [
            rng.uniform(-10, 10, 400),
            np.geomspace(1e-38, 1e38, 200),
            -np.geomspace(1e-3, 1e3, 60),
        ]
        values = np.concatenate([values, *more]).astype(np.float32)
    if kind == "round":
        # Ties, the number below one, and where the halves of each float type end.
        more = np.array([0.5, 2.5, 3.5, 0.49999997, 255.5, 1023.5, 8388607.5, 2.0**52 - 0.5])
        with np.errstate(over="ignore"):
            values = np.concatenate([values, *(m.astype(values.dtype) for m in (more, -more))])
    return values


def _unary(op, kind, dtype):
    def make(device):
        values = _points(kind, dtype)
        out = device.empty(values.shape, values.dtype)
        if op == "tile.unary":
            call = one_tile.launch(5).call(
                device.put(values), out, F=UNARY[kind], SIZE=-(-len(values) // 5)
            )
        else:
            call = one_scalar.launch(len(values)).call(device.put(values), out, F=UNARY[kind])
        return Trial(call, [(out, _unary_expected(kind, values))], ULP.get(kind, 0))

    return Case(op, dtype, make, kind)


_EXACT = {
    **{dtype: ("neg", "abs", "floor", "ceil", "round", "sqrt") for dtype in FLOATS},
    **{dtype: ("neg", "abs", "not") for dtype in INTEGERS},
    "bool": ("not",),
}
CASES += [
    _unary(op, kind, dtype)
    for op in ("tile.unary", "scalar.unary")
    for dtype, kinds in _EXACT.items()
    for kind in kinds
]
CASES += [_unary(op, kind, "f32") for op in ("tile.unary", "scalar.unary") for kind in ULP]
assert set(NUMBERS) < set(_EXACT)
