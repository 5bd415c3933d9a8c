"""The calls of `kernels.collectives` against NumPy, bit by bit, and the soak tests."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.dtypes import BY_NAME
from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import collectives
from warploom.kernels.collectives import kernel, reference
from warploom.testing import devices


def drawn(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    random = np.random.default_rng([seed, *shape])
    if dtype == "i32":
        return random.integers(-999, 999, shape).astype(np.int32)
    return random.standard_normal(shape).astype(BY_NAME[dtype].numpy)


@pytest.mark.parametrize("cluster", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("dtype", collectives.DTYPES)
def test_all_reduce(device, cluster: int, dtype: str) -> None:
    blocks = 3 if not cluster else 2 * cluster
    x = drawn(dtype, (blocks, 130))
    out = device.empty(x.shape, x.dtype)
    scale = 1.0 if dtype == "i32" else 0.5
    collectives.all_reduce(device.put(x), out, "sum", cluster, 3, scale)
    wanted = reference.all_reduce(x, cluster or blocks, "sum", 3, scale)
    assert device.get(out).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("size", [1, 2, 1000, 1024, 1025, 4096])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_small_and_large(device, size: int, op: str) -> None:
    """One push, and in two stages where the table says so and the parts are equal."""
    x = drawn("f32", (4, size))
    out = device.empty(x.shape, x.dtype)
    collectives.all_reduce(device.put(x), out, op, 4, 2, 0.25)
    assert device.get(out).tobytes() == reference.all_reduce(x, 4, op, 2, 0.25).tobytes()


@pytest.mark.parametrize("protocol", ["", "counter", "flagged"])
@pytest.mark.parametrize(("blocks", "share", "size"), [(1, 8, 8), (4, 64, 256), (7, 5, 35)])
def test_exchange(device, protocol: str, blocks: int, share: int, size: int) -> None:
    x = drawn("f32", (size,))
    out = device.empty((blocks, size), np.float32)
    collectives.exchange(device.put(x), out, share, 4, protocol)
    wanted = reference.exchange(x, share, 4)
    assert device.get(out).tobytes() == np.broadcast_to(wanted, (blocks, size)).tobytes()


def test_of_nothing() -> None:
    x = np.zeros((0, 5), np.float32)
    collectives.all_reduce(x, x.copy(), cluster=2)
    collectives.exchange(np.zeros(0, np.float32), np.zeros((0, 0), np.float32), 1)


def test_refused() -> None:
    x = np.zeros((3, 5), np.float32)
    with pytest.raises(LaunchError, match="H031"):
        collectives.all_reduce(x, x.copy(), cluster=2)
    with pytest.raises(LaunchError, match="H007"):
        collectives.all_reduce(x, x)
    with pytest.raises(ShapeError, match="T201"):
        collectives.exchange(np.zeros(4, np.float32), x, 2)
    with pytest.raises(ShapeError, match="T202"):
        collectives.exchange(np.zeros(5, np.float16), x.astype(np.float16), 2)


@pytest.fixture
def gpu() -> devices.GpuDevice:
    """The GPU alone: rounds by the hundred thousand are not for the simulator."""
    return devices.GpuDevice()


def soak_of(
    device,
    what: str,
    cluster: int,
    n: int,
    dtype: str,
    rounds: int,
    most: int,
    seeds: int,
    op="sum",
) -> np.ndarray:
    """Wrong elements a block, of many rounds with blocks held up at random. Inputs are drawn from
    seeds; what each of them gives, the simulator says. `cluster` 0: over a grid of 132 or 3."""
    over = wl.cluster if cluster else wl.grid
    parties = cluster or (132 if device.name == "gpu" else 3)
    blocks = 2 * cluster or parties
    m = {"reduce_scatter": n // parties, "all_gather": n * parties}.get(what, n)
    x = np.stack([drawn(dtype, (blocks, n), s) for s in range(seeds)])
    wanted = np.zeros((seeds, blocks, m), x.dtype)
    if cluster:
        flat, made = x.reshape(-1, n), wanted.reshape(-1, m)
        kernel.once.launch(len(flat), cluster=(cluster, 1, 1))(flat, made, what, op, over, n, m)
    else:
        wanted[...] = np.stack([reference.all_reduce(part, parties, op) for part in x])
    wrong = device.put(np.full(blocks, -1, np.int32))
    ways = {"cluster": (cluster, 1, 1)} if cluster else {"cooperative": True}
    launch = kernel.soak.launch(blocks, **ways)
    launch(device.put(x), device.put(wanted), wrong, rounds, most, what, op, over, n, m)
    return device.get(wrong)


WHATS = ("all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast")


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("cluster", [2, 5])
def test_blocks_held_up_at_random(device, what: str, cluster: int) -> None:
    assert not soak_of(device, what, cluster, 40, "f32", 12, 60, 5).any()


def test_blocks_of_a_grid_held_up_at_random(device) -> None:
    assert not soak_of(device, "all_reduce", 0, 40, "f32", 12, 60, 5).any()


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize("cluster", [2, 3, 4, 8, 11, 16])
@pytest.mark.parametrize("what", WHATS)
def test_soak(gpu, what: str, cluster: int) -> None:
    n = 16 * cluster if what == "reduce_scatter" else 96
    assert not soak_of(gpu, what, cluster, n, "bf16", 100_000, 3000, 64).any()


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize(("cluster", "n"), [(2, 8192), (4, 4096), (7, 3584), (16, 2048)])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_soak_in_two_stages(gpu, cluster: int, n: int, op: str) -> None:
    assert not soak_of(gpu, "all_reduce", cluster, n, "f16", 100_000, 3000, 64, op).any()


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize("n", [8, 64])
def test_soak_over_the_grid(gpu, n: int) -> None:
    """By flagged data and behind the counter."""
    assert not soak_of(gpu, "all_reduce", 0, n, "f32", 20_000, 3000, 64).any()


def soak_of_exchange(device, blocks: int, protocol: str, rounds: int, most: int, launches: int = 1):
    """Wrong elements a block, of many rounds or launches; block 0 begins a thousand times later
    than the pauses of the others are long. Of 132 blocks the last four have no share."""
    share, seeds = 32, 7
    size = min(blocks * share, 4096)
    x = np.stack([drawn("f32", (size,), s) for s in range(seeds)])
    given, wrong = device.put(x), device.put(np.full((launches, blocks), -1, np.int32))
    cluster = 2 if protocol == "relayed" else 1
    launch = kernel.exchange_soak.launch(blocks, cluster=cluster, cooperative=True)
    for number in range(launches):
        slow = 1000 * most if launches > 1 and number % 5 == 0 else 0
        launch(
            *(given, given, wrong[number], rounds, most, slow),
            SHARE=share,
            N=size,
            WAY=protocol,
        )
    return device.get(wrong)


@pytest.mark.parametrize("protocol", ["counter", "flagged", "relayed"])
def test_exchange_with_blocks_held_up_at_random(device, protocol: str) -> None:
    assert not soak_of_exchange(device, 4, protocol, 9, 60).any()
    assert not soak_of_exchange(device, 4, protocol, 2, 3, launches=7).any()


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["counter", "flagged", "relayed"])
def test_soak_exchange(gpu, protocol: str) -> None:
    assert not soak_of_exchange(gpu, 132, protocol, 100_000, 3000).any()


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["counter", "flagged", "relayed"])
def test_soak_launches_back_to_back(gpu, protocol: str) -> None:
    assert not soak_of_exchange(gpu, 132, protocol, 3, 1000, launches=200).any()
