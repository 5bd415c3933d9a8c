"""Register-wise machine operations, as the tile operations of the same dtypes lower to them."""

from tests.ops import arithmetic, tile
from tests.ops.trial import ALL, DATA, FLOATS, NUMBERS, Case

_TILES = {str(case): case for case in [*arithmetic.CASES, *tile.CASES]}


def _as(op: str, dtype: str, name: str) -> Case:
    """The kernel of a tile case as the case of a machine operation."""
    return Case(op, dtype, _TILES[name].make, name)


_PLAIN = {
    "registers.splat": "tile.splat-{}",
    "registers.spread": "tile.splat-{}",
    "registers.view": "tile.insert_axis-{}",
    "registers.select": "tile.select-{}",
    "registers.to_scalar": "tile.to_scalar-{}",
}
CASES = [_as(op, dtype, name.format(dtype)) for op, name in _PLAIN.items() for dtype in DATA]
CASES += [
    _as("registers.cast", dtype, f"tile.cast-{dtype}-from-{'i32' if dtype != 'i32' else 'f32'}")
    for dtype in DATA
]
CASES += [_as("registers.compare", dtype, f"tile.compare-{dtype}-eq") for dtype in ALL]
CASES += [_as("registers.unary", dtype, f"tile.unary-{dtype}-neg") for dtype in NUMBERS]
CASES += [_as("registers.binary", dtype, f"tile.binary-{dtype}-add") for dtype in NUMBERS]
CASES += [_as("registers.binary", "bool", "tile.binary-bool-and")]
CASES += [_as("registers.fma", "f32", "tile.fma-f32")]
CASES += [
    _as("registers.fold", dtype, f"tile.reduce-{dtype}-{kind}-axis0-17x20")
    for dtype in NUMBERS
    for kind in ("add", "max", "min")
]
CASES += [_as("registers.fold", "bool", "tile.reduce-bool")]
CASES += [
    _as("registers.arg_fold", dtype, f"tile.arg_reduce-{dtype}-{kind}-axis1-2x1000")
    for dtype in (*FLOATS, "i32")
    for kind in ("max", "min")
]
CASES += [_as("registers.map", "f32", "tile.arg_reduce-f32-max-axis1-2x1000")]
