"""Rows split over a cluster against their formulas in float64, for every size of a cluster."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import ShapeError
from warploom.kernels import rows
from warploom.kernels.rows import config, kernel, reference

EPS = 1e-5
KINDS = range(4)


@pytest.fixture
def short(monkeypatch):
    """Blocks that hold few elements, so that short rows are split as long ones are."""
    monkeypatch.setattr(config, "MOST_ELEMENTS", 64)


def run(device, kind, x, out=None, **other):
    """The result of a row function for x, and the reference."""
    names = {kernel.RMS_NORM: ("weight",), kernel.LAYER_NORM: ("weight", "bias")}
    given = [other[name] for name in names.get(kind, ())]
    if kind == kernel.CROSS_ENTROPY:
        target = other["target"]
        out = device.empty((len(x),), np.float32) if out is None else out
        rows.cross_entropy(device.put_strided(x), device.put(target), out)
        return device.get(out), reference.cross_entropy(x, target)
    out = device.empty(x.shape, x.dtype) if out is None else out
    arrays = (device.put_strided(x), *map(device.put, given), out)
    if kind == kernel.SOFTMAX:
        rows.softmax(*arrays)
        return device.get(out), reference.softmax(x)
    name = config.NAMES[kind]
    getattr(rows, name)(*arrays, EPS)
    return device.get(out), getattr(reference, name)(x, *given, EPS)


def other(randn, kind, count, length, dtype="f32"):
    """Weights, biases and targets; one target is absent, one the last element."""
    target = np.random.default_rng(length).integers(0, max(length, 1), count).astype(np.int32)
    target[:1] = -1
    target[1:2] = length - 1
    return {"weight": randn(length, dtype), "bias": randn(length, dtype), "target": target}


@pytest.mark.parametrize("length", [1, 7, 64, 65, 130, 256, 257, 512, 1000, 1024])
@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
def test_sizes(device, short, randn, close, kind, length):
    """Clusters of 1 to 16; parts that are whole and ragged, blocks without a single element."""
    x = randn((5, length))
    found, wanted = run(device, kind, x, **other(randn, kind, 5, length))
    close(found, wanted, 2e-5)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_narrow_elements_and_few_rows(device, short, randn, close, kind, dtype, count):
    x = randn((count, 512), dtype)
    found, wanted = run(device, kind, x, **other(randn, kind, count, 512, dtype))
    close(found, wanted, 2e-5)


@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
def test_more_rows_than_clusters(device, short, randn, close, monkeypatch, kind):
    """Replicas go round their slots several times."""
    monkeypatch.setattr(config, "AT_A_TIME", dict.fromkeys(config.SIZES, 8))
    x = randn((4 * 9 + 1, 128))
    found, wanted = run(device, kind, x, **other(randn, kind, len(x), 128))
    close(found, wanted, 2e-5)


@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
def test_views(device, short, randn, seen_as, close, kind, how):
    """What the copy engine cannot take is read by threads, and gives the same bits."""
    x = randn((5, 256))
    more = other(randn, kind, 5, 256)
    plain, wanted = run(device, kind, x, **more)
    found, _ = run(device, kind, seen_as(x, how), **more)
    close(found, wanted, 2e-5)
    assert np.array_equal(found, plain)


@pytest.mark.case("C34")
def test_rows_at_the_edge_of_numbers(device, short, close):
    """−∞ in one block's part or everywhere, +∞, NaN, and sums that overflow without a maximum."""
    x = np.zeros((6, 256), np.float32)
    x[0, :64] = -np.inf
    x[1] = -np.inf
    x[2, 200] = np.inf
    x[3, 3] = np.nan
    x[4] = 3e38
    x[5, 255] = 500
    found, wanted = run(device, kernel.SOFTMAX, x)
    close(found, wanted)
    target = np.array([255, 255, 0, 0, 0, 255], np.int32)
    found, wanted = run(device, kernel.CROSS_ENTROPY, x, target=target)
    close(found[[0, 4, 5]], wanted[[0, 4, 5]])
    assert np.isnan(found[[2, 3]]).all()


def test_a_mean_far_from_zero(device, short, randn, close):
    """The parts' means are taken off before anything is squared: x = 1000 ± 1 keeps its digits."""
    x = randn((3, 1000)) + np.float32(1000)
    more = {"weight": np.ones(1000, np.float32), "bias": np.zeros(1000, np.float32)}
    found, wanted = run(device, kernel.LAYER_NORM, x, **more)
    close(found, wanted, 5e-4)


def test_a_row_does_not_depend_on_its_neighbours(device, short, randn):
    x, more = randn((7, 512)), other(randn, kernel.LAYER_NORM, 7, 512)
    together, _ = run(device, kernel.LAYER_NORM, x, **more)
    alone, _ = run(device, kernel.LAYER_NORM, x[3:4], **more)
    assert np.array_equal(alone[0], together[3])


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("kind", [kernel.RMS_NORM, kernel.LAYER_NORM, kernel.SOFTMAX])
@pytest.mark.parametrize("count", [1, 4, 5, 17])
def test_results_that_the_copy_engine_writes(device, randn, close, kind, stages, count):
    """Out of the slots that the rows came in, which are filled again a row later."""
    x, more = randn((count, 256), "bf16"), other(randn, kind, count, 256, "bf16")
    chosen = config.Config(4, 64, stages, kind != kernel.SOFTMAX, 2, 2, WRITTEN=True)
    names = {kernel.RMS_NORM: ("weight",), kernel.LAYER_NORM: ("weight", "bias")}.get(kind, ())
    given = {name: device.put(more[name]) for name in names}
    out = device.empty(x.shape, x.dtype)
    launcher = kernel.rows.launch(4, cluster=(4,))
    launcher(device.put(x), out, EPS, KIND=kind, **chosen.constants(), **given)
    _, wanted = run(device, kind, x, **more)
    close(device.get(out), wanted, 2e-5)


def test_written_results_are_clean_in_any_order():
    call = kernel.rows.example_call("written")
    found = call.check(seeds=4)
    assert found.clean, found.text()


@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
@pytest.mark.parametrize("cluster", [2, 8])
def test_clean(kind, cluster):
    """No race, no early or late wait, under any schedule: several rounds of the slots."""
    x = np.random.default_rng(0).standard_normal((9, 32 * cluster)).astype(np.float32)
    more = {}
    if kind <= kernel.LAYER_NORM:
        more["weight"] = x[0].copy()
    if kind == kernel.LAYER_NORM:
        more["bias"] = x[1].copy()
    if kind == kernel.CROSS_ENTROPY:
        more["target"] = np.arange(9, dtype=np.int32)
    out = np.zeros(9 if kind == kernel.CROSS_ENTROPY else x.shape, np.float32)
    launcher = kernel.rows.launch(cluster, cluster=cluster)
    norm = kind <= kernel.LAYER_NORM
    found = launcher.check(x, out, EPS, kind, 32, 2, norm, WARPS=2, seeds=8 // cluster + 1, **more)
    assert found.clean, found.text()


@pytest.mark.parametrize("length", [8192, 16_384, 65_536, 131_072, 262_144])
@pytest.mark.parametrize("item", [2, 4])
@pytest.mark.parametrize("wide", [2, 4])
@pytest.mark.parametrize("kind", KINDS, ids=config.NAMES)
def test_plans_fit(kind, item, wide, length):
    """Shared memory and registers of the splits of long rows, factors of both widths."""
    factors = wide * {kernel.RMS_NORM: 1, kernel.LAYER_NORM: 2}.get(kind, 0)
    chosen = config.choose(kind, length, item, factors, copied=True, kept=True)
    assert chosen.CLUSTER * chosen.BN == length and chosen.STAGES >= 1
    held = chosen.STAGES * chosen.REPLICAS * item + factors * chosen.RESIDENT
    assert held * chosen.BN <= config.SHARED
    assert chosen.BN <= config.MOST_ELEMENTS
    assert chosen.BN <= 64 * 32 * chosen.WARPS


def test_a_split_keeps_its_parts_where_the_copy_engine_cannot_help():
    """So the bits of a result do not depend on addresses."""
    chosen = config.Config(4, 64, 3, True, 4, 2, True)
    assert config.fitted(chosen, 256, 2, 2, copied=True, kept=True, written=True) == chosen
    plain = config.fitted(chosen, 256, 2, 2, copied=False, kept=True, written=True)
    assert plain == config.Config(4, 64, 0, False, 4, 2)
    assert not config.fitted(chosen, 256, 2, 2, copied=True, kept=True, written=False).WRITTEN
    wide = config.fitted(chosen, 256, 2, config.SHARED, copied=True, kept=True, written=True)
    assert wide.WRITTEN and not wide.RESIDENT


def test_refused(randn):
    x, weight = np.zeros((1, 262_145), np.float16), np.zeros(262_145, np.float16)
    with pytest.raises(ShapeError, match="rows of 262,145 elements"):
        rows.rms_norm(x, weight, np.empty_like(x), EPS)
    with pytest.raises(wl.LaunchError, match="H007"):
        rows.softmax(x[:, :64], x[:, :64])
    with pytest.raises(ShapeError, match="`target` is i64"):
        rows.cross_entropy(x[:, :64], np.zeros(1, np.int64), np.zeros(1, np.float32))
