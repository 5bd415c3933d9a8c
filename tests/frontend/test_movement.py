"""Reports of mistakes with named barriers, votes, copies, views of shared memory and inline PTX."""

import pytest

from tests.frontend.test_roles import GET, PUT, as_kernel, in_roles, lowered

THREAD = """
ints, f32s = wl.shared((64, 64), wl.i32), wl.shared((64, 64), wl.f32)
bar = wl.barrier()
plain, small = wl.shared((64, 64), wl.bf16, swizzle=0), wl.shared((20,), wl.bf16)
with wl.one_thread():
    """

MISTAKES = {
    "P027 sync": "bar = wl.named_barrier(128)\nwith wl.one_thread():\n    bar.sync()",
    "P027 ballot": "with wl.one_thread():\n    t = wl.lane_id()",
    "P027 warp": "with wl.one_thread():\n    wl.warp_sync()",
    "P028 warps": "bar = wl.named_barrier(100)",
    "P013 named": in_roles(PUT, "bar = wl.named_barrier(128)"),
    "T022": "t = wl.shuffle(wl.arange(64), 0)",
    "T004 ballot": "t = wl.ballot(wl.thread_id())",
    "T015 lane": "t = wl.shuffle(wl.thread_id(), wl.thread_id().cast(wl.f32))",
    "T015 scope": "wl.fence('grid')",
    "P027 threads": "with wl.one_thread():\n"
    "    wl.copy_by_threads(x[wl.ds(0, 64), wl.ds(0, 64)], tile)",
    "T005 threads": "wl.copy_by_threads(x[wl.ds(0, 64), wl.ds(0, 32)], tile)",
    "T015 threads": "wl.copy_by_threads(tile, tile)",
    "F027 threads": "wl.threads_wait(n)",
    "T015 arrive": "wl.threads_arrive(tile)",
    "P050": "wl.ptx('membar.gl;', inputs=wl.thread_id())",
    "P051": "t = wl.ptx('{ .reg .b32 a; @p atom.global.add.u32 a, [%1], 1; mov.b32 %0, a; }', "
    "wl.i32, wl.thread_id())",
    "P051 sync": "wl.ptx('bar.sync 0;', inputs=wl.thread_id(), effects='memory')",
    "T015 ptx effects": "wl.ptx('membar.gl;', inputs=wl.thread_id(), effects='io')",
    "T015 ptx inputs": "t = wl.ptx('mov.u32 %0, %clock;', wl.i32, n)",
    "T015 ptx text": "t = wl.ptx(n, wl.i32, wl.thread_id())",
    "T015 ptx model": "t = wl.ptx('mov.u32 %0, %1;', wl.i32, wl.thread_id(), model=3)",
    "T004 ptx": "t = wl.ptx('mov.b16 %0, %1;', wl.i8, wl.thread_id())",
    "P027 ptx": "with wl.one_thread():\n    wl.ptx('membar.gl;', effects='memory')",
    "L022": "t = tile.reshape((32, 128))",
    "L022 window": "flat = wl.shared((64, 64), wl.bf16, swizzle=0)\n"
    "t = flat[wl.ds(0, 8), :].reshape((4, 128))",
    "T005 reshape": "t = tile.reshape((32, 32))",
    "L024 bytes": "t = tile.reinterpret(wl.f32, (32, 128))",
    "L024 rows": "t = tile.reinterpret(wl.f32, (32, 64))",
    "L024 bool": "t = tile.reinterpret(wl.boolean)",
    "L022 turned": "t = tile.T.reinterpret(wl.f32)",
    "L025": "t = wl.shared((8, 64), wl.f32, alias=tile[wl.ds(0, 8), :])",
    "L025 behind": "t = wl.shared((8, 64), wl.f32, alias=wl.behind(tile.T))",
    "L025 other": "t = wl.shared((8, 64), wl.f32, alias=n)",
    "P013 alias": in_roles(PUT, "other = wl.shared((64, 64), wl.f32, alias=tile)"),
    "T018 dtype": "t = tile.gather(wl.zeros((8, 64), wl.f32))",
    "T018 shape": "t = tile.gather(wl.zeros((8, 65), wl.i32))",
    "T005 scatter": "tile.scatter(wl.zeros((8, 64), wl.i32), wl.zeros((4, 64), wl.bf16))",
    "T012 axis": "t = tile.gather(wl.zeros((8, 64), wl.i32), axis=2)",
    "T015 space": "wl.fence_async('local')",
    "T004 reduce": THREAD + "wl.copy_async(f32s, y[wl.ds(0, 64), wl.ds(0, 64)], reduce='min')",
    "T004 fill": "def kernel(i: wl.Tensor):\n"
    "    ints, bar = wl.shared((64, 64), wl.i32), wl.barrier()\n"
    "    with wl.one_thread():\n"
    "        wl.copy_async(i[wl.ds(0, 64), wl.ds(0, 64)], ints, barrier=bar, fill='nan')",
    "T015 reduce": THREAD
    + "wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile, barrier=bar, reduce='add')",
    "T015 fill": THREAD
    + "wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile, barrier=bar, fill='one')",
    "T015 bulk": THREAD + "wl.copy_bulk(tile, tile)",
    "T005 bulk": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 64)], tile, barrier=bar)",
    "T006 bulk": THREAD + "wl.copy_bulk(x[wl.ds(0, 64), wl.ds(0, 64)], tile, barrier=bar)",
    "P006 bulk": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 4096)], tile)",
    "P020 bulk": "wl.copy_bulk(x[0, wl.ds(0, 4096)], tile)",
    "P020 prefetch": "wl.copy_prefetch(x[0, wl.ds(0, 64)])",
    "P027 prefetch": "with wl.one_thread():\n    wl.prefetch(x[0, wl.ds(0, 64)])",
    "T015 level": "wl.prefetch(x[0, wl.ds(0, 64)], 'L3')",
    "T015 cache": "t = wl.load(x[0, wl.ds(0, 64)], cache='keep')",
    "T011 prefetch": "wl.prefetch(x[0, wl.ds(0, 64)], mask=wl.arange(32) > 3)",
    "T004 prefetch": "wl.prefetch(x[0, wl.ds(0, 64)], mask=wl.arange(64))",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_report(source, golden, name):
    error = source.refused(as_kernel(MISTAKES[name]), x="bf16 n1", y="bf16 n1", i="i32 n1")
    assert [report.code for report in error.reports] == [name.split()[0]], str(error)
    golden(str(error), name)


LOWERED = {
    "L025 slots": "a = wl.shared((8, 64), wl.f32, slots=2)\n"
    "b = wl.shared((8, 64), wl.bf16, slots=3, alias=a)\n"
    "wl.store(y[wl.ds(0, 8), wl.ds(0, 64)], b[0].load())",
    "P028 before": in_roles(PUT, GET, before="wl.named_barrier(128).sync()"),
    "L010 bulk stride": THREAD + "wl.copy_bulk(x[wl.ds(0, 4096), 0], plain, bar)",
    "L010 bulk swizzle": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 4096)], tile, bar)",
    "L010 bulk turned": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 4096)], plain.T, bar)",
    "L010 bulk part": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 2048)], plain[:, wl.ds(32, 32)], bar)",
    "L010 prefetch": THREAD + "wl.copy_prefetch(x[wl.ds(0, 64), 0])",
    "L010 prefetch box": THREAD + "wl.copy_prefetch(x[wl.ds(0, 64), wl.ds(0, 257)])",
    "L021": "odd = wl.shared((64, 63), wl.bf16)\n"
    "wl.copy_by_threads(x[wl.ds(0, 64), wl.ds(0, 63)], odd)",
    "L020 size": THREAD + "wl.copy_bulk(x[0, wl.ds(0, 20)], small, bar)",
    "L020 start": THREAD + "wl.copy_bulk(x[0, wl.ds(n, 4096)], plain, bar)",
    "P029": in_roles(
        PUT, GET, before="wl.store(y[0, wl.ds(0, 128)], wl.thread_id().cast(wl.bf16))"
    ),
    "P028 small": in_roles(PUT, GET + "\nbar.sync()", before="bar = wl.named_barrier(threads=96)"),
    "P028 alone": "bar = wl.named_barrier(256)\nbar.sync()",
    "P028 never": in_roles(PUT, GET + "\nbar.sync()", before="bar = wl.named_barrier(160)"),
    "B011 named": "for i in wl.unroll(16):\n    wl.named_barrier(128).sync()",
}


@pytest.mark.parametrize("name", LOWERED)
def test_report_of_the_passes(source, golden, name):
    error = lowered(source, LOWERED[name])
    assert error.code == name.split()[0], str(error)
    golden(str(error), name)
