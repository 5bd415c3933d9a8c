"""Random products of matrices by roles, as what they are made of: a role that copies tiles, others
that multiply them as they come, and a way out. Knows neither their text (`product_text`) nor how
they are run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.testing.fuzz.chain import Draw

# Operands with the sum that they have, and columns that lie in 16 bytes.
DTYPES = {
    **{"f16": ("f32", 8), "bf16": ("f32", 8), "f32": ("f32", 4)},
    **{"f8e4m3": ("f32", 16), "f8e5m2": ("f32", 16), "i8": ("i32", 16), "u8": ("i32", 16)},
}
# Those of which b may lie either way.
ANY_WAY = ("f16", "bf16")
WAYS_OUT = ("store", "engine", "channel")
_ROWS = 64  # that one role of 4 warps multiplies at a time
_MOST_BYTES = 200 << 10


@dataclass(frozen=True)
class Matrices:
    """c [m, n] = a [m, k] · b, by tiles of `bm` x `bn` in steps of `bk`. b is [n, k], or [k, n]
    where not `turned`. `one`: each replica does tiles of its own, in `turns` or not; else they
    share the rows of each."""

    dtype: str = "f16"
    m: int = 64
    n: int = 32
    k: int = 32
    bn: int = 32
    bk: int = 32
    turned: bool = True
    stages: int = 1
    replicas: int = 1
    one: bool = False
    turns: bool = False
    behind: int = 0
    registers: bool = False  # a is loaded first
    out: str = "store"
    pitch: bool = False  # rows of the operands lie further apart
    rectified: bool = False
    blocks: int = 1
    cluster: int = 1
    seed: int = 0

    @property
    def bm(self) -> int:
        """Rows of a tile."""
        return _ROWS if self.one else _ROWS * self.replicas

    @property
    def sum(self) -> str:
        """The type of sums."""
        return DTYPES[self.dtype][0]

    def smaller(self) -> Iterator[Matrices]:
        """Programs that lack something of this one."""
        plain: dict[str, Any] = {"cluster": 1, "one": False, "turns": False, "replicas": 1}
        plain |= {
            "registers": False,
            "out": "store",
            "rectified": False,
            "behind": 0,
            "pitch": False,
        }
        plain |= {"dtype": "f16", "turned": True, "blocks": 1, "bn": 32, "bk": 32}
        plain |= {"m": 64, "n": 32, "k": self.bk}
        for name, value in plain.items():
            if getattr(self, name) != value:
                made = replace(self, **{name: value})
                made = replace(made, turns=made.turns and made.one)
                yield replace(made, blocks=max(made.blocks, made.cluster))
        for stages in range(self.behind + 1, self.stages):
            yield replace(self, stages=stages)


def drawn(seed: int) -> Matrices:
    """The program of a seed."""
    draw = Draw(np.random.default_rng([seed, 3]))
    while True:
        made = _draw(draw, seed)
        if _bytes(made) <= _MOST_BYTES:
            return made


def _draw(draw: Draw, seed: int) -> Matrices:
    dtype = draw.of(*DTYPES)
    unit = DTYPES[dtype][1]
    replicas, stages = draw.of(1, 1, 2, 2, 3), draw.number(1, 4)
    one, cluster = draw.number(0, 1) == 1, draw.of(1, 1, 1, 2, 4)
    turned = dtype not in ANY_WAY or draw.number(0, 2) > 0
    return Matrices(
        dtype=dtype,
        m=draw.number(1, 200),
        # The copy engine wants rows of whole 16 bytes.
        n=unit * draw.number(1, 160 // unit),
        k=unit * draw.number(0, 160 // unit),
        bn=draw.of(32, 64, 128),
        bk=draw.of(32, 64),
        turned=turned,
        stages=stages,
        replicas=replicas if one else min(replicas, 2),
        one=one,
        turns=one and draw.number(0, 1) == 1,
        behind=draw.number(0, min(stages - 1, 2)),
        registers=dtype in ANY_WAY and draw.number(0, 3) == 0,
        pitch=draw.number(0, 3) == 0,
        # All that send fill an item together: a channel is for one.
        out=draw.of(*(WAYS_OUT if replicas == 1 else WAYS_OUT[:2])),
        rectified=draw.number(0, 1) == 1,
        blocks=cluster * draw.of(1, 2),
        cluster=cluster,
        seed=seed,
    )


def _bytes(made: Matrices) -> int:
    size = 16 // DTYPES[made.dtype][1]
    ring = made.stages * (made.bm + made.bn) * made.bk * size
    return ring + 4 * _ROWS * made.bn * made.replicas
