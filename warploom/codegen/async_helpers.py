"""Helpers of the prelude for mbarriers, the tensor copy engine and the matrix unit: one inline asm
each, named like the operation. Source of the forms: PTX ISA 8.0, "Parallel synchronization", "Data
movement", "Asynchronous warpgroup-level matrix instructions".

Addresses are bytes of the block's shared memory (u32). Knows no operation.
"""

from __future__ import annotations

from warploom.base.dtypes import DType
from warploom.codegen.c_types import NARROW, memory_type
from warploom.codegen.prelude import CACHE_POLICY, INLINE, Helper, Prelude, predicated

_AXES = "xyzuv"


def use(prelude: Prelude, name: str) -> str:
    """Enter a helper that exists in one form only; returns its name."""
    prelude.make(name, lambda: _HELPERS[name])
    return name


def _statement(name: str, parameters: str, text: str, operands: str = "", head: str = "") -> Helper:
    """A helper that is one instruction without a result."""
    code = f'  asm volatile("{text};" :: {operands or ""}: "memory");'.replace(":: :", ":::")
    needs = ("u32",) if "u32" in parameters else ()
    return Helper(f"{head}{INLINE} void {name}({parameters}) {{\n{code}\n}}", needs)


def _wait(name: str, order: str) -> Helper:
    """A loop around a wait, `order` being what it acquires if not the default."""
    return Helper(
        f"{INLINE} void {name}(u32 at, int parity) {{\n"
        '  asm volatile("{ .reg .pred done; again: '
        f"mbarrier.try_wait.parity{order}.shared::cta.b64 done, [%0], %1; "
        '@!done bra again; }" :: "r"(at), "r"(parity) : "memory");\n}',
        ("u32",),
    )


def _test(name: str, order: str) -> Helper:
    """The answer of one poll."""
    return Helper(
        f"{INLINE} bool {name}(u32 at, int parity) {{\n"
        "  int done;\n"
        '  asm volatile("{ .reg .pred p; '
        f"mbarrier.test_wait.parity{order}.shared::cta.b64 p, [%1], %2; "
        'selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");\n'
        "  return done != 0;\n}",
        ("u32",),
    )


def _meet(name: str, order: str) -> Helper:
    """All warps of the cluster arrive and wait."""
    return Helper(
        f"{INLINE} void {name}() {{\n"
        f'  asm volatile("barrier.cluster.arrive.{order}.aligned;" ::: "memory");\n'
        '  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");\n}'
    )


def _clock(name: str, register: str) -> Helper:
    """A helper that reads a counter, in order with all other inline asm."""
    return Helper(
        f"{INLINE} long long {name}() {{\n"
        "  long long now;\n"
        f'  asm volatile("mov.u64 %0, %%{register};" : "=l"(now) :: "memory");\n'
        "  return now;\n}"
    )


_HELPERS: dict[str, Helper] = {
    "warp_of_block": Helper(
        # Lane 0's number for all lanes: the compiler then knows that a whole warp takes one branch.
        f"{INLINE} int warp_of_block() {{\n"
        "  int w = threadIdx.x / 32;\n"
        '  asm volatile("shfl.sync.idx.b32 %0, %0, 0, 0x1f, 0xffffffff;" : "+r"(w));\n'
        "  return w;\n}"
    ),
    "elected": Helper(
        # The same lane each time. Unlike a test of the lane's number it tells the compiler that one
        # thread goes on, so that it makes no loop over threads around a copy. (Before sm_90 there
        # is neither.)
        f"{INLINE} bool elected() {{\n"
        "#if __CUDA_ARCH__ >= 900\n"
        "  int yes;\n"
        '  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"\n'
        '    : "=r"(yes) :: "memory");\n'
        "  return yes != 0;\n"
        "#else\n"
        "  return threadIdx.x % 32 == 0;\n"
        "#endif\n}"
    ),
    "clock_cycles": _clock("clock_cycles", "clock64"),
    "clock_ns": _clock("clock_ns", "globaltimer"),
    "record_event": Helper(
        f"{INLINE} void record_event(long long* trace, int size, int rows, int row, int entries,"
        " int at, int event, int value) {\n"
        "  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
        "  long long pair = ((long long)block * rows + row) * entries + at;\n"
        "  if (at >= entries || 2 * pair >= size) return;\n"
        "  long long what = ((long long)event << 32) | (u32)value;\n"
        "  long long now = clock_cycles();\n"
        '  asm volatile("st.global.v2.b64 [%0], {%1, %2};"\n'
        '    :: "l"(trace + 2 * pair), "l"(now), "l"(what) : "memory");\n'
        "}",
        ("u32",),  # and clock_cycles
    ),
    "setmaxnreg_inc": _statement(
        "setmaxnreg_inc",
        "",
        "setmaxnreg.inc.sync.aligned.u32 %0",
        '"n"(COUNT) ',
        "template <int COUNT>\n",
    ),
    "setmaxnreg_dec": _statement(
        "setmaxnreg_dec",
        "",
        "setmaxnreg.dec.sync.aligned.u32 %0",
        '"n"(COUNT) ',
        "template <int COUNT>\n",
    ),
    "mbarrier_init": _statement(
        "mbarrier_init",
        "u32 at, int arrivals",
        "mbarrier.init.shared::cta.b64 [%0], %1",
        '"r"(at), "r"(arrivals) ',
    ),
    "mbarrier_arrive": _statement(
        "mbarrier_arrive",
        "u32 at, int count",
        "mbarrier.arrive.shared::cta.b64 _, [%0], %1",
        '"r"(at), "r"(count) ',
    ),
    "mbarrier_expect": _statement(
        "mbarrier_expect",
        "u32 at, int bytes",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1",
        '"r"(at), "r"(bytes) ',
    ),
    "mbarrier_wait": _wait("mbarrier_wait", ""),
    "mbarrier_wait_cluster": _wait("mbarrier_wait_cluster", ".acquire.cluster"),
    "mbarrier_test": _test("mbarrier_test", ""),
    "mbarrier_test_cluster": _test("mbarrier_test_cluster", ".acquire.cluster"),
    "cluster_rank": Helper(
        f"{INLINE} int cluster_rank() {{\n"
        '  int rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); return rank;\n}'
    ),
    "cluster_address": Helper(
        f"{INLINE} u32 cluster_address(u32 at, int rank) {{\n"
        '  u32 there; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), '
        '"r"(rank));\n  return there;\n}',
        ("u32",),
    ),
    # Without an order it is the form whose release is the block's: no fence of the whole GPU.
    "cluster_arrive": _statement(
        "cluster_arrive",
        "u32 there, int count",
        "mbarrier.arrive.shared::cluster.b64 _, [%0], %1",
        '"r"(there), "r"(count) ',
    ),
    "cluster_arrive_release": _statement(
        "cluster_arrive_release",
        "u32 there, int count",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1",
        '"r"(there), "r"(count) ',
    ),
    "bulk_copy_to_peer": _statement(
        "bulk_copy_to_peer",
        "u32 there, u32 at, int bytes, u32 barrier",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3]",
        '"r"(there), "r"(at), "r"(bytes), "r"(barrier) ',
    ),
    "cluster_sync": _meet("cluster_sync", "release"),
    "cluster_sync_relaxed": _meet("cluster_sync_relaxed", "relaxed"),
    "fence_async": _statement("fence_async", "", "fence.proxy.async.shared::cta"),
    "fence_async_global": _statement("fence_async_global", "", "fence.proxy.async.global"),
    "fence_async_all": _statement("fence_async_all", "", "fence.proxy.async"),
    "fence_block": _statement("fence_block", "", "fence.acq_rel.cta"),
    "fence_cluster": _statement("fence_cluster", "", "fence.acq_rel.cluster"),
    "fence_gpu": _statement("fence_gpu", "", "fence.acq_rel.gpu"),
    "fence_system": _statement("fence_system", "", "fence.acq_rel.sys"),
    "fence_barrier_init": _statement(
        "fence_barrier_init", "", "fence.mbarrier_init.release.cluster"
    ),
    "launch_dependents": _statement("launch_dependents", "", "griddepcontrol.launch_dependents"),
    "wait_for_previous": _statement("wait_for_previous", "", "griddepcontrol.wait"),
    "prefetch_map": _statement(
        "prefetch_map", "const TensorMap& map", "prefetch.tensormap [%0]", '"l"(&map) '
    ),
    "cp_async_commit": _statement("cp_async_commit", "", "cp.async.commit_group"),
    "cp_async_wait": _statement(
        "cp_async_wait", "", "cp.async.wait_group %0", '"n"(PENDING) ', "template <int PENDING>\n"
    ),
    "cp_async_arrive": _statement(
        "cp_async_arrive",
        "u32 at",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0]",
        '"r"(at) ',
    ),
    "tma_commit": _statement("tma_commit", "", "cp.async.bulk.commit_group"),
    "tma_wait": _statement(
        "tma_wait",
        "",
        "cp.async.bulk.wait_group %0",
        '"n"(PENDING) ',
        "template <int PENDING>\n",
    ),
    "tma_wait_read": _statement(
        "tma_wait_read",
        "",
        "cp.async.bulk.wait_group.read %0",
        '"n"(PENDING) ',
        "template <int PENDING>\n",
    ),
    "wgmma_fence": _statement("wgmma_fence", "", "wgmma.fence.sync.aligned"),
    "wgmma_commit": _statement("wgmma_commit", "", "wgmma.commit_group.sync.aligned"),
    "wgmma_wait": _statement(
        "wgmma_wait",
        "",
        "wgmma.wait_group.sync.aligned %0",
        '"n"(PENDING) ',
        "template <int PENDING>\n",
    ),
    "TensorMap": Helper("struct alignas(64) TensorMap { unsigned char bytes[128]; };"),
    "matrix": Helper(
        # Bits 0-13 of a matrix descriptor are bits 4-17 of the address. It has no more: what stands
        # above them in a cluster was taken off.
        f"template <u64 SHAPE>\n{INLINE} u64 matrix(u32 at) {{\n  return SHAPE | at >> 4;\n}}",
        ("u32", "u64"),
    ),
}


# ---- copies of boxes -----------------------------------------------------------------------------


def load_box(prelude: Prelude, rank: int, multicast: bool, cache: str) -> str:
    """Enter the copy of a box to shared memory and return its name."""
    name = "_".join([f"tma_load_{rank}d", *(["multicast"] if multicast else []), *_list(cache)])
    prelude.make(name, lambda: _load_box(name, rank, multicast, cache))
    return name


def store_box(prelude: Prelude, rank: int, reduce: str, cache: str) -> str:
    """Enter the copy of a box from shared memory, combined there by `reduce`; returns its name."""
    name = "_".join([f"tma_{reduce or 'store'}_{rank}d", *_list(cache)])
    prelude.make(name, lambda: _store_box(name, rank, reduce, cache))
    return name


def _list(word: str) -> list[str]:
    return [word] if word else []


def _coordinates(rank: int) -> tuple[str, list[str]]:
    """Parameters of a box's place, and their asm operands."""
    axes = _AXES[:rank]
    return ", ".join(f"int {a}" for a in axes), [f'"r"({a})' for a in axes]


def _load_box(name: str, rank: int, multicast: bool, cache: str) -> Helper:
    parameters, axes = _coordinates(rank)
    operands = ['"r"(at)', '"l"(&map)', *axes, '"r"(barrier)']
    box = ", ".join(f"%{2 + n}" for n in range(rank))
    form = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    text = f" [%0], [%1, {{{box}}}], [%{2 + rank}]"
    more = ""
    if multicast:
        form += ".multicast::cluster"
        text += f", %{len(operands)}"
        operands.append('"h"((unsigned short)blocks)')
        more = ", int blocks"
    form, text = _with_policy(form, text, operands, cache)
    signature = f"u32 at, const TensorMap& map, {parameters}, u32 barrier{more}"
    return _copy(name, signature, form + text, operands)


def _store_box(name: str, rank: int, reduce: str, cache: str) -> Helper:
    parameters, axes = _coordinates(rank)
    operands = ['"r"(at)', '"l"(&map)', *axes]
    box = ", ".join(f"%{2 + n}" for n in range(rank))
    verb = "cp.reduce" if reduce else "cp"
    form = f"{verb}.async.bulk.tensor.{rank}d.global.shared::cta"
    form += f".{reduce}.bulk_group" if reduce else ".bulk_group"
    text = f" [%1, {{{box}}}], [%0]"
    form, text = _with_policy(form, text, operands, cache)
    return _copy(name, f"const TensorMap& map, {parameters}, u32 at", form + text, operands)


def _copy(name: str, parameters: str, text: str, operands: list[str]) -> Helper:
    return Helper(
        f"{INLINE} void {name}({parameters}) {{\n"
        f'  asm volatile("{text};"\n    :: {", ".join(operands)} : "memory");\n}}',
        ("u32",),
    )


def prefetch_box(prelude: Prelude, rank: int, cache: str) -> str:
    """Enter the prefetch of a box and return its name."""
    name = "_".join([f"tma_prefetch_{rank}d", *_list(cache)])
    prelude.make(name, lambda: _prefetch_box(name, rank, cache))
    return name


def _prefetch_box(name: str, rank: int, cache: str) -> Helper:
    parameters, axes = _coordinates(rank)
    operands = ['"l"(&map)', *axes]
    box = ", ".join(f"%{1 + n}" for n in range(rank))
    form = f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global"
    text = f" [%0, {{{box}}}]"
    form, text = _with_policy(form, text, operands, cache)
    return _copy(name, f"const TensorMap& map, {parameters}", form + text, operands)


def _with_policy(form: str, text: str, operands: list[str], cache: str) -> tuple[str, str]:
    """An instruction and its operands under a policy of the second-level cache, if there is one."""
    if not cache:
        return form, text
    operands.append(f'"l"(0x{CACHE_POLICY[cache]:x}ull)')
    return f"{form}.L2::cache_hint", f"{text}, %{len(operands) - 1}"


# ---- copies by threads ---------------------------------------------------------------------------


def copy_group(prelude: Prelude, dtype: DType, vec: int, *, inside: bool, guard: bool) -> str:
    """Enter the copy of one vector group to shared memory; zero where it is not `inside`."""
    size = dtype.bytes * vec
    name = f"cp_async_{size}" + ("_inside" if inside else "") + ("_if" if guard else "")
    cache = "cg" if size == 16 else "ca"
    body = f"cp.async.{cache}.shared.global [%0], [%1], {size}{', %2' if inside else ''};"
    operands = ['"r"(buffer + (u32)place * SIZE)', '"l"(from)']
    parameters = f"u32 buffer, int place, const {memory_type(dtype)}* from"
    if inside:
        operands.append(f'"r"(inside ? {size} : 0)')
        parameters += ", bool inside"
    if guard:
        body = predicated(body, len(operands))
        operands.append('"r"((int)acts)')
        parameters += ", bool acts"
    text = (
        f"{INLINE} void {name}({parameters}) {{\n"
        f'  asm volatile("{body}" :: {", ".join(operands)} : "memory");\n}}'
    ).replace("SIZE", str(dtype.bytes))
    needs = ("u32", dtype.name) if dtype.name in NARROW else ("u32",)
    prelude.make(f"{name} {dtype}", lambda: Helper(text, needs))
    return name


# ---- copies of bytes in one piece ----------------------------------------------------------------

# The type of a reduction as its instruction names it, by dtype: of sums, of extremes, of bits.
_REDUCED = {
    "i32": ("s32", "s32", "b32"),
    "u32": ("u32", "u32", "b32"),
    "i64": ("u64", "s64", "b64"),
    "u64": ("u64", "u64", "b64"),
    "f16": ("noftz.f16", "f16", ""),
    "bf16": ("noftz.bf16", "bf16", ""),
    "f32": ("f32", "", ""),
    "f64": ("f64", "", ""),
}


def load_bytes(prelude: Prelude, dtype: DType, cache: str) -> str:
    """Enter the bulk copy to shared memory and return its name."""
    name = "_".join(["bulk_load", *_list(cache)])
    form = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    operands = ['"r"(at)', '"l"(from)', '"r"(bytes)', '"r"(barrier)']
    text = " [%0], [%1], %2, [%3]"
    form, text = _with_policy(form, text, operands, cache)
    parameters = f"u32 at, const {memory_type(dtype)}* from, int bytes, u32 barrier"
    prelude.make(f"{name} {dtype}", lambda: _copy(name, parameters, form + text, operands))
    return name


def store_bytes(prelude: Prelude, dtype: DType, reduce: str, cache: str) -> str:
    """Enter the bulk copy from shared memory, combined there by `reduce`; returns its name."""
    kind = f"bulk_{reduce}_{dtype}" if reduce else "bulk_store"
    name = "_".join([kind, *_list(cache)])
    verb = "cp.reduce" if reduce else "cp"
    form = f"{verb}.async.bulk.global.shared::cta.bulk_group"
    operands = ['"r"(at)', '"l"(to)', '"r"(bytes)']
    text = " [%1], [%0], %2"
    form, text = _with_policy(form, text, operands, cache)
    if reduce:
        group = 0 if reduce == "add" else 1 if reduce in ("min", "max") else 2
        form += f".{reduce}.{_REDUCED[dtype.name][group]}"
    parameters = f"{memory_type(dtype)}* to, u32 at, int bytes"
    prelude.make(f"{name} {dtype}", lambda: _copy(name, parameters, form + text, operands))
    return name


def prefetch_bytes(prelude: Prelude, dtype: DType) -> str:
    """Enter the prefetch of bytes and return its name."""
    text = "cp.async.bulk.prefetch.L2.global [%0], %1"
    parameters = f"const {memory_type(dtype)}* from, int bytes"
    operands = ['"l"(from)', '"r"(bytes)']
    prelude.make(
        f"bulk_prefetch {dtype}", lambda: _copy("bulk_prefetch", parameters, text, operands)
    )
    return "bulk_prefetch"
