"""Level 3 run: named barriers between roles, votes and fences, copies by threads and in bulk, views
of shared memory, descriptors made by the kernel, inline PTX."""

import re

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def ping_pong(y: wl.Tensor, N: wl.const):
    """Two warpgroups take turns on a counter in shared memory."""
    first, second = wl.named_barrier(256), wl.named_barrier(256)
    counter = wl.shared((128,), wl.i32)
    counter.store(wl.zeros((128,), wl.i32))
    with wl.roles():
        with wl.role("a", warps=4):
            for _ in wl.range(N):
                counter.store(counter.load() * 3 + 1)
                second.arrive()
                first.sync()
            wl.store(y[wl.ds(0, 128)], counter.load())
        with wl.role("b", warps=4):
            for _ in wl.range(N):
                second.sync()
                counter.store(counter.load() * 5)
                first.arrive()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_two_warpgroups_take_turns(device, n):
    y = device.empty(128, np.int32)
    ping_pong[1](y, n)
    expected = 0
    for _ in range(n):
        expected = (expected * 3 + 1) * 5
    assert (device.get(y) == expected).all()


def test_named_barriers_come_after_those_of_roles():
    call = ping_pong.launch(1).call(np.zeros(128, np.int32), N=2)
    found = set(re.findall(r"bar_(?:sync|arrive)<(\d+), 256>", call.text("cuda")))
    assert found == {"0", "3", "4"}  # 0 is the block's, 1 and 2 are the roles'
    assert call.check().clean


def test_a_barrier_that_one_role_forgets_is_a_deadlock_report():
    @wl.kernel
    def forgets(y: wl.Tensor, n: wl.i32):
        bar = wl.named_barrier(64)
        with wl.roles():
            with wl.role("waits", warps=1):
                bar.sync()
            with wl.role("leaves", warps=1):
                if n > 0:  # where it never comes, the kernel is refused
                    bar.sync()
                wl.store(y[wl.ds(0, 32)], wl.thread_id())

    with pytest.raises(wl.CheckError) as caught:
        forgets[1](np.zeros(32, np.int32), 0)
    assert caught.value.code == "D001"
    assert "barrier 2: 32 of 64 threads have come" in str(caught.value)


def test_fences_reach_the_ptx(device):
    @wl.kernel
    def publish(x: wl.Tensor, flag: wl.Tensor):
        wl.store(x[wl.ds(0, 128)], wl.thread_id())
        wl.fence("gpu")
        wl.store(flag[wl.ds(0, 1)], wl.full((1,), 1, wl.i32))
        wl.fence("system")

    x, flag = device.empty(128, np.int32), device.empty(1, np.int32)
    call = publish.launch(1).call(x, flag)
    call.run()
    assert device.get(flag)[0] == 1
    assert device.get(x).tolist() == list(range(128))
    ptx = call.text("ptx")
    assert ptx.count("fence.acq_rel.gpu;") == 1
    assert ptx.count("fence.acq_rel.sys;") == 1


@wl.kernel
def bulk_runs(x: wl.Tensor, y: wl.Tensor, START: wl.const, N: wl.const):
    tile = wl.shared((N,), x.dtype)
    done = wl.barrier()
    with wl.one_thread():
        done.expect(N * x.dtype.bytes)
        wl.copy_bulk(x[wl.ds(START, N)], tile, barrier=done)
    done.wait(0)
    with wl.one_thread():
        wl.copy_bulk(tile, y[wl.ds(START, N)])
        wl.copy_commit()
        wl.copy_wait()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("n", [16, 256, 1024, 8192])
def test_bulk_copies_of_a_constant_size(device, dtype, n):
    """Sizes are taken from the tile, down to one unit of 16 bytes."""
    x = np.random.default_rng(n).integers(-99, 99, 16384).astype(dtype)
    y = device.put(np.zeros_like(x))
    bulk_runs[1](device.put(x), y, 4096, n)
    expected = np.zeros_like(x)
    expected[4096 : 4096 + n] = x[4096 : 4096 + n]
    assert np.array_equal(device.get(y), expected)


def test_a_bulk_copy_that_leaves_the_tensor_is_found():
    x = np.zeros(1024, np.float32)
    findings = bulk_runs.launch(1).call(x, np.zeros_like(x), START=1008, N=64).check()
    assert "M001" in {f.code for f in findings} <= {"M001", "M002"}
    with pytest.raises(wl.CheckError) as caught:
        bulk_runs[1](x, np.zeros_like(x), 1008, 64)
    assert "reads `x` out of bounds" in str(caught.value)


def test_a_run_at_a_misaligned_address_is_refused_before_the_launch():
    x = np.zeros(1024 + 1, np.float32)[1:]
    with pytest.raises(wl.CompileError) as caught:
        bulk_runs[1](x, np.zeros(1024, np.float32), 0, 64)
    assert caught.value.code == "L020"
    assert "`x`, whose address or strides are multiples of 4 bytes" in str(caught.value)


@wl.kernel
def early_read(x: wl.Tensor, y: wl.Tensor, WAIT: wl.const, BULK: wl.const, READS: wl.const = False):
    """A tile is stored, and overwritten at once."""
    tile = wl.shared((256,), x.dtype)
    tile.store(wl.load(x[0, wl.ds(0, 256)]))
    with wl.one_thread():
        if BULK:
            wl.copy_bulk(tile, y[0, wl.ds(0, 256)])
        else:
            wl.copy_async(tile, y[0, wl.ds(0, 256)])
        wl.copy_commit()
        if WAIT:
            wl.copy_wait(reads=READS)
    tile.store(wl.load(x[1, wl.ds(0, 256)]))
    wl.store(y[1, wl.ds(0, 256)], tile.load())
    with wl.one_thread():
        wl.copy_wait()


@pytest.mark.parametrize("bulk", [True, False])
def test_a_source_that_is_overwritten_before_the_copy_has_read_it(bulk):
    x = np.arange(512, dtype=np.float32).reshape(2, 256)
    y = np.zeros_like(x)
    call = early_read.launch(1).call(x, y, WAIT=False, BULK=bulk)
    assert {f.code for f in call.check()} == {"R101"}
    y[:] = 0
    call.run()
    assert not np.array_equal(y, x), "the copy reads late in the simulator"
    for reads in (False, True):
        y[:] = 0
        call = early_read.launch(1).call(x, y, WAIT=True, BULK=bulk, READS=reads)
        assert call.check(seeds=5).clean
        call.run()
        assert np.array_equal(y, x)


@wl.kernel
def hinted(x: wl.Tensor, y: wl.Tensor, CACHE: wl.const):
    tile = wl.shared((8, 32), wl.f32)
    done = wl.barrier()
    with wl.one_thread():
        done.expect(8 * 32 * 4)
        wl.copy_async(x[wl.ds(0, 8), wl.ds(0, 32)], tile, barrier=done, cache=CACHE)
    done.wait(0)
    with wl.one_thread():
        wl.copy_async(tile, y[wl.ds(0, 8), wl.ds(0, 32)], cache=CACHE)
        wl.copy_commit()
        wl.copy_wait()


@pytest.mark.parametrize("cache", ["", "evict_first", "evict_last", "evict_normal"])
def test_hints_for_the_cache_reach_the_copies(device, cache):
    x = np.arange(256, dtype=np.float32).reshape(8, 32)
    y = device.put(np.zeros_like(x))
    call = hinted.launch(1).call(device.put(x), y, CACHE=cache)
    call.run()
    assert np.array_equal(device.get(y), x)
    hints = call.text("ptx").count(".L2::cache_hint [")
    assert hints == (2 if cache else 0)


@wl.kernel
def fetched(x: wl.Tensor, y: wl.Tensor, LEVEL: wl.const, MASK: wl.const):
    i = wl.arange(256)
    if MASK:
        wl.prefetch(x[wl.ds(0, 256)], LEVEL, i % 2 == 0)
    else:
        wl.prefetch(x[wl.ds(0, 256)], LEVEL)
    wl.store(y[wl.ds(0, 256)], wl.load(x[wl.ds(0, 256)]))


@pytest.mark.parametrize("level", ["L1", "L2"])
@pytest.mark.parametrize("mask", [False, True])
def test_a_prefetch_is_its_instruction(device, level, mask):
    x = np.arange(256, dtype=np.float32)
    y = device.put(np.zeros_like(x))
    call = fetched.launch(1).call(device.put(x), y, LEVEL=level, MASK=mask)
    call.run()
    assert np.array_equal(device.get(y), x)
    assert call.text("ptx").count(f"prefetch.global.{level} ") >= 1


@wl.kernel
def written_and_read(x: wl.Tensor, y: wl.Tensor, FENCE: wl.const):
    """x is written by threads and read by the copy engine, in one kernel."""
    tile = wl.shared((128,), wl.f32)
    done = wl.barrier()
    wl.store(x[wl.ds(0, 128)], wl.thread_id().cast(wl.f32))
    if FENCE:
        wl.fence_async("global")
        wl.named_barrier(128).sync()
    with wl.one_thread():
        done.expect(512)
        wl.copy_async(x[wl.ds(0, 128)], tile, barrier=done)
    done.wait(0)
    wl.store(y[wl.ds(0, 128)], tile.load())


def test_both_proxies_on_one_tensor_need_a_fence(device):
    x, y = device.put(np.zeros(128, np.float32)), device.put(np.zeros(128, np.float32))
    with pytest.raises(wl.CompileError) as caught:
        written_and_read[1](x, y, False)
    assert caught.value.code == "L010"
    assert "wl.fence_async" in str(caught.value)
    written_and_read[1](x, y, True)
    assert device.get(y).tolist() == list(range(128))


@wl.kernel
def other_accesses(x: wl.Tensor, WAY: wl.const):
    """Threads reach x by other ways than loads and stores, and the copy engine does too."""
    tile = wl.shared((128,), wl.i32)
    done = wl.barrier()
    if WAY == "atomic":
        wl.atomic_add(x[wl.ds(0, 128)], 1)
    if WAY == "signal":
        wl.signal(x[0], 1)
    if WAY == "threads":
        wl.copy_by_threads(x[wl.ds(0, 128)], tile)
        wl.threads_wait()
    with wl.one_thread():
        if WAY == "threads":
            wl.copy_async(tile, x[wl.ds(0, 128)])
            wl.copy_wait()
        else:
            done.expect(512)
            wl.copy_async(x[wl.ds(0, 128)], tile, barrier=done)
    if WAY != "threads":
        done.wait(0)


@pytest.mark.parametrize("way", ["atomic", "signal", "threads"])
def test_all_accesses_of_threads_need_a_fence_beside_the_copy_engine(way):
    with pytest.raises(wl.CompileError) as caught:
        other_accesses[1](np.zeros(128, np.int32), way)
    assert caught.value.code == "L010"
    assert "copy engine" in str(caught.value)


@wl.kernel
def staged(x: wl.Tensor, y: wl.Tensor, S: wl.const, WAIT: wl.const = True, FAST: wl.const = 16):
    """y[k] = x[k] + x[k] through S slots that threads fill ahead of time."""
    tiles = wl.shared((FAST, 64), x.dtype, slots=S)
    n = x.shape[0]
    for s in wl.unroll(S - 1):
        if s < n:
            wl.copy_by_threads(x[s, wl.ds(0, FAST), wl.ds(0, 64)], tiles[s])
        wl.threads_commit()
    for k in wl.range(n):
        if WAIT:
            wl.threads_wait(S - 2)
        t = tiles[k % S].load()
        if k + S - 1 < n:
            ahead = x[k + S - 1, wl.ds(0, FAST), wl.ds(0, 64)]
            wl.copy_by_threads(ahead, tiles[(k + S - 1) % S])
        wl.threads_commit()
        wl.store(y[k, wl.ds(0, FAST), wl.ds(0, 64)], t + t)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_a_ring_that_threads_fill(device, stages, n):
    x = np.random.default_rng(n).integers(-9, 9, (n, 16, 64)).astype(np.float32)
    y = device.put(np.zeros_like(x))
    staged[1](device.put(x), y, stages)
    assert np.array_equal(device.get(y), 2 * x)


def test_a_read_without_the_wait_is_found():
    x, y = np.ones((5, 16, 64), np.float32), np.zeros((5, 16, 64), np.float32)
    call = staged.launch(1).call(x, y, S=3)
    assert call.check(seeds=5).clean
    call = staged.launch(1).call(x, y, S=3, WAIT=False)
    assert "R101" in {f.code for f in call.check()}
    with pytest.raises(wl.CheckError) as caught:
        call.run()
    assert caught.value.code == "M013"
    assert not (y == 2).all(), "the copies are late in the simulator"


def test_threads_copy_from_a_view_that_the_copy_engine_cannot_take(device):
    """Rows of 1022 bytes: two elements a copy lie together, never sixteen bytes."""
    base = np.arange(2 * 16 * 512, dtype=np.int32).reshape(2, 16, 512)
    x = np.ascontiguousarray(base.astype(np.float32))[:, :, :509]
    y = device.put(np.zeros((2, 16, 64), np.float32))
    staged[1](device.put(x), y, 2)
    assert np.array_equal(device.get(y), 2 * x[:, :, :64])


def exp2_model(x):
    return np.exp2(x)


@wl.kernel
def approximate(x: wl.Tensor, y: wl.Tensor, MODEL: wl.const):
    t = wl.load(x[wl.ds(0, 200)])
    if MODEL:
        t = wl.ptx("ex2.approx.ftz.f32 %0, %1;", wl.f32, t, model=exp2_model)
    else:
        t = wl.ptx("ex2.approx.ftz.f32 %0, %1;", wl.f32, t)
    wl.store(y[wl.ds(0, 200)], t)


def test_inline_ptx(device):
    x = np.linspace(-3, 3, 200).astype(np.float32)
    y = device.put(np.zeros_like(x))
    call = approximate.launch(1).call(device.put(x), y, MODEL=True)
    call.run()
    assert np.allclose(device.get(y), np.exp2(x), rtol=1e-6)
    # A tile of 200 elements over 128 threads: two registers a thread.
    assert call.text("ptx").count("ex2.approx.ftz.f32") == 2


def test_the_simulator_refuses_ptx_without_a_model(golden):
    x = np.ones(200, np.float32)
    with pytest.raises(wl.CheckError) as caught:
        approximate[1](x, x.copy(), False)
    assert caught.value.code == "K001"
    # Places in this file change with it.
    golden(re.sub(r"(?m)^ +--> .*\n|^\d+ (?=\|)", "", str(caught.value)))


def scaled(factor):
    def model(x):
        return x * np.float32(factor)

    return model


DOUBLE, TRIPLE = scaled(2), scaled(3)


@wl.kernel
def by_two_models(x: wl.Tensor, y: wl.Tensor):
    t = wl.load(x[wl.ds(0, 64)])
    two = wl.ptx("add.f32 %0, %1, %1;", wl.f32, t, model=DOUBLE)
    three = wl.ptx("mul.f32 %0, %1, 0f40400000;", wl.f32, t, model=TRIPLE)
    wl.store(y[wl.ds(0, 64)], two * 10.0 + three)


def test_two_models_of_one_factory_are_two(device):
    x = np.arange(64).astype(np.float32)
    y = device.put(np.zeros_like(x))
    by_two_models[1](device.put(x), y)
    assert np.array_equal(device.get(y), 23 * x)
