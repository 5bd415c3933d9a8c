"""The head of every emitted text: types, macros and inline helpers, only those that are used.

A helper is entered under a key when a rule first asks for it; what it needs is entered before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.base.dtypes import DType
from warploom.codegen.c_types import F8, HALF, NARROW

INLINE = "__device__ __forceinline__"
# Policies of the second-level cache, as `createpolicy.fractional` makes them for the fraction 1.
CACHE_POLICY = {
    "evict_normal": 0x1000000000000000,
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
}


def predicated(body: str, operand: int) -> str:
    """The asm of an instruction that acts only where the operand of this number is not 0."""
    return f"{{ .reg .pred p; setp.ne.b32 p, %{operand}, 0; @p {body} }}"


# What stands before all functions.
_TYPES = ("UNROLL", "NOUNROLL", "u32", "u64", *NARROW, "TensorMap")


@dataclass(frozen=True, slots=True)
class Helper:
    """Text of one helper, and the keys of the fixed helpers that it calls."""

    text: str
    needs: tuple[str, ...] = ()


class Prelude:
    """Helpers of one emitted text, in order of first use."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def use(self, *keys: str) -> None:
        """Enter fixed helpers by key."""
        for key in keys:
            self.make(key, lambda key=key: FIXED[key])

    def make(self, key: str, make: Callable[[], Helper]) -> None:
        """Enter a helper that is generated; `make` is called at the first use of the key."""
        if key in self._texts:
            return
        helper = make()
        self.use(*helper.needs)
        self._texts[key] = helper.text.strip("\n")

    def type(self, dtype: DType) -> None:
        """Enter what the C++ type of a register needs."""
        if dtype.name in NARROW or dtype.name in ("u32", "u64"):
            self.use(dtype.name)

    def text(self) -> str:
        """All entered helpers: types first."""
        first = [k for k in _TYPES if k in self._texts]
        rest = [k for k in self._texts if k not in first]
        return "\n".join(self._texts[k] for k in (*first, *rest))


def _half_float(name: str) -> dict[str, Helper]:
    """Conversions, sign operations of a 16-bit float."""
    wide = (
        '  float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;'
        if name == "f16"
        else "  return __uint_as_float((unsigned)x.bits << 16);"
    )
    return {
        name: Helper(f"struct {name} {{ unsigned short bits; }};"),
        f"to_f32_{name}": Helper(f"{INLINE} float to_f32({name} x) {{\n{wide}\n}}", (name,)),
        f"to_{name}": Helper(
            f"{INLINE} {name} to_{name}(float x) {{\n"
            f'  {name} y; asm("cvt.rn.{name}.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y;\n}}',
            (name,),
        ),
        f"to_{name}x2": Helper(
            f"{INLINE} void to_{name}x2({name}& low, {name}& high, float a, float b) {{\n"
            f'  u32 w; asm("cvt.rn.{name}x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));\n'
            "  low.bits = w; high.bits = w >> 16;\n}",
            (name, "u32"),
        ),
        f"neg_{name}": Helper(
            f"{INLINE} {name} neg_{name}({name} x) {{\n  x.bits ^= 0x8000; return x;\n}}",
            (name,),
        ),
        f"abs_{name}": Helper(
            f"{INLINE} {name} abs_{name}({name} x) {{\n  x.bits &= 0x7fff; return x;\n}}",
            (name,),
        ),
    }


def _eight_bits(name: str) -> dict[str, Helper]:
    """Conversions of an 8-bit float: exact to f32, rounded once and saturating from f32 and f64."""
    kind = name.removeprefix("f8")
    return {
        name: Helper(f"struct {name} {{ unsigned char bits; }};"),
        f"to_f32_{name}": Helper(
            f"{INLINE} float to_f32({name} x) {{\n"
            f'  u32 w; asm("cvt.rn.f16x2.{kind}x2 %0, %1;" : "=r"(w) '
            ': "h"((unsigned short)x.bits));\n'
            '  float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)w));\n'
            "  return y;\n}",
            (name, "u32"),
        ),
        f"to_{name}": Helper(
            f"{INLINE} {name} to_{name}(float x) {{\n"
            f'  unsigned short w; asm("cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;" '
            ': "=h"(w) : "f"(0.0f), "f"(x));\n'
            f"  return {name}{{(unsigned char)w}};\n}}",
            (name,),
        ),
        f"to_{name}x2": Helper(
            f"{INLINE} void to_{name}x2({name}& low, {name}& high, float a, float b) {{\n"
            f'  unsigned short w; asm("cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;" '
            ': "=h"(w) : "f"(b), "f"(a));\n'
            "  low.bits = w; high.bits = w >> 8;\n}",
            (name,),
        ),
    }


# What is rounded to fewer bits from here is rounded once: an inexact number has its last bit set.
_TO_ODD = Helper(
    f"{INLINE} float to_odd(double x) {{\n  float y = __double2float_rz(x);\n"
    "  return (double)y == x ? y : __int_as_float(__float_as_int(y) | 1);\n}"
)


def _extremes() -> dict[str, Helper]:
    """max and min of floats: NaN propagates, +0 is above −0."""
    out = {}
    for kind in ("max", "min"):
        # PTX orders +0 above -0 in both; .NaN exists for 16 and 32 bits only.
        out[f"{kind}_f32"] = Helper(
            f"{INLINE} float {kind}_f32(float a, float b) {{\n"
            f'  float y; asm("{kind}.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));\n'
            "  return y;\n}"
        )
        out[f"{kind}_f64"] = Helper(
            f"{INLINE} double {kind}_f64(double a, double b) {{\n"
            f'  double y; asm("{kind}.f64 %0, %1, %2;" : "=d"(y) : "d"(a), "d"(b));\n'
            "  return a != a || b != b ? a + b : y;\n}"
        )
        sign = ">" if kind == "max" else "<"
        for name, c in (("f32", "float"), ("f64", "double")):
            out[f"take_{kind}_{name}"] = Helper(_take(kind, name, c, sign, "x", "best"))
        for name in HALF:
            out[f"take_{kind}_{name}"] = Helper(
                _take(kind, name, name, sign, "to_f32(x)", "to_f32(best)"), (f"to_f32_{name}",)
            )
        for name, c in _INTEGERS.items():
            needs = (name,) if name in ("u32", "u64") else ()
            out[f"take_{kind}_{name}"] = Helper(_take_integer(kind, name, c, sign), needs)
    return out


def _take(kind: str, name: str, c: str, sign: str, x: str, best: str) -> str:
    """The better of two (value, index) pairs: NaN above all, then by value, then lower index."""
    number = "double" if c == "double" else "float"
    return (
        f"{INLINE} void take_{kind}_{name}({c}& best, int& at, {c} x, int index) {{\n"
        f"  {number} a = {x}, b = {best};\n"
        f"  bool lower = index < at, a_nan = a != a, b_nan = b != b;\n"
        f"  bool better = b_nan ? a_nan && lower : a_nan || a {sign} b || (a == b && lower);\n"
        "  best = better ? x : best; at = better ? index : at;\n}"
    )


def _take_integer(kind: str, name: str, c: str, sign: str) -> str:
    return (
        f"{INLINE} void take_{kind}_{name}({c}& best, int& at, {c} x, int index) {{\n"
        f"  bool better = x {sign} best || (x == best && index < at);\n"
        "  best = better ? x : best; at = better ? index : at;\n}"
    )


_INTEGERS = {
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u16": "unsigned short",
    "u32": "u32",
    "u64": "u64",
}


def _division() -> dict[str, Helper]:
    """// and % as in Python; by zero: 0 and the left operand, of floats the quotient and NaN."""
    out = {}
    for name, c, s in (("f32", "float", "f"), ("f64", "double", "")):
        out[f"mod_{name}"] = Helper(
            f"{INLINE} {c} mod_{name}({c} a, {c} b) {{\n"
            f"  {c} rest = fmod{s}(a, b);\n"
            f"  if (rest == 0) return copysign{s}(0.0{s}, b);\n"
            "  return (rest < 0) != (b < 0) ? rest + b : rest;\n}"
        )
        # a - rest is very nearly a multiple of b: the last line mends what its rounding did.
        out[f"floordiv_{name}"] = Helper(
            f"{INLINE} {c} floordiv_{name}({c} a, {c} b) {{\n"
            "  if (b == 0) return a / b;\n"
            f"  {c} rest = fmod{s}(a, b);\n"
            f"  {c} quotient = (a - rest) / b - (rest != 0 && (rest < 0) != (b < 0));\n"
            f"  if (quotient == 0) return copysign{s}(0.0{s}, a / b);\n"
            f"  {c} whole = floor{s}(quotient);\n"
            f"  return quotient - whole > 0.5{s} ? whole + 1 : whole;\n}}"
        )
    for name, c, u in (("i32", "int", "u32"), ("i64", "long long", "u64")):
        zero = "0u" if u == "u32" else "0ull"
        # The quotient of the smallest integer by -1 has no value in C++; here it wraps around.
        out[f"floordiv_{name}"] = Helper(
            f"{INLINE} {c} floordiv_{name}({c} a, {c} b) {{\n"
            f"  if (b == 0) return 0;\n  if (b == -1) return {zero} - a;\n"
            "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n}",
            (u,),
        )
        out[f"mod_{name}"] = Helper(
            f"{INLINE} {c} mod_{name}({c} a, {c} b) {{\n"
            f"  if (b == 0) return a;\n  if (b == -1) return 0;\n"
            f"  {c} rest = a % b;\n"
            "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n}"
        )
        out[f"floordiv_{u}"] = Helper(
            f"{INLINE} {u} floordiv_{u}({u} a, {u} b) {{\n  return b == 0 ? 0 : a / b;\n}}", (u,)
        )
        out[f"mod_{u}"] = Helper(
            f"{INLINE} {u} mod_{u}({u} a, {u} b) {{\n  return b == 0 ? a : a % b;\n}}", (u,)
        )
    return out


def _shifts() -> dict[str, Helper]:
    """Shifts by any amount: what is shifted out is gone, the sign of a signed integer fills up.

    A negative amount counts as a large one, as in NumPy.
    """
    out = {}
    for name, c in _INTEGERS.items():
        bits = int(name[1:])
        wide = "u64" if bits == 64 else "u32"
        # The amount in its own width: a negative one becomes large.
        amount = f"(unsigned {c.removeprefix('signed ').removeprefix('unsigned ')})b"
        if name in ("u32", "u64"):
            amount = "b"
        needs = (wide,)
        out[f"shl_{name}"] = Helper(
            f"{INLINE} {c} shl_{name}({c} a, {c} b) {{\n"
            f"  return {amount} < {bits} ? ({wide})a << b : 0;\n}}",
            needs,
        )
        fill = "(a < 0 ? -1 : 0)" if name.startswith("i") else "0"
        out[f"shr_{name}"] = Helper(
            f"{INLINE} {c} shr_{name}({c} a, {c} b) {{\n"
            f"  return {amount} < {bits} ? a >> b : {fill};\n}}",
            needs,
        )
    return out


def _to_integer() -> dict[str, Helper]:
    """Float to integer: truncates, saturates, NaN gives 0."""
    out = {}
    names = {"i32": "int", "u32": "uint", "i64": "ll", "u64": "ull"}
    for source, c in (("f32", "float"), ("f64", "double")):
        for name, word in names.items():
            call = f"__{'float' if source == 'f32' else 'double'}2{word}_rz(x)"
            # The instruction itself gives 0 for NaN only from f32 to 32 bits.
            safe = source == "f32" and name in ("i32", "u32")
            body = call if safe else f"x != x ? 0 : {call}"
            needs = (name,) if name in ("u32", "u64") else ()
            out[f"to_{name}_{source}"] = Helper(
                f"{INLINE} {_INTEGERS[name]} to_{name}({c} x) {{\n  return {body};\n}}", needs
            )
        for name in ("i8", "i16", "u8", "u16"):
            bits = int(name[1:])
            low, high = (
                (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            )
            out[f"to_{name}_{source}"] = Helper(
                f"{INLINE} {_INTEGERS[name]} to_{name}({c} x) {{\n"
                f"  int y = to_i32(x);\n"
                f"  return y < {low} ? {low} : y > {high} ? {high} : y;\n}}",
                (f"to_i32_{source}",),
            )
    return out


FIXED: dict[str, Helper] = {
    "UNROLL": Helper('#define UNROLL _Pragma("unroll")'),
    "NOUNROLL": Helper('#define NOUNROLL _Pragma("unroll 1")'),
    "u32": Helper("typedef unsigned int u32;"),
    "u64": Helper("typedef unsigned long long u64;"),
    **_half_float("f16"),
    **_half_float("bf16"),
    **{key: helper for name in F8 for key, helper in _eight_bits(name).items()},
    "to_odd": _TO_ODD,
    **_extremes(),
    **_division(),
    **_shifts(),
    **_to_integer(),
    "bar_sync": Helper(
        "template <int ID, int THREADS>\n"
        f"{INLINE} void bar_sync() {{\n"
        '  asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory");\n}'
    ),
    "bar_sync_at": Helper(
        "template <int THREADS>\n"
        f"{INLINE} void bar_sync_at(int id) {{\n"
        '  asm volatile("bar.sync %0, %1;" :: "r"(id), "n"(THREADS) : "memory");\n}'
    ),
    "bar_arrive": Helper(
        "template <int ID, int THREADS>\n"
        f"{INLINE} void bar_arrive() {{\n"
        '  asm volatile("bar.arrive %0, %1;" :: "n"(ID), "n"(THREADS) : "memory");\n}'
    ),
    "bar_all": Helper(
        f"{INLINE} bool bar_all(int id, int threads, bool yes) {{\n"
        "  int all;\n"
        '  asm volatile("{ .reg .pred p, q; setp.ne.b32 p, %3, 0; '
        'barrier.cta.red.and.pred q, %1, %2, p; selp.b32 %0, 1, 0, q; }"\n'
        '    : "=r"(all) : "r"(id), "r"(threads), "r"((int)yes) : "memory");\n'
        "  return all != 0;\n}"
    ),
    "vote_all": Helper(
        f"{INLINE} bool vote_all(bool yes) {{\n"
        "  int all;\n"
        '  asm volatile("{ .reg .pred p, q; setp.ne.b32 p, %1, 0; '
        'vote.sync.all.pred q, p, 0xffffffff; selp.b32 %0, 1, 0, q; }"\n'
        '    : "=r"(all) : "r"((int)yes) : "memory");\n'
        "  return all != 0;\n}"
    ),
    "vote_ballot": Helper(
        f"{INLINE} int vote_ballot(bool yes) {{\n"
        "  int mask;\n"
        '  asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; '
        'vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(mask) : "r"((int)yes));\n'
        "  return mask;\n}"
    ),
    "bar_warp_sync": Helper(
        f"{INLINE} void bar_warp_sync() {{\n"
        '  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");\n}'
    ),
}
