"""How a row is split: blocks of a cluster, elements a block, slots. No measurement at run time, no
device.

`configs/<machine>.json` holds what was measured; without a row for a key the rule below decides.
Cluster and part follow from kind, length and dtype alone, so results do not depend on the number of
rows or on addresses.
"""

import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from warploom.kernels.arguments import ceil_div
from warploom.kernels.rows.kernel import LAYER_NORM, SOFTMAX

NAMES = ("rms_norm", "layer_norm", "softmax", "cross_entropy")
# Bytes of a block's shared memory, less what barriers, parts and exchanges among warps take.
SHARED = 227 * 1024 - 2560
UNIT = 16  # bytes: what a bulk copy asks of addresses and sizes
SIZES = (1, 2, 4, 8, 16)
LONGEST = 262_144
MOST_STAGES = 4
# Elements of a row that a block holds in registers: 64 for each of 256 threads.
MOST_ELEMENTS = 16_384
# Blocks that an H200 (132 SMs) runs at a time, one an SM, by size of the cluster.
AT_A_TIME = {1: 132, 2: 132, 4: 124, 8: 124, 16: 116}
_SMS = 132
_TABLES = Path(__file__).parent / "configs"


@dataclass(frozen=True, slots=True)
class Config:
    """CLUSTER blocks with BN elements of a row each, in REPLICAS of WARPS warps. STAGES slots of a
    replica are filled by the copy engine (0: threads read), RESIDENT: factors are kept too,
    WRITTEN: the copy engine writes results, where they have the dtype of the rows. ROUNDS: rows of
    a replica, after which another cluster takes its place (0: as many as there are)."""

    CLUSTER: int
    BN: int
    STAGES: int
    RESIDENT: bool
    WARPS: int = 8
    REPLICAS: int = 2
    WRITTEN: bool = False
    ROUNDS: int = 0

    def constants(self) -> dict[str, Any]:
        """What the kernel is compiled for."""
        of_launch = ("CLUSTER", "ROUNDS")
        return {name: value for name, value in asdict(self).items() if name not in of_launch}

    def clusters(self, rows: int, sms: int) -> int:
        """Clusters of a launch: those that run at a time, no more than have a row for each
        replica."""
        if self.ROUNDS:
            return ceil_div(rows, self.REPLICAS * self.ROUNDS)
        room = AT_A_TIME[self.CLUSTER] * sms // _SMS // self.CLUSTER
        return max(1, min(room, ceil_div(rows, self.REPLICAS)))


def choose(
    kind: int, length: int, item: int, factors: int, copied: bool, kept: bool, written: bool = False
) -> Config:
    """The split of rows of `length` elements of `item` bytes, with so many bytes of `factors` an
    element. The copy engine can take rows (`copied`), factors (`kept`), results (`written`)."""
    found = measured(f"{NAMES[kind]}/{item}/{length}")
    if found is None:
        return _ruled(kind, length, item, factors, copied, kept)
    return fitted(found, length, item, factors, copied, kept, written)


def fitted(
    chosen: Config,
    length: int,
    item: int,
    factors: int,
    copied: bool,
    kept: bool,
    written: bool,
) -> Config:
    """The same split, and the copy engine does of its part what it can. It was measured for factors
    of one width; wider ones may have no room beside the slots."""
    if not copied or chosen.CLUSTER * chosen.BN != length:
        return replace(chosen, STAGES=0, RESIDENT=False, WRITTEN=False)
    held = (chosen.STAGES * chosen.REPLICAS * item + factors) * chosen.BN
    resident = chosen.RESIDENT and kept and held <= SHARED
    return replace(chosen, RESIDENT=resident, WRITTEN=chosen.WRITTEN and written)


def _ruled(kind: int, length: int, item: int, factors: int, copied: bool, kept: bool) -> Config:
    """The split of what nobody has measured."""
    cluster, part = _split(kind, length, item)
    copied = copied and cluster * part == length
    warps, replicas = (16, 1) if kind == LAYER_NORM and part > MOST_ELEMENTS // 2 else (8, 2)
    slot = replicas * part * item
    resident = copied and kept and 0 < factors * part <= SHARED - slot
    stages = min(MOST_STAGES, (SHARED - factors * part * resident) // slot) if copied else 0
    return Config(cluster, part, stages, resident and stages > 0, warps, replicas)


def _split(kind: int, length: int, item: int) -> tuple[int, int]:
    """(blocks, elements of each): the smallest cluster whose blocks can hold their parts, of whole
    16 bytes."""
    most = MOST_ELEMENTS if kind == SOFTMAX or kind != LAYER_NORM else MOST_ELEMENTS // 2
    unit = UNIT // item
    for cluster in SIZES:
        part = ceil_div(ceil_div(length, cluster), unit) * unit
        if part <= most or cluster == SIZES[-1]:
            return cluster, part
    raise AssertionError(length)


@lru_cache(maxsize=1)
def _table() -> dict[str, Config]:
    """What was measured, by kind/bytes/length."""
    found: dict[str, Config] = {}
    for path in sorted(_TABLES.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            found[row["key"]] = Config(**row["config"])
    return found


def measured(key: str) -> Config | None:
    """The measured split of a key, if there is one."""
    return _table().get(key)
