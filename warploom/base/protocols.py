"""Which protocol a collective takes: a table by scope and bytes of one party's share. Knows no
protocol."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).parent / "protocols" / "h200.json"


def protocol(over: str, size: int) -> str:
    """That of the smallest row whose `bytes` are not below the size, else the default."""
    held = _table()
    rows = [row for row in held["rows"] if row["key"]["over"] == over]
    fits = [row for row in rows if size <= row["key"]["bytes"]]
    found = min(fits, key=lambda row: row["key"]["bytes"], default=None)
    return found["config"] if found is not None else held["default"][over]


@cache
def _table() -> dict[str, Any]:
    return json.loads(_TABLE.read_text(encoding="utf-8"))
