"""`--json FILE`: one object to a file, or to stdout for `-`."""

import json
import sys
from pathlib import Path
from typing import Any

HELP = "write one JSON object to FILE (- is stdout)"


def write(target: str, data: dict[str, Any]) -> None:
    """Write the object."""
    text = json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        Path(target).write_text(text, encoding="utf-8")
