"""Helpers of the prelude for descriptors that a kernel makes. Source: PTX ISA 8.3,
"tensormap.replace", "tensormap.cp_fenceproxy", "membar / fence". Knows no operation.
"""

from __future__ import annotations

from warploom.codegen.prelude import INLINE, Helper, Prelude

_SPACE = "shared::cta.b1024"


def acquire(prelude: Prelude) -> str:
    """Enter the fence in front of copies by a descriptor in global memory; returns its name."""
    text = "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
    code = f'  asm volatile("{text}" :: "l"(at) : "memory");'
    made = Helper(f"{INLINE} void acquire_descriptor(const long long* at) {{\n{code}\n}}")
    prelude.make("acquire_descriptor", lambda: made)
    return "acquire_descriptor"


def write(prelude: Prelude, rank: int) -> str:
    """Enter what one warp does to write a descriptor of `rank` axes; returns its name.

    The lanes fetch the blank one to shared memory, one lane puts in what is missing, and the warp
    copies it to its place, which releases it.
    """
    name = f"write_descriptor_{rank}d"
    prelude.make(name, lambda: _write(name, rank))
    return name


def _write(name: str, rank: int) -> Helper:
    extents = [f"int n{axis}" for axis in range(rank)]
    strides = [f"long long s{axis}" for axis in range(1, rank)]
    # The engine would drop the low bits of an address or a stride, and read elsewhere.
    units = " | ".join(["(u64)start", *(f"(u64)s{axis}" for axis in range(1, rank))])
    wrong = [f"({units}) % 16", *(f"n{axis} < 1" for axis in range(rank))]
    wrong += [f"s{axis} < 1" for axis in range(1, rank)]
    puts = [_put("global_address", "b64", "", '"l"(start)')]
    puts += [_put("global_dim", "b32", f"{a}, ", f'"r"(n{a})') for a in range(rank)]
    puts += [_put("global_stride", "b64", f"{a - 1}, ", f'"l"(s{a})') for a in range(1, rank)]
    parameters = ["long long* to", "u32 at", "const TensorMap& like", "const void* start"]
    lines = [
        f"{INLINE} void {name}({', '.join([*parameters, *extents, *strides])}) {{",
        "  u32 lane = threadIdx.x % 32;",
        "  u32 word = ((const u32*)&like)[lane];",
        '  asm volatile("st.shared.b32 [%0], %1;" :: "r"(at + 4 * lane), "r"(word) : "memory");',
        '  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");',
        "  if (lane == 0) {",
        f"    if ({' || '.join(wrong)}) __trap();",
        *puts,
        "  }",
        '  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");',
        '  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic"',
        '    ".release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(to), "r"(at) : "memory");',
        "}",
    ]
    return Helper("\n".join(lines), ("u32", "u64"))


def _put(field: str, type: str, ordinal: str, operand: str) -> str:
    text = f"tensormap.replace.tile.{field}.{_SPACE}.{type} [%0], {ordinal}%1;"
    return f'    asm volatile("{text}" :: "r"(at), {operand} : "memory");'
