"""Which tile a matrix product uses: what a measurement found for its key, else the one whose rounds
over all SMs are estimated to end first. No measurement at run time, no device.

`configs/<machine>.json` holds what was measured (`python -m warploom.bench.sweep_gemm`). Results do
not depend on the tile: every element is summed in the order of k, 16 at a time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from warploom.base.errors import error
from warploom.kernels.arguments import require

# Bytes of a block's shared memory, less what barriers and alignment take.
SHARED = 227 * 1024 - 2048
BK = 64
MOST_STAGES = 10
MOST_PIECES = 16  # of a tile along K
# What one SM does in a cycle, in bytes: all of it from L2, and from memory when every SM reads.
FROM_L2, FROM_MEMORY = 40.0, 20.0
# Cycles before the first product of a launch, and after the last one of a tile besides the stores.
START, FINISH = 1500.0, 500.0
SHORT = 60_000.0  # cycles of a launch whose beginning is worth hiding
JOIN = 2000.0  # until the last block of a tile knows that it is the last
STORED = 16.0  # elements of a finished tile a cycle


KEY = "layout of a and b (t: contiguous along its first axis), bytes of c, (batch)xMxNxK"
_TABLES = Path(__file__).parent / "configs"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a choice depends on: sizes, which operands are contiguous along their first axis, bytes
    of an element of the result, SMs, products in a batch, bytes of an element of the operands,
    how many products the matrix unit adds up before registers do (0: all)."""

    m: int
    n: int
    k: int
    a_t: bool
    b_t: bool
    out_bytes: int
    sms: int
    batch: int = 1
    in_bytes: int = 2
    promote: int = 0

    @property
    def depth(self) -> int:
        """Columns of K in a step: 128 bytes."""
        return BK * 2 // self.in_bytes

    def key(self) -> str:
        """The name of a row of the table; f8+P/ before 8-bit operands whose sums
        of P products are added up in registers."""
        layout = "".join("t" if turned else "n" for turned in (self.a_t, self.b_t))
        batch = f"{self.batch}x" if self.batch > 1 else ""
        kind = "" if self.in_bytes == 2 else f"f8+{self.promote}/"
        return f"{kind}{layout}/{self.out_bytes}/{batch}{self.m}x{self.n}x{self.k}"


_WORDS: dict[Any, str] = {
    int: "an integer",
    bool: "True or False",
    tuple[int, int]: "two integers, blocks along the rows and along the columns",
}


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a field has the type that it is declared with."""
    if kind != tuple[int, int]:
        return type(value) is kind
    return isinstance(value, tuple) and [type(number) for number in value] == [int, int]


@dataclass(frozen=True, slots=True)
class Config:
    """A tile of BM x BN, in steps of BK, STAGES of them in flight, finished in slices of EN columns
    by MATH replicas, of which each has SLOTS in flight; tiles in groups of GROUP rows.

    SWAP: the tiles are of the transposed product, whose rows are the columns of `b`: for a few rows
    of `a`. PDL: the launch begins while the one before it ends; measured to help where the matrix
    unit is what a short product waits for, and to cost a microsecond where memory is. PINGPONG: a
    replica does a whole tile, and multiplies while the others write theirs. STAGGER: replicas that
    share a tile write their rows in turn, and multiply while the others write.

    CLUSTER: blocks of a cluster that have tiles of other rows, and of other columns; they share
    what they read. GROUP counts rows of clusters. SPLIT: the steps of all tiles are dealt to so
    many blocks in equal shares, and shared tiles added up at the end, where whole tiles leave SMs
    idle; 0: a tile is one block's.
    """

    BM: int
    BN: int
    EN: int
    STAGES: int
    MATH: int
    GROUP: int = 8
    BK: int = BK
    SWAP: bool = False
    PDL: bool = False
    PINGPONG: bool = False
    CLUSTER: tuple[int, int] = (1, 1)
    SPLIT: int = 0
    STAGGER: bool = False
    SLOTS: int = 2

    def row(self) -> dict[str, Any]:
        """What a table of measured tiles holds."""
        return asdict(self)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Config":
        """The tile of a row of a table."""
        cluster = row.get("CLUSTER", (1, 1))
        return cls(**{**row, "CLUSTER": tuple(cluster) if isinstance(cluster, list) else cluster})

    @classmethod
    def given(cls, call: str, tile: "Config | Mapping[str, Any]") -> "Config":
        """A tile that somebody asks for; raises LaunchError H021, ShapeError T201."""
        if not isinstance(tile, Config | Mapping):
            hint = "give a `Config`, or a row of `configs/`"
            raise error("H021", f"{call}: `config` is a {type(tile).__name__}", hint=hint)
        if not isinstance(tile, Config):
            known = [field.name for field in fields(cls)]
            needed = [field.name for field in fields(cls) if field.default is MISSING]
            wrong = [name for name in tile if name not in known]
            wrong += [name for name in needed if name not in tile]
            if wrong:
                state = "is unknown" if wrong[0] in tile else "is missing"
                text = f"{call}: `{wrong[0]}` of `config` {state}"
                raise error("H021", text, notes=("it has " + ", ".join(known),))
            tile = cls.of_row(tile)
        tile._check(call)
        return tile

    def _check(self, call: str) -> None:
        """What the kernel would refuse with its own words, or divide by."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not _is_a(value, field.type):
                hint = f"it is {_WORDS[field.type]}"
                raise error("H021", f"{call}: `config` has {field.name} = {value!r}", hint=hint)
        for name in ("GROUP", "BK", "BN", "EN", "MATH", "STAGES", "SLOTS", "CLUSTER", "SPLIT"):
            value, least = getattr(self, name), 0 if name == "SPLIT" else 1
            enough = min(value if isinstance(value, tuple) else (value,)) >= least
            say = f"`config` has {name} = {value}"
            require(enough, call, say, hint=f"it is {least} or more")
        replicas = 1 if self.PINGPONG else self.MATH
        part, rest = divmod(self.BM, replicas)
        near = max(64, -(-part // 64) * 64) * replicas
        require(
            part >= 64 and not rest and part % 64 == 0,
            call,
            f"`config` has BM = {self.BM} with MATH = {self.MATH}",
            "a replica has a multiple of 64 rows, BM / MATH of them, with PINGPONG all",
            hint=f"the nearest above: BM={near}",
        )
        require(
            self.BN % self.EN == 0,
            call,
            f"`config` has slices of EN = {self.EN} columns in tiles of BN = {self.BN}",
            hint="EN divides BN",
        )

    def sliced(self) -> "Config":
        """The same in narrow slices: what an epilogue reads beside the sums of a wide one does not
        fit the registers."""
        if self.SLOTS > 1:
            return self
        widths = (32, 16) if self.MATH > 2 else (64, 32, 16)
        columns = next((w for w in widths if self.EN % w == 0), self.EN)
        return replace(self, EN=columns, SLOTS=min(2, self.EN // columns))

    def constants(self) -> dict[str, Any]:
        """The compile-time arguments of the kernel."""
        return dict(_constants(self))

    def shares(self, shape: "Shape") -> int:
        """Blocks that share the steps of all tiles, each one or more; 0 where tiles stay whole."""
        if shape.batch > 1 or not self.SPLIT:
            return 0
        steps = -(-shape.k // self.BK)
        return min(self.SPLIT, self.tiles(shape.m, shape.n) * steps)

    def tiles(self, m: int, n: int) -> int:
        """Tiles of a product of m x n elements; those of a cluster count once."""
        if self.SWAP:
            m, n = n, m
        high, wide = self.CLUSTER
        return -(-m // (self.BM * high)) * -(-n // (self.BN * wide))

    def places(self, sms: int) -> int:
        """Clusters that run at a time. Pairs fill every SM; larger ones leave some of each GPC
        empty, and how many depends on the chip: with less than all of them none waits for a place.
        """
        size = prod(self.CLUSTER)
        return max(1, (sms if size <= 2 else sms * 3 // 4) // size)

    def grid(self, shape: Shape) -> tuple[int, int]:
        """Blocks of a launch: clusters along axis 0, as many as have a place and work."""
        high, wide = self.CLUSTER
        tiles = self.tiles(shape.m, shape.n) * shape.batch
        return min(self.places(shape.sms), tiles) * high, wide


@lru_cache(maxsize=1024)
def _constants(tile: Config) -> tuple[tuple[str, Any], ...]:
    """Asked for at each launch."""
    elsewhere = ("SWAP", "PDL", "CLUSTER", "SPLIT")
    return tuple((name, value) for name, value in tile.row().items() if name not in elsewhere)


@lru_cache(maxsize=1024)
def choose(shape: Shape, batch_invariant: bool = False) -> Config:
    """The tile for a product. `batch_invariant`: of those whose sums do not depend on its rows."""
    found = measured(shape.sms).get(shape.key())
    if found is not None and not (batch_invariant and found.SPLIT):
        return found
    found = min(candidates(shape), key=lambda c: (round(cycles(c, shape)), c.BM, -c.BN))
    return replace(found, PDL=shape.m > found.BM and cycles(found, shape) < SHORT)


@lru_cache(maxsize=8)
def measured(sms: int) -> dict[str, Config]:
    """Tiles by key of the machine with that many SMs; empty where none was measured."""
    for path in sorted(_TABLES.glob("*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["sms"] == sms:
            return {row["key"]: Config.of_row(row["config"]) for row in table["rows"]}
    return {}


# Rows of a tile, replicas that share them, and the most columns that their registers hold.
_USUAL = ((128, 2, 256), (256, 2, 128), (64, 1, 256))
_THREE = ((192, 3, 160),)


def candidates(shape: Shape, families: Iterable[tuple[int, int, int]] = _USUAL) -> Iterator[Config]:
    """Every tile that fits. A `b` that is contiguous along N comes in panels of 64 columns."""
    if shape.in_bytes == 1:
        yield from eight_bits(shape)
        return
    step = 16 if shape.b_t else 64
    for rows, math, widest in families:
        for columns in range(step, widest + 1, step):
            yield fitted(rows, columns, math, shape.out_bytes)


def eight_bits(shape: Shape) -> Iterator[Config]:
    """The same for 8-bit operands, whose steps of K have as many bytes. Promoted sums take twice
    the registers. Steps are short beside what follows them: where a result leaves room for four,
    it is written at once, and nobody waits for the slices before."""
    forms = ((128, 2, 192), (64, 1, 192)) if shape.promote else ((128, 2, 256), (64, 1, 256))
    for rows, math, widest in (*forms, (256, 2, 96 if shape.promote else 128)):
        for columns in range(16, widest + 1, 16):
            sliced = replace(fitted(rows, columns, math, shape.out_bytes), BK=shape.depth)
            left = SHARED - rows * columns * shape.out_bytes
            stages = min(MOST_STAGES, left // ((rows + columns) * BK * 2))
            whole = replace(sliced, EN=columns, SLOTS=1, STAGES=stages)
            yield whole if stages >= 4 else sliced


def swapped(shape: Shape) -> Iterator[Config]:
    """Tiles of the transposed product for a few rows of `a`, which fill its columns."""
    columns = max(16, -(-shape.m // 16) * 16)
    if 1 < shape.m <= 64 and not shape.a_t:
        for rows, math in ((64, 1), (128, 2), (256, 2)):
            yield replace(fitted(rows, columns, math, shape.out_bytes), SWAP=True, BK=shape.depth)


def threefold(shape: Shape) -> Iterator[Config]:
    """Tiles of three replicas, for a shape that they divide better."""
    yield from candidates(shape, _THREE)


def shared_out(shape: Shape, most: int) -> Iterator[Config]:
    """The `most` best tiles by estimate, each in the same number of pieces along K: then the blocks
    at work read the same part of the operands at a time: what one block of shares of any size
    reads, no other finds in the L2."""
    found: list[Config] = []
    for chosen in (*candidates(shape), *swapped(shape)):
        tiles, steps = chosen.tiles(shape.m, shape.n), -(-shape.k // chosen.BK)
        for pieces in range(2, min(steps, MOST_PIECES) + 1):
            if shape.batch == 1 and tiles * (pieces - 1) < shape.sms:
                found.append(replace(chosen, SPLIT=tiles * pieces))
    yield from sorted(found, key=lambda c: cycles(c, shape))[:most]


def alternating(shape: Shape) -> Iterator[Config]:
    """Tiles of which each of two replicas does a whole one, its sums in 64 to 128 registers."""
    step = 16 if shape.b_t else 64
    # Promoted sums take twice the registers.
    forms = ((64, 128, 192), (128, 64, 96)) if shape.promote else ((64, 128, 256), (128, 64, 128))
    for rows, least, most in forms:
        for columns in range(least, most + 1, max(step, 32)):
            found = fitted(rows, columns, 2, shape.out_bytes, pingpong=True)
            yield replace(found, BK=shape.depth)


def fitted(rows: int, columns: int, math: int, out_bytes: int, *, pingpong: bool = False) -> Config:
    """The tile with the widest slices that divide it and as many stages as fit."""
    widest = (64 if rows <= 128 else 32) * 2 // out_bytes
    slice_columns = next(w for w in (64, 32, 16) if w <= widest and columns % w == 0)
    slices = 2 * rows * slice_columns * out_bytes * (math if pingpong else 1)
    stage = (rows + columns) * BK * 2
    stages = min(MOST_STAGES, (SHARED - slices) // stage)
    return Config(rows, columns, slice_columns, stages, math, PINGPONG=pingpong)


def cycles(c: Config, shape: Shape) -> float:
    """Estimated cycles of the busiest SM."""
    multiply = c.BM * c.BN * c.BK * shape.in_bytes / 4096
    alone = shape.m <= c.BM  # nobody else reads these columns of b
    high, wide = c.CLUSTER
    read = (c.BM / wide + c.BN / high) * c.BK * shape.in_bytes / FROM_L2
    if alone:
        read = max(read, c.BN * c.BK * shape.in_bytes / FROM_MEMORY)
    steps = -(-shape.k // c.BK)
    tiles = c.tiles(shape.m, shape.n) * shape.batch
    finish = FINISH + c.BM * c.BN / STORED
    shares = c.shares(shape)
    if shares:
        # The sums of a share go to memory and come back, besides what is finished.
        own, rounds = -(-tiles * steps // shares), -(-shares // shape.sms)
        left = c.BM * c.BN / STORED * (1 + shares / tiles)
        return START + rounds * (own * max(multiply, read) + left) + JOIN + finish
    return START + -(-tiles // c.places(shape.sms)) * (steps * max(multiply, read) + finish)
