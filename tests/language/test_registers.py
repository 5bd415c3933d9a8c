"""Registers of roles: what fits runs, what does not is refused before a launch, with the table."""

import itertools

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def asks(
    x: wl.Tensor,
    y: wl.Tensor,
    LOW: wl.const,
    HIGH: wl.const,
    FEEDERS: wl.const,
    REPLICAS: wl.const,
    WARPS: wl.const,
):
    """Roles that give registers back, and roles that take them, at both ends of a pipe."""
    ring = wl.pipe(2, slots=[wl.shared((16, 32), wl.f32)])
    with wl.roles():
        with wl.role("feed", warps=WARPS, replicas=FEEDERS, registers=LOW) as r:
            for k in wl.range(x.shape[0]):
                with ring.put() as tile:
                    half = wl.ds(r * (16 // FEEDERS), 16 // FEEDERS)
                    tile[half, :].store(wl.load(x[k, half, wl.ds(0, 32)]))
        with wl.role("add", warps=4, replicas=REPLICAS, registers=HIGH) as r:
            total = wl.zeros((16, 32), wl.f32)
            for _ in wl.range(x.shape[0]):
                with ring.get() as tile:
                    total = total + tile.load()
            wl.store(y[r, wl.ds(0, 16), wl.ds(0, 32)], total)


# Registers of the feeding and the adding role, warpgroups of each.
LEGAL = [
    (24, 240, 1, 1),
    (24, 240, 1, 2),
    (24, 160, 1, 3),
    (40, 232, 1, 2),
    (24, 256, 1, 1),
    (24, 232, 2, 2),
    (40, 216, 2, 2),
    (0, 240, 1, 1),  # no decrease is asked for
    (0, 232, 1, 2),
    (0, 0, 2, 2),
    (168, 168, 1, 2),
]


@pytest.mark.case("C02")
@pytest.mark.parametrize(("low", "high", "feeders", "adders"), LEGAL)
@pytest.mark.parametrize("warps", [1, 4])
def test_what_fits_runs(device, low, high, feeders, adders, warps):
    x = np.random.default_rng(0).integers(-9, 9, (5, 16, 32)).astype(np.float32)
    y = device.put(np.full((adders, 16, 32), np.nan, np.float32))
    asks[1](device.put(x), y, low, high, feeders, adders, warps)
    assert np.array_equal(device.get(y), np.broadcast_to(x.sum(0), (adders, 16, 32)))


IMPOSSIBLE = [
    (168, 240, 1, 2, "feed: 128 threads x 168 = 21,504", "add: 256 threads x 240 = 61,440", 384),
    (40, 240, 1, 2, "feed: 128 threads x 40 = 5,120", "add: 256 threads x 240 = 61,440", 384),
    (24, 240, 1, 3, "feed: 128 threads x 24 = 3,072", "add: 384 threads x 240 = 92,160", 512),
    (40, 240, 2, 2, "feed: 256 threads x 40 = 10,240", "add: 256 threads x 240 = 61,440", 512),
]


@pytest.mark.case("C02")
@pytest.mark.parametrize("row", IMPOSSIBLE, ids=lambda row: "-".join(map(str, row[:4])))
def test_what_does_not_fit_is_refused_with_the_table(row):
    low, high, feeders, adders, first, second, threads = row
    x, y = np.zeros((1, 16, 32), np.float32), np.zeros((3, 16, 32), np.float32)
    with pytest.raises(wl.CompileError) as refused:
        asks[1](x, y, low, high, feeders, adders, 4)
    entry = 65536 // threads // 8 * 8
    pool, total = threads * entry, 128 * (feeders * low + adders * high)
    text = str(refused.value)
    assert refused.value.code == "B010"
    assert f"ask for {total:,} registers, and a block of {threads} threads holds {pool:,}" in text
    assert first in text and second in text
    assert f"{threads} x {entry} = {pool:,}" in text
    assert "help: give `add` registers=" in text
    # The proposal is one that fits.
    nearest = int(text.rpartition("registers=")[2].split()[0])
    asks[1](x, y, low, nearest, feeders, adders, 4)


@pytest.mark.case("C02")
@pytest.mark.parametrize("asked", [16, 23, 25, 44, 100, 257, 264, -8])
@pytest.mark.parametrize("which", [0, 1])
def test_a_number_that_the_hardware_does_not_know(asked, which):
    x, y = np.zeros((1, 16, 32), np.float32), np.zeros((3, 16, 32), np.float32)
    given = (asked, 40) if which == 0 else (40, asked)
    with pytest.raises(wl.CompileError, match="a multiple of 8 from 24 to 256") as refused:
        asks[1](x, y, *given, 1, 1, 4)
    assert refused.value.code == "B013"


@pytest.mark.case("C02")
def test_the_solved_registers_never_exceed_the_pool():
    x, y = np.zeros((1, 16, 32), np.float32), np.zeros((3, 16, 32), np.float32)
    for low, feeders, adders in itertools.product((0, 24, 56), (1, 2), (1, 2, 3)):
        text = asks.launch(1).call(x, y, low, 0, feeders, adders, 4).text("machine")
        counts = [int(part.split(",")[0]) for part in text.split("set_registers() [count=")[1:]]
        threads = 128 * (feeders + adders)
        if counts:
            total = 128 * (feeders * counts[0] + adders * counts[1])
            assert total <= threads * (65536 // threads // 8 * 8), counts
