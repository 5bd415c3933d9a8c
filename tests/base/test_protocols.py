"""The table of protocols: which row counts for a size and a number of parties."""

import pytest

from warploom.base import protocols

ROWS = [
    {"key": {"over": "cluster", "parties": 2, "bytes": 8192}, "config": "push"},
    {"key": {"over": "cluster", "parties": 8, "bytes": 1024}, "config": "push"},
    {"key": {"over": "cluster", "parties": 8, "bytes": 4096}, "config": "staged"},
    {"key": {"over": "grid", "bytes": 64}, "config": "flagged"},
]
TABLE = {"rows": ROWS, "default": {"cluster": "default", "grid": "counter"}}


@pytest.mark.parametrize(
    ("over", "size", "parties", "wanted"),
    [
        ("cluster", 8192, 2, "push"),
        ("cluster", 8193, 2, "default"),
        ("cluster", 1, 1, "push"),
        ("cluster", 1024, 3, "push"),
        ("cluster", 1025, 8, "staged"),
        ("cluster", 4097, 8, "default"),
        ("cluster", 1, 9, "default"),
        ("grid", 64, 0, "flagged"),
        ("grid", 65, 0, "counter"),
    ],
)
def test_rows(monkeypatch, over: str, size: int, parties: int, wanted: str) -> None:
    monkeypatch.setattr(protocols, "_table", lambda: TABLE)
    assert protocols.protocol(over, size, parties) == wanted


def test_the_table_of_the_tree_knows_each_scope() -> None:
    scopes = {"block": {"slots"}, "cluster": {"push", "staged"}}
    scopes |= {over: {"flagged", "counter"} for over in ("grid", "exchange")}
    for over, ways in scopes.items():
        for parties in (0, 1, 2, 3, 4, 8, 16):
            for size in (1, 64, 4096, 65_536):
                assert protocols.protocol(over, size, parties) in ways
