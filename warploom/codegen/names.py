"""Names of C++ variables: those of the Python source, made unique and legal. Knows no operation."""

from __future__ import annotations

import re

# Words of C++ and of CUDA, and what the emitter itself declares or calls.
_WORDS = frozenset(
    """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
xor xor_eq size_t threadIdx blockIdx blockDim gridDim warpSize dim3 printf malloc free memcpy
memset clock main abs labs llabs fabs fabsf min max floor floorf ceil ceilf trunc rint round pow
powf fmin fmax fma fmaf fmod exp expf exp2 exp2f exp10 log logf log2 log2f log10 log1p sqrt
sqrtf rsqrt rsqrtf cbrt hypot sin sinf cos cosf tan tanf tanh tanhf sinh cosh asin acos atan
atan2 erf erff erfc erfinv isnan isinf isfinite signbit norm lgamma tgamma j0 j1 jn y0 y1 yn
assert bf16 f16 f8e4m3 f8e5m2 u32 u64 shared_memory smem UNROLL NOUNROLL STEP
TensorMap matrix r c float2 float4 double2
int2 int4 char4 uchar4 short4 uint2 uint4 long2 half NULL INFINITY NAN
""".split()  # noqa: SIM905  (a list of strings would take three pages)
)

# Loop variables over registers, outermost first.
REGISTER_LOOPS = ("r", "c", "r2", "r3", "r4", "r5", "r6", "r7")
# What helpers of the prelude are called.
_HELPER = re.compile(
    r"(ld|st)_(global|shared)_|shfl_(xor|idx)_|bar_(warp_)?(sync|arrive|all)(_at)?$"
    r"|mbarrier_|tma_|wgmma_|setmaxnreg_|fence_|bulk_|prefetch_|cp_async_|ptx_|warp_of_block$"
    r"|(to|max|min|neg|abs|take_max|take_min|floordiv|mod|shl|shr)"
    r"_(bf16|f8e4m3|f8e5m2|[fiu](8|16|32|64))(x2)?$|to_odd$|vote_(ballot|all)$"
)


class Names:
    """Gives out each identifier once."""

    def __init__(self) -> None:
        self._taken: set[str] = {*_WORDS, *REGISTER_LOOPS}
        self._next: dict[str, int] = {}

    def take(self, wish: str) -> str:
        """An identifier like `wish`: itself where it is legal and free, else with a number."""
        base = self._legal(wish)
        name = base
        count = self._next.get(base, 1)
        while name in self._taken:
            name = f"{base}_{count}"
            count += 1
        self._next[base] = count
        self._taken.add(name)
        return name

    @staticmethod
    def _legal(wish: str) -> str:
        # Python allows letters that C++ compilers take only in some encodings: spell their number.
        letters = [
            ch if ch.isascii() and (ch.isalnum() or ch == "_") else f"u{ord(ch):x}" for ch in wish
        ]
        base = "".join(letters) or "t"
        if base[0].isdigit() or _HELPER.match(base):
            base = f"v_{base}"
        # Two underscores belong to the compiler (and `__x` to the system).
        return re.sub(r"__+", "_", base).lstrip("_") or "t"
