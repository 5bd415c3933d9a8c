"""Bars: each kind is met and missed, and nothing passes by being absent."""

from pathlib import Path
from typing import Any

import pytest

from warploom.bench import bars, suites

RECORD: dict[str, Any] = {
    "suite": "gemm",
    "machine": "h200",
    "geomean_ratio": {"cublas": 1.02},
    "worst_ratio": {"cublas": 0.94},
    "rows": [
        {"case": "bf16/a", "status": "ok", "note": "", "ours": 700.0, "rss_mb": 100},
        {"case": "bf16/b", "status": "ok", "note": "", "ours": 650.0, "rss_mb": 200},
    ],
}


def missed(table: dict[str, Any], record: dict[str, Any] = RECORD) -> list[str]:
    return [v.bar for v in bars.judge(record, {"gemm": table}) if not v.good]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"machine": "h200"}, []),
        ({"machine": "cpu2"}, ["measured on cpu2"]),
        ({"cases": ["bf16/a", "bf16/b"]}, []),
        ({"cases": ["bf16/c"]}, ["bf16/c is measured"]),
        ({"geomean_ratio": {"cublas": 1.0}}, []),
        ({"geomean_ratio": {"cublas": 1.03}}, ["geomean_ratio to cublas >= 1.03"]),
        ({"worst_ratio": {"triton": 0.1}}, ["worst_ratio to triton >= 0.1"]),
        ({"rows": {"bf16/a": {"min_ours": 700}}}, []),
        ({"rows": {"bf16/*": {"min_ours": 660}}}, ["bf16/b ours >= 660"]),
        ({"rows": {"*": {"max_rss_mb": 150}}}, ["bf16/b rss_mb <= 150"]),
        ({"rows": {"bf16/a": {"min_error": 0}}}, ["bf16/a error >= 0"]),
        ({"rows": {"f16/*": {"min_ours": 1}}}, ["f16/* is measured"]),
    ],
)
def test_each_bar_is_met_and_missed(table: dict[str, Any], expected: list[str]) -> None:
    assert missed(table) == expected


def test_a_failed_row_is_a_miss_even_where_no_bar_names_it() -> None:
    row = {"case": "bf16/c", "status": "hung", "note": "no answer", "ours": None}
    assert missed({"machine": "h200"}, {**RECORD, "rows": [row]}) == ["bf16/c is ok"]


def test_a_suite_without_bars_and_no_verdict_at_all_are_misses() -> None:
    assert bars.missed(bars.judge(RECORD, {}))
    assert bars.missed([])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[gemm]\nmachina = 'h200'", "no bar called machina"),
        ("[gemm.rows.a]\nours = 3", "no min_ or max_"),
    ],
)
def test_a_misspelt_bar_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bars.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        bars.load(path)


def test_the_projects_bars_are_of_known_suites() -> None:
    project = bars.load(Path(__file__).parents[2] / "benchmarks" / "bars.toml")
    assert set(project) <= set(suites.NAMES)
    assert project["sim"]["rows"]["smollm2-135m/token"]["max_ours"] == 3.0
    assert project["compile"]["rows"]["warm/*"]["max_ours"] == 0.050
