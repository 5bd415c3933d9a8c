"""Matrix products against float64: layouts, ragged shapes, trip counts, what is refused."""

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from warploom.base.errors import CompileError, ShapeError
from warploom.kernels import gemm
from warploom.kernels.activation.kernel import silu
from warploom.kernels.gemm import config, kernel, operands, reference

TINY = 2.0**-24
BF16 = ml_dtypes.bfloat16
LAYOUTS = ("nt", "nn", "tn", "tt")
SMALL = config.Config(BM=64, BN=64, EN=64, STAGES=2, MATH=1)


def bound(a, b, extra=0.0):
    """What the roundings of partial sums of a product may cost, and those of a bias."""
    terms = 4.0 + np.sqrt(a.shape[1])
    return terms * TINY * reference.error_scale(a, b) + 4 * TINY * np.abs(extra)


def integers(shape, dtype, seed=0):
    """Small whole numbers: every sum of products is exact in f32."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def laid(device, array, turned):
    """The matrix on the device; `turned`: contiguous along its first axis."""
    return device.put_strided(array.T.copy().T) if turned else device.put(array)


def run(device, a, b, layout="nn", dtype=np.float32, chosen=None, bias=None, activation=None):
    out = device.empty((a.shape[0], b.shape[1]), dtype)
    left, right = laid(device, a, layout[0] == "t"), laid(device, b, layout[1] == "t")
    extra = None if bias is None else device.put(bias)
    gemm.matmul(left, right, out, extra, activation, config=chosen)
    return device.get(out)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_layouts(device, randn, close, layout, dtype):
    a, b = randn((200, 136), dtype), randn((136, 264), dtype)
    close(run(device, a, b, layout), reference.matmul(a, b), bound(a, b))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (64, 64, 64), (65, 8, 72), (7, 200, 8), (130, 72, 200)]
)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("out", ["bf16", "f16", "f32"])
def test_shapes(device, randn, close, m, n, k, dtype, out):
    a, b = randn((m, k), dtype), randn((k, n), dtype)
    made = run(device, a, b, "nn", {"f32": np.float32}.get(out) or randn(1, out).dtype)
    close(made, reference.matmul(a, b), bound(a, b))


@pytest.mark.parametrize("rows", [64, 128, 256])
@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiles(device, layout, rows, columns):
    """Every element of every tile comes from its own row and column, in one tile or several."""
    if rows * columns > 128 * 256:
        columns = 192 // 3
    chosen = config.fitted(rows, columns, 1 if rows == 64 else 2, 4)
    a, b = integers((rows + 8, 80), np.float16), integers((80, columns + 8), np.float16, 1)
    made = run(device, a, b, layout, chosen=chosen)
    assert np.array_equal(made, reference.matmul(a, b))


@pytest.mark.case("C01")
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("blocks", [1, 2])
def test_trip_counts(device, stages, blocks):
    """Loops of 0, 1, S−1, S, S+1, 2S and 2S+1 steps, over one to three tiles of a block."""
    steps = sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages, 2 * stages + 1})
    for count in steps:
        a = integers((192, 16 * count), np.float16, count)
        b = integers((16 * count, 64), np.float16, stages)
        out = device.empty((192, 64), np.float32)
        constants = {"BM": 64, "BN": 64, "BK": 16, "EN": 32, "MATH": 1, "B_T": False}
        kernel.gemm[blocks](device.put(a), device.put(b), out, STAGES=stages, **constants)
        assert np.array_equal(device.get(out), reference.matmul(a, b)), count


@pytest.mark.case("C01")
@pytest.mark.parametrize(("stages", "math"), [(1, 2), (2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_trip_counts_of_replicas_that_alternate(device, stages, math, blocks):
    """The same where each replica does whole tiles in turn, an odd number of them in all."""
    for count in sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages + 1}):
        a = integers((320, 16 * count), np.float16, count)
        b = integers((16 * count, 64), np.float16, stages)
        out = device.empty((320, 64), np.float32)
        constants = {"BM": 64, "BN": 64, "BK": 16, "EN": 32, "B_T": False, "PINGPONG": True}
        kernel.gemm[blocks](
            device.put(a), device.put(b), out, STAGES=stages, MATH=math, **constants
        )
        assert np.array_equal(device.get(out), reference.matmul(a, b)), count


@pytest.mark.parametrize(("stages", "math"), [(1, 2), (2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_trip_counts_of_replicas_that_write_in_turn(device, stages, math, blocks):
    """The same where the replicas of a tile write their rows one after the other."""
    for count in sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages + 1}):
        a = integers((5 * 64 * math, 16 * count), np.float16, count)
        b = integers((16 * count, 64), np.float16, stages)
        out = device.empty((5 * 64 * math, 64), np.float32)
        constants = {"BM": 64 * math, "BN": 64, "BK": 16, "EN": 32, "STAGGER": True}
        kernel.gemm[blocks](
            device.put(a), device.put(b), out, STAGES=stages, MATH=math, **constants
        )
        assert np.array_equal(device.get(out), reference.matmul(a, b)), count


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direct", [False, True])
def test_alternating_tiles(device, layout, direct):
    """Every element is where it belongs when replicas do whole tiles."""
    chosen = next(c for c in config.alternating(shape(1, 1, 1, False, 4)) if c.BN == 128)
    a, b = integers((200, 80), np.float16), integers((80, 260 - 2 * direct), np.float16, 1)
    assert np.array_equal(run(device, a, b, layout, chosen=chosen), reference.matmul(a, b))


@pytest.mark.case("C03")
@pytest.mark.parametrize("math", [1, 2])
def test_two_consumers_hand_every_slot_back(device, math):
    """One ring that one or two replicas read: the counts of arrivals follow from the roles."""
    a, b = integers((64 * math, 320), np.float16), integers((320, 64), np.float16, 1)
    chosen = config.Config(BM=64 * math, BN=64, EN=32, STAGES=3, MATH=math)
    assert np.array_equal(run(device, a, b, chosen=chosen), reference.matmul(a, b))


@pytest.mark.parametrize("k", [0, 8])
def test_nothing_to_add_up(device, randn, k):
    bias = randn(72)
    a, b = np.zeros((65, k), np.float16), np.zeros((k, 72), np.float16)
    assert np.array_equal(run(device, a, b), np.zeros((65, 72)))
    assert np.array_equal(run(device, a, b, bias=bias), np.broadcast_to(bias, (65, 72)))


@pytest.mark.parametrize(("m", "n"), [(0, 64), (64, 0), (0, 0)])
def test_nothing_to_write(device, m, n):
    a, b = np.zeros((m, 64), np.float16), np.zeros((64, n), np.float16)
    assert run(device, a, b).shape == (m, n)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_bias_and_activation(device, randn, close, dtype):
    a, b, bias = randn((70, 64), "bf16"), randn((64, 136), "bf16"), randn(136, dtype)
    made = run(device, a, b, bias=bias, activation=silu)
    plain = reference.matmul(a, b, bias)
    close(made, plain / (1 + np.exp(-plain)), 2 * bound(a, b, 8.0) + 1e-6)


@pytest.mark.case("C14")
@pytest.mark.parametrize("step", [16, 32, 48, 64, 128])
def test_one_hot_columns_are_exact(device, step):
    """A dropped or doubled column of a step shows at once."""
    b = np.arange(3 * step * 64).reshape(3 * step, 64) % 512
    b = b.astype(np.float16)
    constants = {"BM": 64, "BN": 64, "BK": step, "EN": 32, "STAGES": 2, "MATH": 1, "B_T": False}
    held = np.zeros((64, 3 * step), np.float16)
    held[np.arange(64), np.linspace(0, 3 * step - 1, 64).astype(int)] = 1.0
    out = device.empty((64, 64), np.float32)
    kernel.gemm[1](device.put(held), device.put(b), out, **constants)
    assert np.array_equal(device.get(out), reference.matmul(held, b))


@pytest.mark.case("C14")
@pytest.mark.parametrize(("step", "near"), [(8, 16), (24, 16), (40, 32), (56, 48)])
def test_a_step_that_the_unit_cannot_do(step, near):
    a, b = np.zeros((64, 3 * step), np.float16), np.zeros((3 * step, 64), np.float16)
    out = np.empty((64, 64), np.float32)
    with pytest.raises(CompileError, match=f"K = {step}") as refused:
        kernel.gemm[1](a, b, out, BM=64, BN=64, BK=step, EN=32, STAGES=2, MATH=1, B_T=False)
    assert "multiple of 16" in str(refused.value) and str(near) in str(refused.value)


@pytest.mark.case("C16")
@pytest.mark.parametrize("k", [8, 24, 72, 104])
def test_nan_beyond_the_rows(device, randn, k):
    """NaN behind each row, and behind the last row, reaches no sum."""
    wide_a = np.full((72, k + 8), np.nan, np.float16)
    wide_b = np.full((k + 8, 72), np.nan, np.float16)
    wide_a[:65, :k], wide_b[:k, :64] = randn((65, k), "f16"), randn((k, 64), "f16")
    out = device.empty((65, 64), np.float32)
    left, right = device.put_strided(wide_a[:65, :k]), device.put_strided(wide_b[:k, :64])
    gemm.matmul(left, right, out)
    assert np.isfinite(device.get(out)).all()


@pytest.mark.case("C18")
@pytest.mark.parametrize("k", [511, 512, 515, 520])
def test_a_stride_that_the_copy_engine_cannot_take(device, randn, close, capsys, monkeypatch, k):
    monkeypatch.setattr(operands, "_told", [])
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)
    a, b = randn((9, k), "bf16"), randn((k, 16), "bf16")
    for _ in range(2):
        close(run(device, a, b), reference.matmul(a, b), bound(a, b))
    said = [line for line in capsys.readouterr().err.splitlines() if "matmul" in line]
    if k % 8 == 0:
        assert not said
    else:
        longer = -(-k // 8) * 8
        assert len(said) == 1 and f"`a` has a stride of {2 * k} bytes along axis 0" in said[0]
        assert f"a stride of {longer} elements" in said[0]


@pytest.mark.case("C18")
def test_an_output_that_the_copy_engine_cannot_take(device, randn, close):
    """Such an output is written from registers, without a word."""
    a, b = randn((70, 64), "bf16"), randn((64, 60), "bf16")
    wide = np.zeros((64, 64), a.dtype)
    wide[:, :60] = b
    right = device.put_strided(wide[:, :60])
    out = device.empty((70, 60), a.dtype)
    gemm.matmul(device.put(a), right, out)
    close(device.get(out), reference.matmul(a, b), bound(a, b))


@pytest.mark.case("C19")
@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
@pytest.mark.parametrize("k", [60, 63])
def test_views(device, randn, seen_as, close, how, k):
    a, b = randn((40, k), "f16"), randn((k, 48), "f16")
    out = device.put_strided(seen_as(np.zeros((40, 48), np.float32), how))
    left, right = device.put_strided(seen_as(a, how)), device.put_strided(seen_as(b, how))
    gemm.matmul(left, right, out)
    close(device.get(out), reference.matmul(a, b), bound(a, b))


def test_tiles_do_not_change_bits(randn):
    a, b = randn((150, 328), "bf16"), randn((328, 136), "bf16")
    made = [
        run_on_simulator(a, b, config.fitted(rows, columns, math, 4))
        for rows, columns, math in (
            *((64, 64, 1), (128, 64, 2), (128, 256, 2), (256, 128, 2), (192, 112, 3)),
        )
    ]
    assert all(np.array_equal(made[0], other) for other in made[1:])


def run_on_simulator(a, b, chosen):
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    gemm.matmul(a, b, out, config=chosen)
    return out


def shape(m, n, k, b_t=True, width=2):
    return config.Shape(m, n, k, False, b_t, width, 132)


@pytest.mark.parametrize("m", [2, 16, 17, 64])
def test_swapped_operands(device, m):
    """A few rows of a fill the columns of the matrix unit."""
    a, b = integers((m, 136), BF16), integers((136, 200), BF16)
    chosen = replace(config.fitted(128, 64, 2, 4), SWAP=True)
    assert np.array_equal(run(device, a, b, "nt", chosen=chosen), reference.matmul(a, b))


@pytest.mark.parametrize("b_t", [False, True])
@pytest.mark.parametrize("width", [2, 4])
def test_every_candidate_fits(b_t, width):
    few = shape(1, 1, 1, b_t, width)
    for chosen in (*config.candidates(few), *config.swapped(few), *config.alternating(few)):
        stage = (chosen.BM + chosen.BN) * chosen.BK * 2
        slices = chosen.SLOTS * chosen.BM * chosen.EN * width
        slices *= chosen.MATH if chosen.PINGPONG else 1
        assert stage * chosen.STAGES + slices <= 227 * 1024
        assert chosen.STAGES >= 2 and chosen.BN % chosen.EN == 0
        # The sums of a replica and what else it holds fit 232 registers.
        rows = chosen.BM if chosen.PINGPONG else chosen.BM // chosen.MATH
        assert rows * chosen.BN // 128 <= 128


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("promote", [0, 128, 1024])
def test_every_candidate_of_8_bits_fits(width, promote):
    few = config.Shape(1, 1, 1, False, True, width, 132, in_bytes=1, promote=promote)
    found = list(config.candidates(few))
    for chosen in found:
        stage, slices = (chosen.BM + chosen.BN) * 128, chosen.SLOTS * chosen.BM * chosen.EN * width
        assert chosen.BK == 128 and stage * chosen.STAGES + slices <= 227 * 1024
        assert chosen.STAGES >= 2 and chosen.BN % chosen.EN == 0
        sums = chosen.BM // chosen.MATH * chosen.BN // 128
        assert sums * (2 if promote else 1) <= 192
    # A result of 16 bits that leaves room for four steps is written at once.
    whole = [c for c in found if (c.EN, c.SLOTS) == (c.BN, 1)]
    assert any((c.BM, c.BN) == (128, 192) for c in whole) == (width == 2)


def test_the_choice_fills_the_machine():
    """One round of tiles where the shape allows it, and whole tiles for large products."""
    for n in (14080, 28160):
        few = config.choose(shape(16, n, 4096))
        assert 120 <= few.tiles(16, n) <= 132
    large = config.choose(shape(8192, 8192, 8128))
    assert large.BM * large.BN == 128 * 256


def test_a_measured_tile_wins(tmp_path, monkeypatch):
    """The table of the machine with as many SMs decides for the keys that it has."""
    best = replace(config.fitted(64, 64, 1, 2), CLUSTER=(2, 1))
    row = {"key": "nt/2/512x512x512", "config": best.row()}
    (tmp_path / "other.json").write_text(json.dumps({"sms": 78, "rows": []}))
    (tmp_path / "this.json").write_text(json.dumps({"sms": 132, "rows": [row]}))
    monkeypatch.setattr(config, "_TABLES", tmp_path)
    config.choose.cache_clear()
    config.measured.cache_clear()
    assert config.choose(shape(512, 512, 512)) == best
    assert config.choose(shape(512, 512, 576)) != best
    config.choose.cache_clear()
    config.measured.cache_clear()


def test_committed_tables_name_tiles_that_fit():
    for sms in (132,):
        for key, chosen in config.measured(sms).items():
            *eight_bits, layout, width, _ = key.split("/")
            stage = (chosen.BM + chosen.BN) * chosen.BK * (1 if eight_bits else 2)
            slices = chosen.SLOTS * chosen.BM * chosen.EN * int(width)
            slices *= chosen.MATH if chosen.PINGPONG else 1
            assert stage * chosen.STAGES + slices <= 227 * 1024
            assert layout in LAYOUTS and chosen.BN % chosen.EN == 0
            narrow = chosen.sliced()
            assert narrow.SLOTS * narrow.EN <= max(chosen.EN, 2 * 64)
            assert narrow.EN <= 64 and chosen.BN % narrow.EN == 0


@pytest.mark.parametrize(
    ("more", "slots"),
    [({}, 1), ({"alpha": 0.5}, 1), ({"activation": "silu"}, 2), ({"bias": True}, 2)],
)
def test_what_reads_more_is_written_in_slices(device, monkeypatch, more, slots):
    """A result that is written at once leaves no registers for what an epilogue reads."""
    whole = config.Config(BM=64, BN=128, EN=128, SLOTS=1, STAGES=2, MATH=1)
    monkeypatch.setattr(gemm, "choose", lambda *_: whole)
    used = []
    fast = gemm._fast
    monkeypatch.setattr(gemm, "_fast", lambda *given: (used.append(given[2]), fast(*given)))
    a, b = integers((64, 64), np.float16), integers((64, 128), np.float16, 1)
    if "bias" in more:
        more = {"bias": device.put(np.zeros(128, np.float32))}
    made = gemm.matmul(device.put(a), device.put(b), **more, dtype=np.float32)
    assert [chosen.SLOTS for chosen in used] == [slots]
    if "bias" in more:
        assert np.array_equal(device.get(made), reference.matmul(a, b))


def test_wrong_arguments(randn):
    a, b, out = randn((16, 8), "f16"), randn((8, 24), "f16"), np.empty((16, 24), np.float32)
    with pytest.raises(ShapeError, match="axis 0 of `b` is 7, and K is 8"):
        gemm.matmul(a, b[:7], out)
    with pytest.raises(ShapeError, match="`a` is f32"):
        gemm.matmul(a.astype(np.float32), b, out)
    with pytest.raises(ShapeError, match="`a` is f16 and `b` is bf16"):
        gemm.matmul(a, randn((8, 24), "bf16"), out)
    with pytest.raises(ShapeError, match="`out` overlaps `a`"):
        gemm.matmul(out.view(np.float16)[:, :8], b, out)


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("alternate", [False, True])
def test_clusters_share_operands(device, layout, cluster, alternate):
    """Tiles in pairs, odd numbers of them, past the edges, and steps around the stages."""
    chosen = replace(config.fitted(128, 64, 2, 4), STAGES=3, GROUP=2, CLUSTER=cluster)
    if alternate:
        chosen = replace(chosen, BM=64, EN=32, PINGPONG=True)
    for m, n, k in ((128, 64, 64), (264, 72, 128), (392, 200, 200), (8, 136, 264), (136, 328, 0)):
        a, b = integers((m, k), BF16), integers((k, n), BF16, 1)
        made = run(device, a, b, layout, chosen=chosen)
        assert np.array_equal(made, reference.matmul(a, b)), (m, n, k)


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)])
@pytest.mark.parametrize("tile", [(128, 256), (256, 128)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_clusters_of_wide_tiles(device, layout, tile, cluster):
    """Operands in several panels, more steps than stages, several tiles a block."""
    chosen = replace(config.fitted(*tile, 2, 4), STAGES=3, GROUP=2, CLUSTER=cluster)
    a, b = integers((520, 328), BF16), integers((328, 520), BF16, 1)
    assert np.array_equal(run(device, a, b, layout, chosen=chosen), reference.matmul(a, b))


def test_clusters_of_a_transposed_product(device):
    a, b = integers((16, 200), BF16), integers((200, 328), BF16, 1)
    chosen = replace(config.fitted(64, 16, 1, 4), SWAP=True, CLUSTER=(2, 1))
    assert np.array_equal(run(device, a, b, "nt", chosen=chosen), reference.matmul(a, b))


def test_what_a_cluster_hands_back_needs_no_fence():
    """Items that products have read go back to peers without order: no fence in the loop."""
    text = kernel.gemm.example_call("cluster").text("ptx")
    assert text.count("mbarrier.arrive.shared::cluster.b64") >= 1
    assert "release.cluster.shared::cluster" not in text
    assert "try_wait.parity.acquire.cluster" not in text
    assert text.count("multicast::cluster") == 2  # half of the rows of b, in two panels
