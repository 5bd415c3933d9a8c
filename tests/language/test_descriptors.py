"""Descriptors that a kernel makes: problems of a group whose places and sizes lie in a table."""

import subprocess
import sys

import numpy as np
import pytest

import warploom as wl
from warploom.base.dtypes import BY_NAME

_UNIT = 8  # f16 elements of 16 bytes


@wl.kernel
def grouped(
    a: wl.Tensor,
    b: wl.Tensor,
    y: wl.Tensor,
    table: wl.Tensor,
    BM: wl.const,
    BN: wl.const,
    BK: wl.const,
    STAGES: wl.const,
):
    """y = a · bᵀ of every problem of the table: where its operands and its result begin, and its
    rows, columns and depth. Rows of a and b are as long as the next 16 bytes, those of y BN."""
    ta, tb = wl.shared((BM, BK), wl.f16), wl.shared((BN, BK), wl.f16)
    ty = wl.shared((BM, BN), wl.f16)
    ring = wl.pipe(STAGES, slots=[ta, tb])
    out = wl.pipe(1, slots=[ty], to=wl.copy_engine)
    # The store of a tile is behind the load of the next one by an item.
    count = STAGES + 3
    of_a, of_b = wl.descriptors(a, ta, count), wl.descriptors(b, tb, count)
    of_y = wl.descriptors(y, ty, count)
    me, blocks = wl.program_id(0), wl.num_programs(0)
    with wl.roles():
        with wl.role("load", warps=1):
            used = 0
            for g in wl.range(table.shape[0]):
                rows, columns, depth = sizes(table, g)
                tiles = (rows + BM - 1) // BM
                if me < tiles:
                    n = used % count
                    step = (depth + 7) // 8 * 8
                    of_a[n].make(wl.load(table[g, 0]), (rows, depth), (step, 1))
                    of_b[n].make(wl.load(table[g, 1]), (columns, depth), (step, 1))
                    of_y[n].make(wl.load(table[g, 2]), (rows, columns), (BN, 1))
                    for t in wl.range(me, tiles, blocks):
                        for k in wl.range(0, depth, BK):
                            with ring.put() as (sa, sb):
                                fetched(of_a[n], t * BM, k, sa)
                                fetched(of_b[n], 0, k, sb)
                    used = used + 1
        with wl.role("math", warps=4):
            used = 0
            for g in wl.range(table.shape[0]):
                rows, columns, depth = sizes(table, g)
                tiles = (rows + BM - 1) // BM
                for t in wl.range(me, tiles, blocks):
                    acc = wl.zeros((BM, BN), wl.f32)
                    for _ in wl.range(0, depth, BK):
                        item = ring.take()
                        sa, sb = item
                        acc = wl.dot_async(sa, sb.T, acc)
                        item.release(after=acc, behind=1 if STAGES > 1 else 0)
                    tile = acc.wait()
                    with out.put() as sy:
                        sy.store(tile.cast(wl.f16))
                        window = of_y[used % count][wl.ds(t * BM, BM), wl.ds(0, BN)]
                        wl.copy_async(sy, window)
                if me < tiles:
                    used = used + 1


@wl.function
def fetched(of_x, row, column, tile):
    rows, columns = tile.shape
    wl.copy_async(of_x[wl.ds(row, rows), wl.ds(column, columns)], tile)


@wl.function
def sizes(table, g):
    return wl.load(table[g, 3]), wl.load(table[g, 4]), wl.load(table[g, 5])


def padded(n: int) -> int:
    return -(-n // _UNIT) * _UNIT


def problems(shapes: list[tuple[int, int, int]], columns: int):
    """Arrays that hold all operands and results, the table, and the results that are expected."""
    rng = np.random.default_rng(len(shapes))
    lengths = [(m * padded(k), n * padded(k), m * columns) for m, n, k in shapes]
    starts = [np.cumsum([0, *(length[i] for length in lengths)]) for i in range(3)]
    a, b = (rng.integers(-2, 3, starts[i][-1] + _UNIT).astype(np.float16) for i in range(2))
    expected = np.full(starts[2][-1] + _UNIT, 7, np.float16)
    table = []
    for g, (m, n, k) in enumerate(shapes):
        at = [int(starts[i][g]) for i in range(3)]
        x = a[at[0] : at[0] + m * padded(k)].reshape(m, padded(k))[:, :k].astype(np.float32)
        w = b[at[1] : at[1] + n * padded(k)].reshape(n, padded(k))[:, :k].astype(np.float32)
        rows = expected[at[2] : at[2] + m * columns].reshape(m, columns)
        rows[:, :n] = x @ w.T
        table.append([*at, m, n, k])
    return a, b, np.array(table, np.int32).reshape(-1, 6), expected


SHAPES = [(64, 64, 64), (1, 64, 8), (130, 48, 72), (64, 64, 200), (63, 8, 5), (65, 64, 64)]
TILE = {"BM": 64, "BN": 64, "BK": 64}


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_problems_from_a_table(device, stages, blocks):
    for shapes in ([], SHAPES[:1], SHAPES, SHAPES * 3):
        a, b, table, expected = problems(shapes, 64)
        if not shapes:
            table = np.zeros((0, 6), np.int32)
        y = device.put(np.full_like(expected, 7))
        given = (device.put(v) for v in (a, b))
        grouped[blocks](*given, y, device.put(table), **TILE, STAGES=stages)
        assert np.array_equal(device.get(y), expected), len(shapes)


@pytest.mark.parametrize("stages", [1, 2])
def test_every_schedule_is_clean(stages):
    a, b, table, expected = problems(SHAPES * 2, 64)
    y = np.full_like(expected, 7)
    findings = grouped.launch(2).check(a, b, y, table, **TILE, STAGES=stages, seeds=10)
    assert findings.clean, findings.text()
    assert np.array_equal(y, expected)


@wl.kernel
def one(
    x: wl.Tensor,
    y: wl.Tensor,
    start: wl.i32,
    rows: wl.i32,
    columns: wl.i32,
    stride: wl.i32,
    MADE: wl.const = True,
):
    """y = the part of x."""
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    made = wl.descriptors(x, tile)
    full = wl.barrier()
    part = made[0]
    with wl.roles():
        with wl.role("load", warps=1):
            if MADE:
                part.make(start, (rows, columns), (stride, 1))
            with wl.one_thread():
                full.expect(tile.shape[0] * tile.shape[1] * 4)
                wl.copy_async(part[wl.ds(0, 16), wl.ds(0, 64)], tile, full)
        with wl.role("use", warps=4):
            full.wait(0)
            wl.store(y[wl.ds(0, 16), wl.ds(0, 64)], tile.load())


def test_a_part_is_clipped_where_it_ends(device):
    x = np.arange(4096, dtype=np.float32)
    for start, rows, columns, stride in [(4, 16, 64, 68), (128, 1, 1, 4), (512, 15, 63, 128)]:
        y = device.put(np.full((16, 64), -1, np.float32))
        one[1](device.put(x), y, start, rows, columns, stride)
        expected = np.zeros((16, 64), np.float32)
        for r in range(rows):
            expected[r, :columns] = x[start + r * stride :][:columns]
        assert np.array_equal(device.get(y), expected)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("start_at_run_time", (2, 8, 64, 64)),
        ("stride_at_run_time", (0, 8, 63, 63)),
        ("backwards", (2048, 8, 64, -64)),
        ("no_row", (0, 0, 64, 64)),
        ("beyond", (2048, 33, 64, 64)),
        ("in_front", (-4, 4, 64, 64)),
    ],
)
def test_what_the_engine_cannot_take(name, numbers, golden):
    x, y = np.zeros(4096, np.float32), np.zeros((16, 64), np.float32)
    with pytest.raises(wl.CheckError) as refused:
        one[1](x, y, *numbers)
    assert [r.code for r in refused.value.reports] == ["M036"]
    golden(str(refused.value), name)


def test_nobody_makes_it(golden):
    x, y = np.zeros(4096, np.float32), np.zeros((16, 64), np.float32)
    with pytest.raises(wl.CheckError) as refused:
        one[1](x, y, 0, 16, 64, 64, MADE=False)
    assert [r.code for r in refused.value.reports][:1] == ["M037"]
    golden(refused.value.reports[0].render())


@wl.kernel
def no_room(x: wl.Tensor, n: wl.i32, HOW: wl.const):
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    if HOW == "dtype":
        wl.descriptors(x, wl.shared((16, 64), wl.f16))
    if HOW == "view":
        wl.descriptors(x, tile.T)
    if HOW == "rows":
        wl.descriptors(x.rows(0, n), tile)
    if HOW == "index":
        wl.descriptors(x, tile, 2)[2].acquire()
    with wl.roles(), wl.role("load", warps=1):
        wl.descriptors(x, tile)


@wl.kernel
def not_made(x: wl.Tensor, n: wl.i32, HOW: wl.const):
    wide = wl.shared((512, 4), wl.f32, swizzle=0)
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    ring = wl.pipe(1, slots=[wl.shared((16, 64), wl.f32, swizzle=0)])
    d = wl.descriptors(x, wide if HOW == "wide" else tile)[0]
    with wl.roles(), wl.role("load", warps=2 if HOW == "warps" else 1):
        if HOW == "axes":
            d.make(0, (16,))
        if HOW == "columns":
            d.make(0, (16, 64), (1, 64))
        if HOW == "stride":
            d.make(0, (16, 64), (65, 1))
        if HOW == "start":
            d.make(2, (16, 64))
        if HOW == "put":
            with ring.put():
                d.make(0, (16, 64))
        if HOW == "alone":
            with wl.one_thread():
                d.make(0, (16, 64))
        d.make(0, (n, 4))


@wl.kernel
def not_copied(x: wl.Tensor, n: wl.i32, HOW: wl.const):
    tile = wl.shared((16, 64), wl.f32, swizzle=0)
    other = wl.shared((8, 64), wl.f32, swizzle=0)
    full = wl.barrier()
    d = wl.descriptors(x, tile)[0]
    with wl.roles(), wl.role("load", warps=1):
        d.make(0, (n, 64))
        with wl.one_thread():
            if HOW == "load":
                wl.load(d[wl.ds(0, 16), wl.ds(0, 64)])
            if HOW == "row":
                wl.copy_prefetch(d[0, wl.ds(0, 64)])
            if HOW == "window":
                wl.copy_async(d[wl.ds(0, 8), wl.ds(0, 64)], other, full)
            if HOW == "fill":
                wl.copy_async(d[wl.ds(0, 16), wl.ds(0, 64)], tile, fill="nan")
            if HOW == "rank":
                wl.copy_prefetch(d[wl.ds(0, 64)])
            if HOW == "tensor":
                wl.copy_prefetch(d)


REFUSED = {
    no_room: ("dtype", "view", "rows", "index", "top"),
    not_made: ("wide", "warps", "axes", "columns", "stride", "start", "alone", "put"),
    not_copied: ("load", "row", "window", "fill", "rank", "tensor"),
}


@pytest.mark.parametrize(
    ("kernel", "how"), [(kernel, how) for kernel, hows in REFUSED.items() for how in hows]
)
def test_refused(kernel, how, golden):
    with pytest.raises(wl.CompileError) as refused:
        kernel[1](np.zeros(4096, np.float32), 16, how)
    golden(str(refused.value), how)


@wl.kernel
def shared_out(x: wl.Tensor, y: wl.Tensor, starts: wl.Tensor):
    """Each block of a cluster of two brings half of the rows of every part to both."""
    tile = wl.shared((32, 64), wl.bf16, slots=2)
    full, empty = wl.barrier(2), wl.barrier(2, arrivals=2)
    made = wl.descriptors(x, tile[0][wl.ds(0, 16), :], 3)
    rank = wl.cluster_rank()
    n = starts.shape[0]
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(n):
                slot = i % 2
                part = made[i % 3]
                part.make(wl.load(starts[i]), (30, 64), (64, 1))
                empty[slot].wait(i // 2 % 2 ^ 1)
                with wl.one_thread():
                    full[slot].expect(32 * 64 * 2)
                    rows = part[wl.ds(rank * 16, 16), wl.ds(0, 64)]
                    there = tile[slot][wl.ds(rank * 16, 16), :]
                    wl.copy_async(rows, there, full[slot], multicast=3)
        with wl.role("use", warps=4):
            for i in wl.range(n):
                slot = i % 2
                full[slot].wait(i // 2 % 2)
                wl.store(y[rank, i, wl.ds(0, 32), wl.ds(0, 64)], tile[slot].load())
                wl.fence_async()
                for other in wl.unroll(2):
                    empty[slot].on(other).arrive()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_one_part_for_all_blocks_of_a_cluster(device, n):
    x = (np.arange(8192) % 251).astype(BY_NAME["bf16"].numpy)
    starts = np.arange(n, dtype=np.int32) * 72
    y = device.put(np.zeros((2, n, 32, 64), x.dtype))
    shared_out.launch(2, cluster=2)(device.put(x), y, device.put(starts))
    expected = np.zeros((n, 32, 64), x.dtype)
    for i, start in enumerate(starts):
        expected[i, :30] = x[start : start + 30 * 64].reshape(30, 64)
    assert np.array_equal(device.get(y), [expected, expected])


def test_a_cluster_is_clean_on_every_schedule():
    x, y = np.zeros(8192, BY_NAME["bf16"].numpy), np.zeros((2, 5, 32, 64), BY_NAME["bf16"].numpy)
    starts = np.arange(5, dtype=np.int32) * 72
    findings = shared_out.launch(2, cluster=2).check(x, y, starts, seeds=8)
    assert findings.clean, findings.text()


@wl.kernel
def rows_of(x: wl.Tensor, y: wl.Tensor, rows: wl.i32, k: wl.i32, K: wl.const):
    """y = the (rows, k) matrix in x, by the stride k that is known at run time, or K if not 0."""
    tile = wl.shared((16, 64), x.dtype, swizzle=0)
    back = wl.shared((16, 64), x.dtype, swizzle=0)
    made = wl.descriptors(x, tile)
    ring, out = wl.pipe(2, slots=[tile]), wl.pipe(2, slots=[back], to=wl.copy_engine)
    width = K if K else k
    with wl.roles():
        with wl.role("load", warps=1):
            made[0].make(0, (rows, width), (width, 1))
            for column in wl.range(0, width, 64):
                with ring.put() as t:
                    wl.copy_async(made[0][wl.ds(0, 16), wl.ds(column, 64)], t)
        with wl.role("store", warps=1):
            for column in wl.range(0, width, 64):
                with ring.get() as t:
                    values = t.load()
                with out.put() as t:
                    t.store(values)
                    wl.copy_async(t, y[wl.ds(0, 16), wl.ds(column, 64)])


LENGTHS = [(k, size) for k in (511, 512, 515, 520) for size in (1, 2, 4)]
NAMES = {1: "f8e4m3", 2: "bf16", 4: "f32"}


def matrix(k: int, size: int) -> np.ndarray:
    numbers = np.arange(12 * k) % 15 - 7
    return numbers.astype(BY_NAME[NAMES[size]].numpy).reshape(12, k)


@pytest.mark.case("C18")
@pytest.mark.parametrize(("k", "size"), [(k, s) for k, s in LENGTHS if k * s % 16 == 0])
@pytest.mark.parametrize("constant", [False, True])
def test_rows_of_whole_units(device, k, size, constant):
    x = matrix(k, size)
    y = device.put(np.zeros((16, -(-k // 64) * 64), x.dtype))
    rows_of[1](device.put(x.reshape(-1)), y, 12, k, K=k if constant else 0)
    assert np.array_equal(device.get(y)[:12, :k], x)


@pytest.mark.case("C18")
@pytest.mark.parametrize(("k", "size"), [(k, s) for k, s in LENGTHS if k * s % 16])
def test_rows_of_part_of_a_unit(k, size):
    """As a constant the stride is refused when the kernel is built, else when it is met."""
    x, y = matrix(k, size), np.zeros((16, 576), BY_NAME[NAMES[size]].numpy)
    with pytest.raises(wl.CompileError, match=f"stride of {k * size} bytes") as refused:
        rows_of[1](x.reshape(-1), y, 12, k, K=k)
    assert refused.value.code == "L010" and "pad rows" in str(refused.value)
    with pytest.raises(wl.CheckError, match=f"stride {k * size} bytes") as met:
        rows_of[1](x.reshape(-1), y, 12, k, K=0)
    assert met.value.reports[0].code == "M036" and "pad what is packed" in str(met.value)
    assert not y.any()


@pytest.mark.gpu
@pytest.mark.case("C18")
@pytest.mark.parametrize("numbers", ["(0, 8, 63, 63)", "(2, 8, 64, 64)", "(0, 0, 64, 64)"])
def test_a_gpu_stops_where_it_would_copy_from_elsewhere(numbers):
    """In a process of its own: nothing else runs there after a trap."""
    text = f"""
import numpy as np, warploom as wl
from tests.language.test_descriptors import one
x, y = wl.to_device(np.zeros(4096, np.float32)), wl.to_device(np.zeros((16, 64), np.float32))
try:
    one[1](x, y, *{numbers})
    wl.to_numpy(y)
except wl.LaunchError as error:
    print("stopped:", error.code)
"""
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=50, check=False
    )
    assert found.stdout.startswith("stopped: H0"), found.stdout + found.stderr
