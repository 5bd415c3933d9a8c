"""Roles, barriers, copies and products: the text, what the assembler says of it, and the counts."""

from __future__ import annotations

import re

import pytest

from tests.codegen.asynchronous import Asynchronous, product, ring_copy
from tests.codegen.conftest import statements
from warploom.base.dtypes import bf16, f16, f32
from warploom.base.target import SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import Fault, emit
from warploom.ir.op import Block
from warploom.ir.ops import control, mbarrier, registers, roles, sync, tma, wgmma
from warploom.runtime.nvrtc import Cubin, compile_cubin, disassemble


def compiled(kernel) -> Cubin:
    """The cubin of a kernel: no note, no spill, every declared instruction once."""
    built = compile_cubin(emit(kernel, SM_90A), SM_90A)
    assert not built.notes, built.log
    assert built.spill_bytes == 0
    assert counted(built.ptx) == declared(kernel)
    return built


# ---- roles and rings -----------------------------------------------------------------------------


def test_a_ring_between_two_roles(golden):
    golden("\n".join(statements(emit(ring_copy(), SM_90A))) + "\n")


def test_a_ring_compiles_to_copies_and_barriers():
    kernel = ring_copy()
    assert declared(kernel) == {
        "mbarrier": 8,
        "fence": 3,
        "bar": 2,
        "bar.warp": 4,
        "elect": 4,
        "shfl": 1,
        "setmaxnreg": 2,
        "cp.async.bulk": 1,
        "ld.shared": 4,
        "st.global": 4,
    }
    sass = disassemble(compiled(kernel).cubin)
    assert sass.count("UTMALDG.2D") == 1 and sass.count("USETMAXREG") == 2
    # One elected thread: no loop over threads around the copy.
    assert "BRA.U.ANY" not in sass


def test_registers_change_hands_under_launch_bounds_of_one_block():
    assert "__launch_bounds__(256, 1) ring_copy" in emit(ring_copy(), SM_90A).text


def split(m, *, first=(0, 4), warps=(4, 2), replicas=(1, 2), bodies=None):
    return roles.Split(
        names=("one", "two"),
        warps=warps,
        replicas=replicas,
        registers=(0, 0),
        first=first,
        barrier=(1, 2),
        bodies=bodies or (empty(), empty()),
    )


def empty() -> Block:
    return Block((), [control.Yield()])


def test_numbers_within_a_replica(body_of):
    m = Asynchronous()
    m.warps = 8
    body = Block()
    with m.region(body):
        m.build.emit(roles.Replica(), "mine")
        m.build.add(sync.Barrier(threads=64, id=2, per_replica=True, why="rows"))
        with m.one_thread():
            pass
        with m.one_thread("warp"):
            pass
    m.build.add(split(m, bodies=(empty(), body)))
    assert body_of(m.kernel()) == [
        "const int warp = warp_of_block();",
        "if (warp < 4) {  // role one: 4 warps",
        "}",
        "else if (warp >= 4) {  // role two: 2 replicas of 2 warps",
        "  int mine = (warp - 4) / 2;",
        "  bar_sync_at<64>(2 + (warp - 4) / 2);  // rows",
        "  bar_warp_sync();",
        "  if ((warp - 4) % 2 == 0 && elected()) {",
        "  }",
        "  bar_warp_sync();",
        "  if (elected()) {",
        "  }",
        "}",
    ]


@pytest.mark.parametrize("first", [(-1, 4), (0, 5)])
def test_a_role_without_a_place_is_a_fault(first):
    m = Asynchronous()
    m.warps = 8
    m.build.add(split(m, first=first))
    with pytest.raises(Fault, match="has no place among the 8 warps"):
        emit(m.kernel(), SM_90A)


def test_small_roles_change_their_registers_together(body_of):
    lines = body_of(ring_copy())
    here = lines.index("else if (warp >= 4) {  // roles load, idle")
    assert lines[here + 1 : here + 3] == [
        "  setmaxnreg_dec<40>();",
        "  if (warp == 4) {  // role load: 1 warp",
    ]
    assert lines[-3:] == ["  else if (warp >= 5) {  // role idle: 3 warps", "  }", "}"]


def test_small_roles_that_disagree_are_a_fault():
    kernel = ring_copy()
    made = next(op for op in kernel.body.ops if isinstance(op, roles.Split))
    made.bodies[2].ops[0].count = 48
    with pytest.raises(Fault, match="share a warpgroup"):
        emit(kernel, SM_90A)


# ---- barriers ------------------------------------------------------------------------------------


def test_barrier_operations(body_of):
    m = Asynchronous()
    held = m.buffer("held", bf16, 32)
    at = m.address(held, 8)
    one = m.build.const(1)
    m.build.add(mbarrier.Init(barrier=at, arrivals=3))
    m.build.add(sync.FenceBarrierInit())
    m.build.add(mbarrier.Arrive(barrier=at, count=2))
    m.build.add(mbarrier.Expect(barrier=at, bytes=128))
    m.build.emit(mbarrier.Test(barrier=at, parity=one), "ready")
    m.build.add(mbarrier.Wait(barrier=at, parity=one))
    m.build.add(sync.FenceAsync(why="stores, then a copy"))
    kernel = m.kernel()
    assert body_of(kernel)[3:] == [
        "int s = (int)held + 8u;",
        "mbarrier_init(s, 3);",
        "fence_barrier_init();",
        "mbarrier_arrive(s, 2);",
        "mbarrier_expect(s, 128);",
        "bool ready = mbarrier_test(s, 1);",
        "mbarrier_wait(s, 1);",
        "fence_async();  // stores, then a copy",
    ]
    compiled(kernel)


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_form_of_copy_compiles(rank):
    m = Asynchronous()
    x = m.tensor("x", bf16, "n" * (rank - 1) + "1")
    number = m.map(x, (64, *(1,) * (rank - 1)))
    at, barrier = m.buffer("at", bf16, 64, align=128), m.buffer("barrier", bf16, 4)
    where = {
        "tensor": x,
        "coordinates": tuple(m.build.const(n) for n in range(rank)),
        "address": m.address(at),
        "map": number,
        "bytes": 128,
    }
    mask = m.build.const(3)
    reduces = ("", *tma.REDUCES["bf16"])
    for cache in tma.CACHE:
        for blocks in (None, mask):
            m.build.add(
                tma.LoadBox(**where, barrier=m.address(barrier), multicast=blocks, cache=cache)
            )
        for reduce in reduces:
            m.build.add(tma.StoreBox(**where, reduce=reduce, cache=cache))
    m.build.add(tma.Commit())
    m.build.add(tma.Wait(pending=2, reads=True))
    m.build.add(tma.Wait())
    kernel = m.kernel()
    assert declared(kernel)["cp.async.bulk"] == len(tma.CACHE) * (2 + len(reduces))
    ptx = compiled(kernel).ptx
    for part in (
        ".multicast::cluster",
        ".L2::cache_hint",
        "cp.reduce.async.bulk",
        ".add.bulk_group",
    ):
        assert part in ptx


def test_maps_are_parameters_behind_all_others():
    m = Asynchronous()
    x, _ = m.tensor("x", bf16, "n1"), m.tensor("y", bf16, "1")
    m.map(x, (64, 8))
    m.map(x, (32, 8), 64)
    head = re.search(r"\bkernel\((.*)\) \{", emit(m.kernel(), SM_90A).text)
    assert head is not None
    assert head[1].split(", ")[-3:] == [
        "int y_n0",
        "const __grid_constant__ TensorMap x_map",
        "const __grid_constant__ TensorMap x_map_1",
    ]


def test_a_map_that_is_not_there_is_a_fault():
    m = Asynchronous()
    x = m.tensor("x", bf16, "n1")
    zero = m.build.const(0)
    m.build.add(tma.StoreBox(tensor=x, coordinates=(zero, zero), address=zero, map=0, bytes=128))
    kernel = m.kernel()
    with pytest.raises(Fault, match="has no tensor map 0"):
        emit(kernel, SM_90A)


# ---- products ------------------------------------------------------------------------------------


@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("dtype", [bf16, f16])
def test_a_product_of_one_tile(dtype, a_transposed, b_transposed):
    kernel = product(dtype, 64, a_transposed, b_transposed)
    assert declared(kernel)["wgmma.mma"] == 4 and declared(kernel)["wgmma.sync"] == 3
    built = compiled(kernel)
    form = f"m64n64k16.f32.{dtype.name}.{dtype.name}"
    tail = f", 1, 1, 1, {int(a_transposed)}, {int(b_transposed)};"
    found = [line for line in built.ptx.splitlines() if "mma_async" in line]
    assert len(found) == 4
    assert all(form in line and line.endswith(tail) for line in found)
    assert disassemble(built.cubin).count("HGMMA.64x64x16") == 4


@pytest.mark.parametrize("n", [8, 24, 128, 192, 200, 256])
def test_every_width_of_a_product(n):
    compiled(product(bf16, n))


def test_an_accumulator_is_one_array(body_of):
    text = "\n".join(body_of(product()))
    assert text.count("float acc[32];") == 1
    assert text.count("wgmma_m64n64k16_bf16(&acc[0], &acc[16], matrix<0x4000004000010000ull>(") == 4
    assert "wgmma_wait_f32x32<0>(acc);" in text


def test_a_wait_that_leaves_a_group_in_flight_binds_nothing_else():
    compiled(product(waits=(1, 0)))


@pytest.mark.parametrize(("swizzle", "mode"), [(0, 0), (128, 1), (64, 2), (32, 3)])
def test_matrix_descriptors(swizzle, mode):
    kernel = product()
    for op in kernel.body.ops:
        if isinstance(op, wgmma.Mma):
            op.a_swizzle, op.a_lead, op.a_stride = swizzle, 4096, 512
    constant = re.search(r"matrix<0x(\w+)ull>", emit(kernel, SM_90A).text)
    assert constant is not None
    bits = int(constant[1], 16)
    assert (bits & 0xFFFF, bits >> 16 & 0x3FFF, bits >> 32 & 0x3FFF, bits >> 62) == (
        0,
        4096 >> 4,
        512 >> 4,
        mode,
    )


def test_a_lead_that_is_no_multiple_of_16_bytes_is_a_fault():
    kernel = product()
    made = next(op for op in kernel.body.ops if isinstance(op, wgmma.Mma))
    made.b_lead = 24
    with pytest.raises(Fault, match="a matrix lead of 24 bytes"):
        emit(kernel, SM_90A)


def test_an_accumulator_read_after_it_is_overwritten_is_a_fault():
    kernel = product()
    first, second = [op for op in kernel.body.ops if isinstance(op, wgmma.Mma)][:2]
    second.acc = first.acc
    with pytest.raises(Fault, match="used after its storage is overwritten"):
        emit(kernel, SM_90A)


def test_an_accumulator_in_two_storages_is_a_fault():
    kernel = product()
    made = next(op for op in kernel.body.ops if isinstance(op, wgmma.Mma))
    made.result.storage = "other"
    with pytest.raises(Fault, match="stand in two storages"):
        emit(kernel, SM_90A)


def test_conversions_come_in_pairs(machine, body_of):
    """Single ones would be joined by the assembler, in front of the wait for a product."""
    m = machine
    x = m.load(m.tensor("a", f32), 4)
    m.store(m.tensor("out", bf16), m.build.emit(registers.Cast(value=x, dtype=bf16), "y"))
    lines = body_of(m.kernel())
    assert any(
        "to_bf16x2(y[2 * r], y[2 * r + 1], x[2 * r], x[2 * r + 1]);" in line for line in lines
    )
