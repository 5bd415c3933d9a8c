"""Exchange among lanes: the steps of a butterfly."""

from tests.ops import tile
from tests.ops.trial import NUMBERS, Case

_TILES = {str(case): case for case in tile.CASES}

CASES = [
    Case("lanes.shuffle_xor", dtype, _TILES[f"tile.reduce-{dtype}-max-axis1-5x33"].make)
    for dtype in NUMBERS
]
CASES.append(Case("lanes.shuffle_xor", "bool", _TILES["tile.reduce-bool"].make))
