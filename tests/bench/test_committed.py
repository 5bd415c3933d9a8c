"""Every committed result file is whole, in its place, and made by the code that it names."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from warploom.bench import machine, record, report, suites
from warploom.testing import selftest

ROOT = Path(__file__).parents[2]
FOUND = sorted((ROOT / "benchmarks" / "results").glob("*/*.json"))
FILES = [path for path in FOUND if path.name != "selftest.json"]
# Rows that a suite was given after its committed file was made: the next measurement has them.
LATER = {"h200-decode-small": ["smollm2-135m/token-kernel"]}


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def source_of(commit: str, folder: Path) -> str | None:
    """The hash of the package as a commit has it; None where this checkout lacks the commit."""
    command = ["git", "-C", str(ROOT), "archive", commit, "warploom"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return machine.source_hash(folder / "warploom")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_result_file_is_valid_and_in_its_place(path: Path, tmp_path: Path) -> None:
    made = record.read(path)
    assert made["machine"] == path.parent.name
    assert made["suite"] == path.stem
    assert made["suite"] in suites.NAMES
    assert made["commit"] is not None, "measured outside a checkout without --commit"
    # Git's word about the checkout that was measured; where it had none of its own, the hash says.
    clean = not made["dirty"] or source_of(made["commit"], tmp_path) == made["source"]
    assert clean, "measured on code that was not committed"
    known = suites.load(made["suite"]).cases(made["device"])
    later = LATER.get(name_of(path), [])
    assert [row["case"] for row in made["rows"]] == [case for case in known if case not in later]
    assert set(later) <= set(known)


@pytest.mark.parametrize("path", [p for p in FOUND if p not in FILES], ids=name_of)
def test_a_file_of_selftest_says_what_was_reached(path: Path) -> None:
    made = json.loads(path.read_text(encoding="utf-8"))
    assert (made["schema"], made["suite"]) == (1, "selftest")
    assert made["machine"] == path.parent.name and made["seconds"] > 0
    assert made["commit"] is not None and not made["dirty"]
    counts = {name: made[name] for name in selftest.PARTS}
    assert not selftest.shortcomings(counts)


@pytest.mark.parametrize("path", FOUND, ids=name_of)
def test_the_source_hash_is_that_of_the_commit(path: Path, tmp_path: Path) -> None:
    made = json.loads(path.read_text(encoding="utf-8"))
    source = source_of(made["commit"], tmp_path)
    if source is None:
        pytest.skip(f"this checkout does not hold commit {made['commit'][:12]}")
    assert source == made["source"]


def test_the_table_quotes_each_row(tmp_path: Path) -> None:
    rows = [
        record.Row("won", "ms", "lower", 1.5, (1.4, 1.6), {"torch": 3.0}, rounds=3, of_limit=0.5),
        record.Row("lost", "ms", "lower", 3.0, (3.0, 3.0), {"torch": 1.5}, rounds=3),
        record.Row("alone", "s", "lower", 0.0421, (0.04, 0.05), rounds=3),
        record.Row("broken", "", "lower", status="hung", note="no answer"),
    ]
    for row in rows:
        row.settle()
    shown = [row.to_json() for row in rows]
    geomean, worst = record.ratios(shown)
    path = tmp_path / "decode-small.json"
    record.write(
        path,
        {
            **{"schema": 1, "suite": "decode-small", "machine": "h200", "device": "NVIDIA H200"},
            **{"driver": "580", "cpu": "x", "cores": 16, "versions": {}, "commit": "a" * 40},
            **{"dirty": False, "source": "b" * 64, "command": "", "seed": 0, "limits": {}},
            **{"started": "2026-11-30T10:00:00Z", "seconds": 1.5, "ok": 3, "failed": 1},
            **{"geomean_ratio": geomean, "worst_ratio": worst, "rows": shown},
        },
    )
    table = report.figures_table([path])
    assert "| decode-small / won | h200 | 1.50 ms | torch 3.00 | 2.00 | 50% |" in table
    assert "| decode-small / lost | h200 | 3.00 ms | torch 1.50 | 0.50 |  |" in table
    assert "| decode-small / alone | h200 | 0.0421 s |  |  |  |" in table
    assert "| decode-small / broken | h200 | hung | | | |" in table
    assert "nothing is claimed" in report.figures_table([])
