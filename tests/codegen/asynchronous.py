"""Kernels of the machine stage made by hand: roles with a ring filled by the copy engine, and one
tile of the matrix unit with operands in either order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.codegen.conftest import Machine
from warploom.base.dtypes import DType, bf16, f32, i32, i64
from warploom.ir.kernel import Kernel, TensorMap
from warploom.ir.op import Block, Value
from warploom.ir.ops import (
    control,
    global_memory,
    index,
    mbarrier,
    registers,
    roles,
    scalar,
    shared_memory,
    sync,
    tma,
    wgmma,
)
from warploom.ir.types import Scalar

TILE = 8192  # bytes of 64 x 64 elements


class Asynchronous(Machine):
    """A machine kernel with barriers, maps and regions."""

    def __init__(self) -> None:
        super().__init__()
        self.maps: list[TensorMap] = []

    def buffer(self, name: str, dtype: DType, elements: int, align: int = 16) -> Value:
        """A buffer behind those made before."""
        at = -(-self.shared_bytes // align) * align
        self.shared_bytes = at + elements * dtype.bytes
        made = shared_memory.BufferOp(dtype=dtype, elements=elements, at=at, align=align)
        return self.build.emit(made, name)

    def map(self, tensor: Value, box: tuple[int, ...], swizzle: int = 0) -> int:
        """Number of a new map of a row-major tensor."""
        axes = tuple(reversed(range(len(box))))
        self.maps.append(TensorMap(self.params.index(tensor), axes, box, swizzle))
        return len(self.maps) - 1

    def address(self, buffer: Value, shift: Value | int = 0) -> Value:
        """Byte address of a buffer, plus some bytes."""
        start = self.build.emit(shared_memory.Address(buffer=buffer))
        if isinstance(shift, int):
            if not shift:
                return start
            shift = self.build.const(shift)
        return self.scalar("add", start, shift)

    def scalar(self, kind: str, lhs: Value, rhs: Value | int) -> Value:
        right = self.build.const(rhs) if isinstance(rhs, int) else rhs
        return self.build.emit(scalar.Binary(lhs=lhs, rhs=right, kind=kind))

    @contextmanager
    def one_thread(self, per: str = "role") -> Iterator[None]:
        body = Block()
        self.build.add(control.OneThread(per=per, body=body))
        with self.region(body):
            yield

    @contextmanager
    def region(self, body: Block) -> Iterator[None]:
        with self.build.inside(body):
            yield
            self.build.add(control.Yield())

    @contextmanager
    def loop(self, count: Value, name: str = "k") -> Iterator[Value]:
        """for k in 0 … count-1, nothing carried."""
        number = Value(Scalar(i32), name)
        body = Block((number,))
        lo, step = self.build.const(0), self.build.const(1)
        self.build.add(control.For(lo=lo, hi=count, step=step, body=body))
        with self.region(body):
            yield number

    def barriers(self, name: str, count: int, arrivals: int) -> Value:
        made = self.buffer(name, i64, count)
        with self.one_thread():
            for number in range(count):
                self.build.add(
                    mbarrier.Init(barrier=self.address(made, 8 * number), arrivals=arrivals)
                )
            self.build.add(sync.FenceBarrierInit())
        self.build.add(sync.Barrier(threads=32 * self.warps))
        return made

    def kernel(self, name: str = "kernel") -> Kernel:
        made = super().kernel(name)
        made.maps = tuple(self.maps)
        return made


def ring_copy() -> Kernel:
    """y = x in tiles of 64 x 64: role `load` fills two slots, role `store` empties them."""
    m = Asynchronous()
    m.warps = 8
    x, y = m.tensor("x", bf16, "n1"), m.tensor("y", bf16, "n1")
    count = m.parameter("count", Scalar(i32))
    slots = m.buffer("slots", bf16, 2 * 4096, align=1024)
    number = m.map(x, (64, 64))
    full, empty = m.barriers("full", 2, 1), m.barriers("empty", 2, 4)
    load, store, idle = Block(), Block(), Block()
    with m.region(load):
        m.build.add(roles.SetRegisters(count=40, grow=False))
        with m.loop(count) as k:
            slot, phase = _position(m, k)
            at = m.scalar("mul", slot, 8)
            before = m.scalar("xor", phase, 1)
            m.build.add(mbarrier.Wait(barrier=m.address(empty, at), parity=before))
            with m.one_thread():
                barrier = m.address(full, at)
                m.build.add(mbarrier.Expect(barrier=barrier, bytes=TILE))
                row = m.scalar("mul", k, 64)
                m.build.add(
                    tma.LoadBox(
                        tensor=x,
                        coordinates=(m.build.const(0), row),
                        address=m.address(slots, m.scalar("mul", slot, TILE)),
                        barrier=barrier,
                        map=number,
                        bytes=TILE,
                        cache="evict_first",
                    )
                )
    with m.region(store):
        m.build.add(roles.SetRegisters(count=232, grow=True))
        with m.loop(count) as k:
            slot, phase = _position(m, k)
            at = m.scalar("mul", slot, 8)
            m.build.add(mbarrier.Wait(barrier=m.address(full, at), parity=phase))
            _copy_slot(m, y, slots, slot, k)
            m.build.add(sync.FenceAsync(why="read of slots, then write by the copy engine"))
            with m.one_thread("warp"):
                m.build.add(mbarrier.Arrive(barrier=m.address(empty, at)))
    with m.region(idle):
        m.build.add(roles.SetRegisters(count=40, grow=False))
    m.build.add(
        roles.Split(
            names=("load", "store", "idle"),
            warps=(1, 4, 3),
            replicas=(1, 1, 1),
            registers=(40, 232, 40),
            first=(4, 0, 5),
            barrier=(0, 1, 2),
            bodies=(load, store, idle),
        )
    )
    m.written.append(1)
    return m.kernel("ring_copy")


def _position(m: Asynchronous, k: Value) -> tuple[Value, Value]:
    """Slot and parity of item k of a ring of two."""
    return m.scalar("and", k, 1), m.scalar("and", m.scalar("shr", k, 1), 1)


def _copy_slot(m: Asynchronous, y: Value, slots: Value, slot: Value, k: Value) -> None:
    """Rows of 64 elements, 32 of them a thread, from shared to global memory."""
    thread = m.binary("add", m.binary("mul", _warp(m), m.splat(32, i32)), _lane(m))
    first = m.binary("mul", thread, m.splat(32, i32))
    offset = m.binary("add", first, m.constants((0, 8, 16, 24)))
    start = m.build.emit(registers.Splat(value=m.scalar("mul", slot, 4096), rank=1))
    source = m.binary("add", offset, start)
    tile = m.build.emit(shared_memory.Load(buffer=slots, offset=source, vec=8), "tile")
    base = m.scalar("mul", k, 4096)
    m.build.add(global_memory.Store(tensor=y, value=tile, base=base, offset=offset, vec=8))


def _lane(m: Machine) -> Value:
    return m.build.emit(index.Lane(rank=1))


def _warp(m: Machine) -> Value:
    return m.build.emit(index.Warp(rank=1))


def product(
    dtype: DType = bf16,
    n: int = 64,
    a_transposed: bool = False,
    b_transposed: bool = False,
    waits: tuple[int, ...] = (0,),
) -> Kernel:
    """c = a · b for 64 x 64 by 64 x n in f32, operands by the copy engine under a swizzle of 128.

    a is stored (M, K), or (K, M) where transposed; b as (N, K), or (K, N) where transposed: then in
    panels of 64 columns. `waits` are the groups in flight that each wait allows.
    """
    m = Asynchronous()
    a, b, c = (
        m.tensor(name, kind, "n1") for name, kind in zip("abc", (dtype, dtype, f32), strict=True)
    )
    a_slot = m.buffer("a_slot", dtype, 4096, align=1024)
    b_slot = m.buffer("b_slot", dtype, 64 * max(n, 64), align=1024)
    rows = 64 if b_transposed else n
    a_map, b_map = m.map(a, (64, 64), 128), m.map(b, (64, rows), 128)
    done = m.barriers("done", 1, 1)
    panels = max(n // 64, 1) if b_transposed else 1
    with m.one_thread():
        barrier = m.address(done)
        size = 64 * rows * 2
        m.build.add(mbarrier.Expect(barrier=barrier, bytes=TILE + panels * size))
        _load(m, a, a_map, m.address(a_slot), barrier, TILE, 0)
        for panel in range(panels):
            _load(m, b, b_map, m.address(b_slot, panel * size), barrier, size, 64 * panel)
    m.build.add(mbarrier.Wait(barrier=m.address(done), parity=m.build.const(0)))
    acc = _zeros(m, n)
    m.build.add(wgmma.Fence())
    for step in range(4):
        made = wgmma.Mma(
            acc=acc,
            a=m.address(a_slot, step * (2048 if a_transposed else 32)),
            b=m.address(b_slot, step * (2048 if b_transposed else 32)),
            block=0,
            n=n,
            a_dtype=dtype,
            b_dtype=dtype,
            a_swizzle=128,
            a_lead=TILE if a_transposed else 16,
            a_stride=1024,
            a_transposed=a_transposed,
            b_swizzle=128,
            b_lead=TILE if b_transposed else 16,
            b_stride=1024,
            b_transposed=b_transposed,
        )
        acc = _in_place(m, made)
    m.build.add(wgmma.Commit())
    for pending in waits:
        acc = _in_place(m, wgmma.WaitGroup(acc=acc, pending=pending))
    _store_accumulator(m, c, acc, n)
    return m.kernel("product")


def _load(
    m: Asynchronous,
    tensor: Value,
    number: int,
    address: Value,
    barrier: Value,
    size: int,
    column: int,
) -> None:
    m.build.add(
        tma.LoadBox(
            tensor=tensor,
            coordinates=(m.build.const(column), m.build.const(0)),
            address=address,
            barrier=barrier,
            map=number,
            bytes=size,
        )
    )


def _zeros(m: Machine, n: int) -> Value:
    """An accumulator in a storage of its own."""
    zeros = m.splat(0.0, f32, (2, n // 4))
    held = m.build.add(control.Declare(type=zeros.type), "acc").result
    held.storage = "acc"
    m.build.add(control.Assign(source=zeros, target=held))
    return held


def _in_place(m: Machine, op: wgmma.Mma | wgmma.WaitGroup) -> Value:
    result = m.build.emit(op, "acc")
    result.storage = op.acc.storage
    return result


def _store_accumulator(m: Machine, c: Value, acc: Value, n: int) -> None:
    """Element (row, column) of the accumulator to c[row, column]."""

    def number(kind: str, *operands: Value) -> Value:
        return m.build.emit(registers.Binary(lhs=operands[0], rhs=operands[1], kind=kind))

    lane = m.build.emit(index.Lane(rank=2))
    row = number(
        "add",
        m.build.emit(index.Digit(value=lane, divisor=4, extent=0)),
        number("mul", m.build.emit(index.Warp(rank=2)), m.splat(16, i32, (1, 1))),
    )
    row = number("add", row, m.constants((0, 8), rank=2, axis=0))
    column = number(
        "mul",
        m.build.emit(index.Digit(value=lane, divisor=1, extent=4)),
        m.splat(2, i32, (1, 1)),
    )
    column = number("add", column, m.constants(tuple(range(0, n, 8)), rank=2, axis=1))
    stride = m.build.emit(scalar.Stride(tensor=c, axis=0))
    wide = m.build.emit(registers.Splat(value=stride, rank=2))
    offset = number("add", number("mul", row, wide), column)
    m.build.add(
        global_memory.Store(
            tensor=c, value=acc, base=m.build.const(0), offset=offset, axis=1, vec=2
        )
    )
    m.written.append(2)
