"""The format of result files: what is derived, what is refused, what survives a round trip."""

import copy
from pathlib import Path
from typing import Any

import pytest

from warploom.bench import record, report
from warploom.bench.record import Row


def row(case: str, ours: float, better: str = "higher", **rivals: float) -> dict[str, Any]:
    made = Row(case, "TFLOP/s", better, ours, (ours * 0.9, ours * 1.1), rivals=rivals, rounds=5)
    made.settle()
    return made.to_json()


def file(*rows: dict[str, Any]) -> dict[str, Any]:
    geomean, worst = record.ratios(rows)
    good = sum(r["status"] == "ok" for r in rows)
    return {
        **{"schema": 1, "suite": "gemm", "machine": "h200", "device": "NVIDIA H200"},
        **{"driver": "580.159", "cpu": "x", "cores": 16, "versions": {}, "commit": "a" * 40},
        **{"dirty": False, "source": "b" * 64, "command": "warploom bench gemm"},
        **{"started": "2026-11-30T10:00:00Z", "seconds": 1.5, "seed": 0, "limits": {}},
        **{"geomean_ratio": geomean, "worst_ratio": worst, "ok": good},
        **{"failed": len(rows) - good, "rows": list(rows)},
    }


def test_a_ratio_above_one_means_ours_is_better_whatever_the_unit() -> None:
    assert row("a", 800.0, cublas=400.0, triton=500.0)["ratio"] == 1.6
    assert row("a", 800.0, cublas=400.0, triton=500.0)["fastest"] == "triton"
    slow = row("a", 2.0, "lower", compiled=1.0, plain=4.0)
    assert (slow["fastest"], slow["ratio"]) == ("compiled", 0.5)


def test_means_are_geometric_and_failed_rows_do_not_count() -> None:
    bad = Row("c", "", "lower", status="hung", note="no answer").to_json()
    means, worst = record.ratios([row("a", 2.0, cublas=1.0), row("b", 1.0, cublas=2.0), bad])
    assert means == {"cublas": 1.0, "fastest": 1.0}
    assert worst == {"cublas": 0.5, "fastest": 0.5}


def test_a_good_file_has_no_problem_and_survives_writing(tmp_path: Path) -> None:
    bad = Row("c", "", "lower", status="hung", note="no answer after 9 s").to_json()
    good = file(row("a", 2.0, cublas=1.0), row("b", 1.0), bad)
    assert record.problems(good) == []
    path = tmp_path / "h200" / "gemm.json"
    record.write(path, good)
    assert record.read(path) == good
    record.write(path, file())
    assert record.read(path)["rows"] == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda f: f.pop("cores"), "field `cores` is missing"),
        (lambda f: f.update(schema=9), "schema 9"),
        (lambda f: f.update(commit="main"), "40 hexadecimal digits"),
        (lambda f: f.update(source="x"), "SHA-256"),
        (lambda f: f.update(started="yesterday"), "is not a time in UTC"),
        (lambda f: f.update(ok=7), "do not add up"),
        (lambda f: f["geomean_ratio"].update(cublas=3.0), "do not follow from the rows"),
        (lambda f: f["rows"].append(copy.deepcopy(f["rows"][0])), "stands twice"),
        (lambda f: f["rows"][0].update(ratio=1.5), "should be cublas and 2.0"),
        (lambda f: f["rows"][0].update(status="fine"), "status 'fine'"),
        (lambda f: f["rows"][0].update(status="wrong"), "without a note"),
        (lambda f: f["rows"][0].update(ours=0.0), "ours is 0.0"),
        (lambda f: f["rows"][0].update(spread=[3.0, 4.0]), "does not hold the median"),
        (lambda f: f["rows"][0].pop("error"), "field `error` is missing"),
        (lambda f: f["rows"][0].update(rounds=0), "ok without a round"),
    ],
)
def test_a_touched_file_is_refused(change: Any, complaint: str) -> None:
    touched = file(row("a", 2.0, cublas=1.0))
    change(touched)
    assert any(complaint in problem for problem in record.problems(touched)), record.problems(
        touched
    )


def test_reading_what_is_no_result_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="no JSON"):
        record.read(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="no result file"):
        record.read(path)


def test_a_table_of_steps_has_a_line_a_step_and_a_column_a_shape() -> None:
    rows = [
        row("v0/1x1x1", 10.0, cublas=50.0),
        row("v1/1x1x1", 20.0, cublas=52.0),
        row("v0/2x2x2", 5.5, cublas=40.0),
        Row("v1/2x2x2", "", "lower", status="hung", note="no answer").to_json(),
    ]
    assert report.steps_table(file(*rows)).splitlines() == [
        "| TFLOP/s | 1x1x1 | 2x2x2 |",
        "|---|---|---|",
        "| `v0` | 10.0 | 5.50 |",
        "| `v1` | 20.0 | hung |",
        "| cublas | 51.0 | 40.0 |",
    ]
