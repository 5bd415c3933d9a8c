"""Instructions in the PTX equal those that the operations declare."""

from __future__ import annotations

from warploom.base.dtypes import boolean, f16, f64, i32
from warploom.base.target import SM_80, SM_90A
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import emit
from warploom.ir.op import Block, Value
from warploom.ir.ops import control, lanes, shared_memory, sync
from warploom.ir.types import Scalar
from warploom.runtime.nvrtc import compile_cubin


def both(kernel, target=SM_90A):
    return declared(kernel), counted(compile_cubin(emit(kernel, target), target).ptx)


def test_barriers_and_accesses_in_a_loop(machine):
    """Run-time loops are not unrolled, so each instruction is there once."""
    m, b = machine, machine.build
    n = m.parameter("n", Scalar(i32))
    x, y = m.tensor("x"), m.tensor("y")
    m.shared_bytes = 4096
    buffer = b.add(shared_memory.BufferOp(dtype=x.type.dtype, elements=1024, at=0)).result
    number = Value(Scalar(i32), "k")
    loop = control.For(lo=b.const(0), hi=n, step=b.const(1), body=Block((number,)))
    with b.inside(loop.body):
        tile = m.load(x, 8, vec=4)
        at = m.offsets(8, 4)
        b.add(shared_memory.Store(buffer=buffer, value=tile, offset=at, vec=4))
        b.add(sync.Barrier(threads=128))
        back = b.emit(shared_memory.Load(buffer=buffer, offset=m.offsets(8)))
        for mask in (1, 2):
            back = m.binary("add", back, b.emit(lanes.ShuffleXor(value=back, mask=mask)))
        b.add(sync.WarpSync())
        m.store(y, back, vec=2)
        b.add(sync.Barrier(threads=128, id=2))
        b.add(control.Yield())
    b.add(loop)
    said, found = both(m.kernel())
    assert said == found
    assert said == {
        "ld.global": 2,
        "st.shared": 2,
        "bar": 2,
        "ld.shared": 8,
        "shfl": 16,
        "bar.warp": 1,
        "st.global": 4,
    }


def test_wide_and_narrow_shuffles(machine):
    m, b = machine, machine.build
    for dtype, name in ((f64, "d"), (f16, "h"), (boolean, "p")):
        tile = m.load(m.tensor(f"{name}_in", dtype), 2)
        m.store(m.tensor(f"{name}_out", dtype), b.emit(lanes.ShuffleXor(value=tile, mask=4)))
    said, found = both(m.kernel(), SM_80)
    assert said == found and said["shfl"] == 8


def test_read_only_loads_are_counted_apart(machine):
    m = machine
    tile = m.load(m.tensor("x"), 1)
    tile.owner.read_only = True
    m.store(m.tensor("y"), m.binary("add", tile, tile))
    said, found = both(m.kernel())
    assert said == found == {"ld.global.nc": 1, "st.global": 1}


def asm(text):
    return f"\t// begin inline asm\n\t{text}\n\t// end inline asm\n"


def test_only_inline_asm_counts():
    ptx = asm("bar.sync 1, 128;") + "\tld.global.nc.u32 \t%r1, [table];\n" + asm("bar.sync 2, 64;")
    assert counted(ptx) == {"bar": 2}


def test_one_instruction_more_is_seen(machine):
    said = declared(machine.kernel())
    assert said == counted("") and said != counted(asm("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"))
