"""What suites offer without measuring: names of rows, and the kernel that measures reading."""

from types import SimpleNamespace

import numpy as np
import pytest

from warploom.bench import machine, suites
from warploom.bench.case import Context
from warploom.bench.kernel import read_all, stamp, stream_rows
from warploom.bench.record import Row
from warploom.bench.suites import collectives, exchange, gemm, norm


@pytest.mark.parametrize("name", suites.NAMES)
def test_a_suite_names_its_rows_and_where_it_runs(name: str) -> None:
    suite = suites.load(name)
    cases = suite.cases(suite.DEVICE)
    assert cases
    assert len(set(cases)) == len(cases)
    assert suite.DEVICE in ("sim", "gpu")
    assert suite.LIMIT_S > 0


@pytest.mark.parametrize("count", [1, 100, 1024, 5000])
def test_the_read_kernel_reads_everything_once(count: int) -> None:
    x = np.arange(count, dtype=np.float32) % 7
    sums = np.full(4, np.nan, np.float32)
    read_all[4](x, sums, TILE=256)
    assert sums.sum() == x.sum()


def test_the_read_kernels_example_is_clean() -> None:
    assert read_all.example_call().check().clean


@pytest.mark.parametrize("blocks", [1, 3, 40])
def test_the_streaming_kernel_brings_every_piece(device, blocks: int) -> None:
    x, y, z = (np.ones((rows, 256), np.float16) for rows in (5, 3, 1))
    sums = device.empty((blocks,), np.float32)
    given = [device.put(a) for a in (x, y, z)]
    call = stream_rows.launch(blocks).call(*given, sums, N=128, STAGES=4)
    call.run()
    assert device.get(sums).sum() == 8 * 2 * 9


def test_a_stamp_is_the_time_in_cycles_and_nanoseconds(device) -> None:
    stamps = [device.empty((2,), np.int64) for _ in range(2)]
    for at in stamps:
        stamp.launch(1).call(at).run()
    first, second = map(device.get, stamps)
    # The simulator counts each launch's operations.
    assert (first > 0).all() and (second >= first).all()


def graph_of(seconds: float) -> SimpleNamespace:
    return SimpleNamespace(clocked=lambda: seconds, clocks=[1600.4, 1700.2, 1900.0])


@pytest.mark.parametrize(("name", "of_limit"), [("h200", 0.1011), ("abacus", None)])
def test_products_are_judged_by_the_limit_of_their_machine(
    monkeypatch: pytest.MonkeyPatch, name: str, of_limit: float | None
) -> None:
    monkeypatch.setattr(machine, "name", lambda: name)
    row, context = Row("bf16", "TFLOP/s", "higher", limit="bf16", rounds=3), Context("gpu", 0)
    sides, rests = {"ours": graph_of(2e-2), "cublas": graph_of(1e-2)}, list[float]()
    monkeypatch.setattr(gemm.time, "sleep", rests.append)
    gemm.time_in_turn(row, sides, (10_000, 10_000, 10_000), context)
    assert rests == [gemm.REST_S, *[gemm.ROUND_REST_S] * 3]
    assert (row.ours, row.rivals, row.clock_mhz) == (100.0, {"cublas": 200.0}, 1700)
    assert row.extra["clocks_mhz"] == {"ours": 1700, "cublas": 1700}
    assert row.of_limit == of_limit
    assert context.limits == (
        {} if of_limit is None else {"bf16": {"value": 989, "unit": "TFLOP/s"}}
    )


@pytest.mark.parametrize(("ours", "status"), [(0.0105, "ok"), (0.02, "wrong"), (np.nan, "wrong")])
def test_a_product_is_right_if_it_is_as_near_as_the_rivals(ours: float, status: str) -> None:
    row, held = Row("bf16", "TFLOP/s", "higher"), SimpleNamespace(ours=ours, theirs=0.01)
    errors = SimpleNamespace(error=lambda made, held: made)
    assert gemm.is_right(row, "bf16", held, errors) == (status == "ok")
    assert row.status == status and row.rival_error == 0.01


def test_cases_of_norms_name_function_and_shape() -> None:
    assert norm.parse("4096x65536") == ("rms_norm", 4096, 65_536)
    assert norm.parse("layer_norm/6x16384") == ("layer_norm", 6, 16_384)
    assert "4096x65536" in norm.cases("gpu")


@pytest.mark.parametrize("case", norm.SIMULATED)
def test_norms_on_the_simulator(case: str) -> None:
    """The small rows of the suite run where there is no GPU, and are right."""
    row = norm.measure(case, Context("sim", 0))
    assert row.status == "ok", row.note
    assert row.config["CLUSTER"] > 1 or "layer" not in case
    assert row.ours and row.rivals["numpy"]


def test_norms_are_compared_with_a_copy_and_with_who_computes() -> None:
    row = Row("4096x65536", "TB/s", "higher")
    sides = {"ours": [1.0], "copy": [0.9], "torch": [2.0], "triton": [1.25]}
    norm.enter(row, sides, 4 * 10**12)
    assert row.rivals == {
        "copy": pytest.approx(4 / 0.9),
        "torch": 2.0,
        "triton": pytest.approx(3.2),
    }
    assert (row.extra["of_copy"], row.extra["of_computed"]) == (0.9, 1.25)


@pytest.mark.parametrize(("ours", "good"), [(0.002, True), (0.004, False), (np.nan, False)])
def test_norms_are_right_if_they_are_as_near_as_a_rival(ours: float, good: bool) -> None:
    row = Row("4096x65536", "TB/s", "higher")
    assert norm.judged(row, ours, {"torch": 0.002, "torch_compile": 0.0019}) == good
    assert (row.status == "ok") == good and row.rival_error == 0.0019


@pytest.mark.parametrize("suite", [collectives, exchange], ids=["collectives", "exchange"])
def test_collectives_are_right_on_the_simulator(suite) -> None:
    for case in suite.cases("sim"):
        row = suite.measure(case, Context("sim", 3))
        row.settle()
        assert row.status == "ok", row.note
        assert row.ours is not None and row.ours > 0


def test_every_all_reduce_has_a_recorded_rival() -> None:
    known = machine.facts("h200")["rivals"]["collectives"]
    assert set(known) == set(collectives.cases("gpu"))


@pytest.mark.parametrize("cluster", collectives.CLUSTERS)
def test_all_sms_are_whole_clusters(cluster: int) -> None:
    sms = machine.facts("h200")["sms_used_by_cluster_size"][str(cluster)]
    blocks = collectives.whole_clusters(sms, cluster)
    assert blocks % cluster == 0
    assert sms - cluster < blocks <= sms


def test_a_vector_that_differs_somewhere_is_wrong() -> None:
    x = np.arange(8, dtype=np.float32)
    row, out = Row("8/idle", "us", "lower"), np.stack([np.roll(x, -2) + 1] * 4)
    assert exchange._is_right(row, out, x, 2, 2)
    out[3, 7] += 1
    assert not exchange._is_right(row, out, x, 2, 2)
    assert row.status == "wrong"
