"""Which protocol a collective takes: a table by scope, number of parties and bytes of one party's
share. Knows no protocol."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).parent / "protocols" / "h200.json"


def protocol(over: str, size: int, parties: int = 0) -> str:
    """That of the smallest row whose `bytes` are not below the size, among those of the fewest
    `parties` that are not below the number; else the default. 0: not known, or of no matter."""
    held = _table()
    rows = [row["key"] | {"config": row["config"]} for row in held["rows"]]
    rows = [row for row in rows if row["over"] == over and row.get("parties", 0) >= parties]
    fewest = min((row.get("parties", 0) for row in rows), default=0)
    fits = [row for row in rows if row.get("parties", 0) == fewest and size <= row["bytes"]]
    found = min(fits, key=lambda row: row["bytes"], default=None)
    return found["config"] if found is not None else held["default"][over]


@cache
def _table() -> dict[str, Any]:
    return json.loads(_TABLE.read_text(encoding="utf-8"))
