"""Collectives over every scope: values, ranks, dtypes, sizes; bit-equal on all parties and in every
schedule; and what is refused."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import warploom as wl
from warploom.base.dtypes import BY_NAME
from warploom.base.errors import CompileError
from warploom.testing.golden import Golden

NUMPY = {name: BY_NAME[name].numpy for name in ("f32", "f16", "bf16", "i32")}


def values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Numbers whose sums round, in an order that shows."""
    random = np.random.default_rng([seed, *shape])
    if dtype == "i32":
        return random.integers(-(2**31), 2**31, shape).astype(np.int32)
    return (random.standard_normal(shape) * 10.0 ** random.integers(-2, 3, shape)).astype(
        NUMPY[dtype]
    )


def folded(parts: np.ndarray, op: str) -> np.ndarray:
    """All parts as one, in their order, halves in f32."""
    wide = parts.astype(np.float32) if parts.dtype.itemsize == 2 else parts
    total = wide[0]
    with np.errstate(over="ignore"):
        for part in wide[1:]:
            total = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op](total, part)
    return total.astype(parts.dtype)


@wl.kernel
def reduced(
    x: wl.Tensor, y: wl.Tensor, OP: wl.const, OVER: wl.const, N: wl.const, ROUNDS: wl.const
):
    """Rounds of an all-reduce, each of other values; the last rounds of all parties go to y."""
    here = wl.program_id(0)
    part = wl.load(x[here, wl.ds(0, N)])
    for i in wl.range(0, ROUNDS):
        wl.store(y[i, here, wl.ds(0, N)], wl.all_reduce(part, OP, over=OVER))
        part = wl.load(x[here, wl.ds(0, N)]) + part


def rounds_of(host: np.ndarray, op: str, times: int, cluster: int) -> np.ndarray:
    """What the kernel makes of it."""
    part, made = host, []
    with np.errstate(over="ignore"):
        for _ in range(times):
            groups = part.reshape(-1, cluster, host.shape[1])
            sums = [np.broadcast_to(folded(g, op), g.shape) for g in groups]
            made.append(np.concatenate(sums))
            part = host + part
    return np.array(made)


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Equal bits."""
    return got.dtype == wanted.dtype and got.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("cluster", [1, 2, 3, 4, 5, 6, 7, 8, 11, 16])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_over_a_cluster(device, cluster: int, dtype: str) -> None:
    host = values(dtype, (cluster, 96))
    y = device.empty((3, cluster, 96), NUMPY[dtype])
    launch = reduced.launch(cluster, cluster=(cluster, 1, 1))
    launch(device.put(host), y, OP="sum", OVER=wl.cluster, N=96, ROUNDS=3)
    assert same(device.get(y), rounds_of(host, "sum", 3, cluster))


@pytest.mark.parametrize("size", [1, 2, 3, 33, 128, 500, 2048])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32"])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_sizes(device, size: int, dtype: str, op: str) -> None:
    host = values(dtype, (4, size))
    y = device.empty((2, 4, size), NUMPY[dtype])
    launch = reduced.launch(4, cluster=(2, 1, 1))
    launch(device.put(host), y, OP=op, OVER=wl.cluster, N=size, ROUNDS=2)
    assert same(device.get(y), rounds_of(host, op, 2, 2))


@pytest.mark.parametrize(
    ("cluster", "size", "dtype"),
    [(2, 32_768, "f16"), (16, 32_768, "f16"), (3, 16_384, "f32"), (5, 8195, "bf16")],
)
def test_large_ones_go_in_pieces(device, cluster: int, size: int, dtype: str) -> None:
    """64 KB a block in pieces of 16 KB, an odd rest behind them."""
    host = values(dtype, (cluster, size))
    y = device.empty((2, cluster, size), NUMPY[dtype])
    launch = reduced.launch(cluster, cluster=(cluster, 1, 1), warps=8)
    launch(device.put(host), y, OP="sum", OVER=wl.cluster, N=size, ROUNDS=2)
    assert same(device.get(y), rounds_of(host, "sum", 2, cluster))


@wl.kernel
def of_rows(x: wl.Tensor, y: wl.Tensor, ROWS: wl.const, N: wl.const):
    here = wl.program_id(0)
    part = wl.load(x[here, wl.ds(0, ROWS), wl.ds(0, N)])
    wl.store(y[here, wl.ds(0, ROWS), wl.ds(0, N)], wl.all_reduce(part, "max"))


@pytest.mark.parametrize(("cluster", "rows", "size"), [(2, 16, 1024), (8, 16, 1024), (3, 7, 1024)])
def test_large_rows_go_in_pieces(device, cluster: int, rows: int, size: int) -> None:
    """Of a whole number of rows; where rows of all parties are too long for two stages, pushed."""
    host = values("f32", (cluster, rows, size))
    y = device.empty(host.shape, np.float32)
    of_rows.launch(cluster, cluster=(cluster,), warps=8)(device.put(host), y, ROWS=rows, N=size)
    assert same(device.get(y), np.broadcast_to(host.max(axis=0), host.shape))


@pytest.mark.parametrize("blocks", [1, 2, 5, 24])
@pytest.mark.parametrize(("dtype", "size"), [("f32", 4), ("f32", 100), ("bf16", 7), ("i32", 64)])
def test_over_the_grid(device, blocks: int, dtype: str, size: int) -> None:
    """Small ones by flagged data, others by the counter; several launches."""
    host = values(dtype, (blocks, size))
    y = device.empty((2, blocks, size), NUMPY[dtype])
    launch = reduced.launch(blocks, cooperative=True)
    for _ in range(2):
        launch(device.put(host), y, OP="sum", OVER=wl.grid, N=size, ROUNDS=2)
        assert same(device.get(y), rounds_of(host, "sum", 2, blocks))


@wl.kernel
def by_replicas(x: wl.Tensor, y: wl.Tensor, OVER: wl.const, N: wl.const):
    with wl.roles(), wl.role("math", warps=1, replicas=3) as r:
        part = wl.load(x[r, wl.ds(0, N)])
        for i in wl.range(0, 4):
            part = wl.all_reduce(part, "sum", over=OVER) + wl.load(x[r, wl.ds(0, N)])
            wl.store(y[i, r, wl.ds(0, N)], part)


@pytest.mark.parametrize("over", [wl.block, wl.role], ids=["block", "role"])
def test_over_replicas(device, over) -> None:
    host = values("f32", (3, 65))
    y = device.empty((4, 3, 65), np.float32)
    by_replicas[1](device.put(host), y, OVER=over, N=65)
    part, made = host, []
    for _ in range(4):
        part = folded(part, "sum") + host
        made.append(part)
    assert same(device.get(y), np.array(made))


@wl.function
def softmax_parts(a, b):
    """Two parts of a softmax: maximum, denominator, weighted sum."""
    m, s, v = a
    n, t, w = b
    top = wl.maximum(m, n)
    left, right = wl.exp(m - top), wl.exp(n - top)
    return top, s * left + t * right, v * left + w * right


@wl.kernel
def attended(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    here = wl.program_id(0)
    row = wl.load(x[here, wl.ds(0, N)])
    top = wl.max(row, axis=0)
    weights = wl.exp(row - top)
    total, value = wl.sum(weights, axis=0), wl.sum(weights * row, axis=0)
    held = (wl.scalar(top), wl.scalar(total), wl.scalar(value))
    _, total, value = wl.all_reduce(held, softmax_parts, over=wl.cluster)
    wl.store(y[here], value / total)


@pytest.mark.parametrize("cluster", [1, 2, 7])
def test_a_function_of_the_user(device, cluster: int) -> None:
    host = values("f32", (cluster, 64)) / 100
    y = device.empty((cluster,), np.float32)
    attended.launch(cluster, cluster=(cluster, 1, 1))(device.put(host), y, N=64)
    flat = host.astype(np.float64).ravel()
    weights = np.exp(flat - flat.max())
    np.testing.assert_allclose(device.get(y), (weights * flat).sum() / weights.sum(), rtol=1e-5)


@wl.kernel
def others(x: wl.Tensor, y: wl.Tensor, OVER: wl.const, N: wl.const, PARTIES: wl.const):
    """Everything but the all-reduce, one row of y each."""
    here = wl.program_id(0)
    part = wl.load(x[here, wl.ds(0, N)])
    for _ in wl.range(0, 2):
        wl.store(y[0, here, wl.ds(0, N)], wl.reduce(part, "max", root=1, over=OVER))
        wl.store(y[1, here, wl.ds(0, N)], wl.broadcast(part, root=1, over=OVER))
        whole = wl.all_gather(part, over=OVER)
        wl.store(y[2, here, wl.ds(0, N * PARTIES)], whole)
        wl.store(y[3, here, wl.ds(0, N)], wl.reduce_scatter(whole, "sum", over=OVER))


@pytest.mark.parametrize("cluster", [2, 3, 8])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_the_others(device, cluster: int, dtype: str) -> None:
    host = values(dtype, (cluster, 40))
    y = device.put(np.zeros((4, cluster, 40 * cluster), NUMPY[dtype]))
    launch = others.launch(cluster, cluster=(cluster, 1, 1))
    launch(device.put(host), y, OVER=wl.cluster, N=40, PARTIES=cluster)
    got, whole = device.get(y), host.reshape(-1)
    most = host.copy()
    most[1] = folded(host, "max")
    assert same(got[0, :, :40], most)
    assert same(got[1, :, :40], np.broadcast_to(host[1], host.shape))
    assert same(got[2], np.broadcast_to(whole, (cluster, whole.size)))
    sums = folded(np.stack([whole] * cluster), "sum").reshape(cluster, 40)
    assert same(got[3, :, :40], sums)


@wl.kernel
def exchanged(
    x: wl.Tensor, y: wl.Tensor, OVER: wl.const, SHARE: wl.const, N: wl.const, WAY: wl.const
):
    """Rounds in which every block rotates what it got."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    whole = wl.shared((N,), x.dtype)
    share = wl.load(x[wl.ds(here * SHARE, SHARE)])
    for i in wl.range(0, 3):
        wl.exchange(share, whole, over=OVER, protocol=WAY)
        wl.store(y[i, here, wl.ds(0, N)], whole.load())
        share = wl.load(x[wl.ds((here + i + 1) % blocks * SHARE, SHARE)])


def rotated(host: np.ndarray, blocks: int, share: int, size: int) -> np.ndarray:
    rows = np.zeros((blocks, share), host.dtype)
    flat = rows.reshape(-1)
    flat[: host.size] = host
    made = []
    for i in range(3):
        shift = rows if i == 0 else np.roll(rows, -i, axis=0)
        whole = np.zeros(size, host.dtype)
        whole[: min(size, flat.size)] = shift.reshape(-1)[:size]
        made.append(np.broadcast_to(whole, (blocks, size)))
    return np.array(made)


@pytest.mark.parametrize("way", ["", "counter", "flagged"])
@pytest.mark.parametrize(
    ("blocks", "share", "size"), [(1, 8, 8), (3, 40, 120), (5, 16, 75), (4, 8, 64), (12, 64, 768)]
)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_exchange_over_the_grid(
    device, way: str, blocks: int, share: int, size: int, dtype: str
) -> None:
    host = values(dtype, (blocks * share,))
    y = device.empty((3, blocks, size), NUMPY[dtype])
    launch = exchanged.launch(blocks, cooperative=True)
    for _ in range(2):
        launch(device.put(host), y, OVER=wl.grid, SHARE=share, N=size, WAY=way)
        assert same(device.get(y), rotated(host, blocks, share, size))


@pytest.mark.parametrize(
    ("blocks", "share", "size"), [(2, 1, 1), (5, 16, 20), (6, 40, 40), (9, 64, 64), (7, 100, 30)]
)
def test_blocks_that_have_no_share_take_part(device, blocks: int, share: int, size: int) -> None:
    """What they send behind the end of the vector says that they have the round before: nobody
    writes a half anew that they still read. In the last two no words are left for that."""
    host = values("f32", (blocks * share,))
    y = device.put(np.zeros((3, blocks, size), np.float32))
    launch = exchanged.launch(blocks, cooperative=True)
    for _ in range(2):
        launch(device.put(host), y, OVER=wl.grid, SHARE=share, N=size, WAY="flagged")
        assert same(device.get(y), rotated(host, blocks, share, size))
    given = launch.call(
        host, np.zeros((3, blocks, size), np.float32), wl.grid, share, size, "flagged"
    )
    found = given.check(first_seed=3)
    assert found.clean, found.text()


@pytest.mark.parametrize(
    ("cluster", "blocks", "share", "size"),
    [(1, 3, 8, 20), (2, 4, 32, 128), (2, 2, 1, 1), (3, 3, 40, 118), (2, 6, 16, 20), (4, 8, 64, 40)],
)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_cluster_relays(
    device, cluster: int, blocks: int, share: int, size: int, dtype: str
) -> None:
    """Each block polls a part, and its peers get it from there."""
    host = values(dtype, (blocks * share,))
    y = device.empty((3, blocks, size), NUMPY[dtype])
    launch = exchanged.launch(blocks, cluster=(cluster,), cooperative=True)
    for _ in range(2):
        launch(device.put(host), y, OVER=wl.grid, SHARE=share, N=size, WAY="relayed")
        assert same(device.get(y), rotated(host, blocks, share, size))
    made = np.zeros((3, blocks, size), NUMPY[dtype])
    found = launch.call(host, made, wl.grid, share, size, "relayed").check(first_seed=2)
    assert found.clean, found.text()


def test_exchange_over_a_cluster(device) -> None:
    host = values("f32", (3 * 40,))
    y = device.empty((3, 3, 120), np.float32)
    launch = exchanged.launch(3, cluster=(3, 1, 1))
    launch(device.put(host), y, OVER=wl.cluster, SHARE=40, N=120, WAY="")
    assert same(device.get(y), rotated(host, 3, 40, 120))


CLEAN = {
    "cluster": lambda: reduced.launch(6, cluster=(3, 1, 1)).call(
        values("f32", (6, 40)),
        np.zeros((4, 6, 40), np.float32),
        OP="sum",
        OVER=wl.cluster,
        N=40,
        ROUNDS=4,
    ),
    "grid": lambda: reduced.launch(3, cooperative=True).call(
        values("f32", (3, 40)),
        np.zeros((4, 3, 40), np.float32),
        OP="sum",
        OVER=wl.grid,
        N=40,
        ROUNDS=4,
    ),
    "mail": lambda: reduced.launch(3, cooperative=True).call(
        values("f32", (3, 4)),
        np.zeros((4, 3, 4), np.float32),
        OP="sum",
        OVER=wl.grid,
        N=4,
        ROUNDS=4,
    ),
    "replicas": lambda: by_replicas[1].call(
        values("f32", (3, 65)), np.zeros((4, 3, 65), np.float32), OVER=wl.role, N=65
    ),
    "others": lambda: others.launch(3, cluster=(3, 1, 1)).call(
        values("f32", (3, 8)),
        np.zeros((4, 3, 24), np.float32),
        OVER=wl.cluster,
        N=8,
        PARTIES=3,
    ),
    "counter": lambda: exchanged.launch(3, cooperative=True).call(
        values("f32", (96,)),
        np.zeros((3, 3, 96), np.float32),
        OVER=wl.grid,
        SHARE=32,
        N=96,
        WAY="counter",
    ),
    "flagged": lambda: exchanged.launch(3, cooperative=True).call(
        values("f32", (96,)),
        np.zeros((3, 3, 96), np.float32),
        OVER=wl.grid,
        SHARE=32,
        N=96,
        WAY="flagged",
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_and_the_same_bits_in_every_schedule(name: str) -> None:
    call = CLEAN[name]()
    call.run()
    wanted = call.args[1].copy()
    for seed in range(4):
        call.args[1][...] = 0
        found = call.check(first_seed=seed)
        assert found.clean, found.text()
        assert same(call.args[1], wanted)


@pytest.mark.parametrize("way", ["counter", "flagged"])
@pytest.mark.parametrize("first", [2**31 - 3, 2**32 - 3])
def test_rounds_wrap(way: str, first: int) -> None:
    """As if 2^31 and 2^32 rounds (signals of them) had been made before."""
    host = values("f32", (3 * 16,))
    y = np.zeros((3, 3, 48), np.float32)
    launch = exchanged.launch(3, cooperative=True)
    bound = launch.bound(host, y, OVER=wl.grid, SHARE=16, N=48, WAY=way)
    words = next(v.host for v in bound._held.values[2:] if v.host.dtype == np.int32)
    words[:] = np.array(first).astype(np.uint32).astype(np.int32)
    for _ in range(2):
        bound()
        assert same(y, rotated(host, 3, 16, 48))


@settings(max_examples=8, deadline=None)
@given(
    cluster=st.integers(1, 16),
    clusters=st.integers(1, 2),
    size=st.integers(1, 150),
    dtype=st.sampled_from(["f32", "f16", "bf16", "i32"]),
    op=st.sampled_from(["sum", "max", "min"]),
    times=st.integers(1, 4),
    seed=st.integers(0, 2**31),
)
def test_any_cluster_size_and_dtype_in_any_schedule(
    cluster: int, clusters: int, size: int, dtype: str, op: str, times: int, seed: int
) -> None:
    """Clean, and the bits of the reference, whatever the order in which warps and copies move."""
    host = values(dtype, (cluster * clusters, size), seed)
    y = np.zeros((times, *host.shape), NUMPY[dtype])
    launch = reduced.launch(cluster * clusters, cluster=(cluster, 1, 1))
    call = launch.call(host, y, OP=op, OVER=wl.cluster, N=size, ROUNDS=times)
    found = call.check(first_seed=seed % 1000 + 1)
    assert found.clean, found.text()
    assert same(y, rounds_of(host, op, times, cluster))


@settings(max_examples=10, deadline=None)
@given(
    blocks=st.integers(1, 6),
    share=st.integers(1, 40),
    way=st.sampled_from(["", "counter", "flagged"]),
    dtype=st.sampled_from(["f32", "f16", "bf16", "i32"]),
    cut=st.integers(0, 3),
    seed=st.integers(0, 2**31),
)
@example(blocks=2, share=1, way="flagged", dtype="f32", cut=1, seed=0)
def test_any_exchange_in_any_schedule(
    blocks: int, share: int, way: str, dtype: str, cut: int, seed: int
) -> None:
    size = max(1, blocks * share - cut)
    host = values(dtype, (blocks * share,), seed)
    y = np.zeros((3, blocks, size), NUMPY[dtype])
    launch = exchanged.launch(blocks, cooperative=True)
    call = launch.call(host, y, OVER=wl.grid, SHARE=share, N=size, WAY=way)
    found = call.check(first_seed=seed % 1000 + 1)
    assert found.clean, found.text()
    assert same(y, rotated(host, blocks, share, size))


@wl.kernel
def beside(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    """One role goes round its cluster while another one works through a pipe."""
    here = wl.program_id(0)
    ring = wl.pipe(stages=2, slots=[wl.shared((N,), wl.f32)])
    with wl.roles():
        with wl.role("reads", warps=1):
            for i in wl.range(0, 5):
                with ring.put() as tile:
                    tile.store(wl.load(x[here, wl.ds(0, N)]) + i.cast(wl.f32))
        with wl.role("sums", warps=2):
            for i in wl.range(0, 5):
                with ring.get() as tile:
                    part = tile.load()
                wl.store(y[i, here, wl.ds(0, N)], wl.all_reduce(part, over=wl.cluster))


def test_in_one_role_while_others_go_on(device) -> None:
    host = values("f32", (6, 50))
    y = device.empty((5, 6, 50), np.float32)
    launch = beside.launch(6, cluster=(3, 1, 1))
    launch(device.put(host), y, N=50)
    for i, got in enumerate(device.get(y)):
        parts = (host + np.float32(i)).reshape(2, 3, 50)
        assert same(
            got, np.concatenate([np.broadcast_to(folded(p, "sum"), p.shape) for p in parts])
        )


def test_in_one_role_it_is_clean() -> None:
    y = np.zeros((5, 6, 50), np.float32)
    call = beside.launch(6, cluster=(3, 1, 1)).call(values("f32", (6, 50)), y, N=50)
    found = call.check(seeds=4)
    assert found.clean, found.text()


@wl.kernel
def of_doubles(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.all_reduce(wl.load(x[wl.ds(0, 4)]), over=wl.cluster))


@wl.kernel
def over_what(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.all_reduce(wl.load(x[wl.ds(0, 4)]), over="cluster"))


@wl.kernel
def by_what(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.all_reduce(wl.load(x[wl.ds(0, 4)]), "mean", over=wl.grid))


@wl.kernel
def unequal(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.reduce_scatter(wl.load(x[wl.ds(0, 5)]), over=wl.cluster))


@wl.kernel
def gathered_by_all(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.all_gather(wl.load(x[wl.ds(0, 4)]), over=wl.grid))


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (of_doubles, "i8"),
        (over_what, "f4"),
        (by_what, "f4"),
        (unequal, "f4"),
        (gathered_by_all, "f4"),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_refused(kernel, dtype: str, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel.launch(2, cluster=(2, 1, 1), cooperative=True)(np.zeros(8, dtype))
    golden(str(refused.value))
