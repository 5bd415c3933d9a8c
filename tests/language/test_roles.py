"""What stands in a role is done by its warps: prints, assertions, reductions."""

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def spoken(x: wl.Tensor, n: wl.i32):
    print("block", n)
    with wl.roles():
        with wl.role("pair", warps=2, replicas=2) as r:
            print("pair", r)
            with wl.one_thread():
                print("one", r)
            print("sum", wl.scalar(wl.sum(wl.arange(64) + r, 0)))
        with wl.role("single", warps=1):
            print("single", n)


def test_a_role_prints_once_a_replica(device, capfd):
    spoken[1](device.put(np.zeros(1, np.float32)), 7)
    device.synchronise()
    words = sorted(capfd.readouterr().out.split("\n"))
    pair = ["one 0", "one 1", "pair 0", "pair 1", "single 7", "sum 2016", "sum 2080"]
    assert words == ["", "block 7", *pair]


@wl.kernel
def sure(x: wl.Tensor, n: wl.i32):
    with wl.roles():
        with wl.role("idle", warps=1):
            pass
        with wl.role("checks", warps=3):
            assert n < 5, "n is small"


def test_a_role_asserts():
    sure[1](np.zeros(1, np.float32), 4)
    with pytest.raises(wl.CheckError, match="n is small"):
        sure[1](np.zeros(1, np.float32), 5)


@wl.kernel
def collectives(x: wl.Tensor, y: wl.Tensor, n: wl.i32, WARPS: wl.const):
    """One role reduces across its warps, several times over, and prints; another waits for items
    all the while and comes to none of the first one's barriers."""
    ring = wl.pipe(1, slots=[wl.shared((64, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_async(x[k, wl.ds(0, 64), wl.ds(0, 32)], tile)
        with wl.role("reduce", warps=WARPS, replicas=2) as r:
            most = wl.full((32,), -1000.0, wl.f32)
            for _ in wl.range(n):
                with ring.get() as tile:
                    t = tile.load()
                most = wl.maximum(most, wl.sum(t, 0))
                if wl.scalar(wl.max(most, 0)) > 1e6:
                    print("large", r)
            wl.store(y[r, wl.ds(0, 32)], most + wl.argmax(most, 0).cast(wl.f32))
            print("most", r, wl.scalar(wl.max(most, 0)))
        with wl.role("other", warps=2):
            wl.store(y[2, wl.ds(0, 32)], wl.sum(wl.load(x[0, wl.ds(0, 64), wl.ds(0, 32)]), 0))


@pytest.mark.case("C08")
@pytest.mark.parametrize("warps", [1, 2, 4])
def test_collectives_are_the_role_s_own(device, warps, capfd):
    x = np.random.default_rng(warps).integers(-9, 9, (3, 64, 32)).astype(np.float32)
    y = device.put(np.full((3, 32), np.nan, np.float32))
    collectives[1](device.put(x), y, 3, warps)
    sums = x.sum(1)
    most = sums.max(0)
    found = device.get(y)
    assert np.array_equal(found[:2], np.stack([most + most.argmax()] * 2))
    assert np.array_equal(found[2], sums[0])
    device.synchronise()
    lines = capfd.readouterr().out.split("\n")
    assert sorted(line.split(" ")[1] for line in lines if line.startswith("most")) == ["0", "1"]


@wl.kernel
def exchanges(x: wl.Tensor, y: wl.Tensor, count: wl.Tensor, WARPS: wl.const):
    """One role turns a tile, counts, picks and adds up by atomic operations, each of which its
    warps exchange data for; another goes on and comes to none of their barriers."""
    bins = wl.shared((2 * 64,), wl.i32, swizzle=0)
    with wl.roles():
        with wl.role("work", warps=WARPS):
            t = wl.load(x[wl.ds(0, 64), wl.ds(0, 32)])
            wl.store(y[wl.ds(0, 32), wl.ds(0, 64)], t.T)
            odd = wl.sum(t % 2, 1)
            bins.store(wl.cat((odd, odd + 1), 0))
            picked = bins.gather(127 - wl.arange(128), 0)
            wl.atomic_add(count[wl.ds(0, 128)], picked)
            wl.atomic_add(count[wl.ds(0, 128)], bins[64] + wl.zeros((128,), wl.i32))
        with wl.role("other", warps=2):
            for i in wl.range(5):
                wl.store(y[i, wl.ds(64, 4)], wl.full((4,), i, wl.i32))


@pytest.mark.case("C08")
@pytest.mark.parametrize("warps", [1, 2, 4])
def test_exchanges_are_the_role_s_own(device, warps):
    x = np.random.default_rng(warps).integers(0, 9, (64, 32)).astype(np.int32)
    y, count = device.put(np.zeros((32, 68), np.int32)), device.put(np.zeros(128, np.int32))
    exchanges[1](device.put(x), y, count, warps)
    found = device.get(y)
    assert np.array_equal(found[:, :64], x.T)
    assert np.array_equal(found[:, 64:].T, [[0, 1, 2, 3, 4, *[0] * 27]] * 4)
    odd = (x % 2).sum(1)
    bins = np.concatenate([odd, odd + 1])
    assert np.array_equal(device.get(count), bins[::-1] + bins[64])


@wl.kernel
def whole_block(y: wl.Tensor, THREADS: wl.const, BOTH: wl.const):
    everybody = wl.named_barrier(THREADS)
    with wl.roles():
        with wl.role("one", warps=4):
            everybody.sync()
        with wl.role("two", warps=4):
            if BOTH:
                everybody.sync()
            wl.store(y[wl.ds(0, 8)], wl.zeros((8,), wl.f32))


@pytest.mark.case("C08")
def test_a_barrier_of_the_block_in_one_role_is_refused():
    y = np.ones(8, np.float32)
    with pytest.raises(wl.CompileError) as refused:
        whole_block[1](y, 256, False)
    text = str(refused.value)
    assert refused.value.code == "P028" and "everybody.sync()" in text
    assert "256 threads never opens: 128 come to it" in text and "`one`: 128 threads" in text
    whole_block[1](y, 256, True)
    assert not y.any()
    with pytest.raises(wl.CompileError, match=r"test_roles\.py:\d+") as absent:
        synchronises[1](y)
    assert absent.value.code == "F024"


@wl.kernel
def synchronises(y: wl.Tensor):
    with wl.roles():
        with wl.role("one", warps=4):
            wl.syncthreads()
        with wl.role("two", warps=4):
            wl.store(y[wl.ds(0, 8)], wl.zeros((8,), wl.f32))


@wl.kernel
def folded(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    """Replicas that exchange among their warps, trip after trip, each at its own pace."""
    with wl.roles():
        with wl.role("fold", warps=4, replicas=3) as r:
            for k in wl.range(x.shape[0]):
                total = 0
                for _ in wl.range(r * 3 + 1):
                    t = wl.load(x[k, r, wl.ds(0, N)])
                    total = wl.scalar(wl.sum(t, 0)) + wl.scalar(wl.max(t, 0))
                wl.store(y[k, r], total)
        with wl.role("idle", warps=1):
            pass


def test_what_replicas_exchange_is_their_own(device):
    x = np.random.default_rng(0).integers(0, 100, (300, 3, 256)).astype(np.int32)
    y = device.put(np.zeros((300, 3), np.int32))
    call = folded.launch(2).call(device.put(x), y, N=256)
    assert call.text("machine").count("copies=3") >= 2
    call.run()
    assert np.array_equal(device.get(y), x.sum(2) + x.max(2))
