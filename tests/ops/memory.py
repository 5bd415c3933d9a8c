"""Machine operations of global and shared memory, lane and warp numbers, barriers."""

import numpy as np

import warploom as wl
from tests.ops import scalar, tile
from tests.ops.raw import RawCall
from tests.ops.trial import DATA, NUMBERS, Case, Trial, spread

_TILES = {str(case): case for case in [*scalar.CASES, *tile.CASES]}


def _as(op: str, dtype: str, name: str) -> Case:
    return Case(op, dtype, _TILES[name].make, name)


CASES = [
    _as(f"global_memory.{name}", dtype, f"tile.{name}-{dtype}-3,20")
    for name in ("load", "store")
    for dtype in DATA
]
CASES += [_as("global_memory.load_scalar", dtype, f"scalar.load-{dtype}") for dtype in DATA]
CASES += [
    _as(f"shared_memory.{name}", dtype, f"tile.reduce-{dtype}-max-axis1-2x1000")
    for name in ("buffer", "load", "store")
    for dtype in NUMBERS
]
CASES += [
    _as(f"index.{name}", "i32", "tile.reduce-f32-max-axis0-17x20")
    for name in ("lane", "warp", "digit", "constants")
]
CASES += [_as("sync.barrier", "", "tile.reduce-f32-max-axis1-2x1000")]


EXCHANGE = """\
kernel @exchange(%x: tensor<{0}, 1, align 4, extent 1>, %y: tensor<{0}, 1, align 4, extent 1>) \
stage=machine warps=2 written=1 {{
  %lane: i32[1] = index.lane() [rank=1]
  %warp: i32[1] = index.warp() [rank=1]
  %c32: i32@grid = scalar.const() [number=32, dtype=i32]
  %wide: i32[1] = registers.splat(%c32) [rank=1]
  %row: i32[1] = registers.binary(%warp, %wide) [kind="mul"]
  %at: i32[1] = registers.binary(%row, %lane) [kind="add"]
  %zero: i32@grid = scalar.const() [number=0, dtype=i32]
  %t: {0}[1] = global_memory.load(%x, %zero, %at, _, _) [axis=0, vec=1]
  %b: buffer<{0}, 64> = shared_memory.buffer() [dtype={0}, elements=64, at=0]
  shared_memory.store(%b, %t, %at, _) [axis=0, vec=1]
  sync.warp() [why="lanes read what others stored"]
  %c31: i32@grid = scalar.const() [number=31, dtype=i32]
  %last: i32[1] = registers.splat(%c31) [rank=1]
  %mirror: i32[1] = registers.binary(%last, %lane) [kind="sub"]
  %from: i32[1] = registers.binary(%row, %mirror) [kind="add"]
  %u: {0}[1] = shared_memory.load(%b, %from, _) [axis=0, vec=1]
  %both: {0}[3] = registers.cat([%t, %u, %t]) [axis=0]
  %v: {0}[1] = registers.slice(%both) [axis=0, start=1, size=1]
  global_memory.store(%y, %v, %zero, %at, _) [axis=0, vec=1]
  control.yield([])
}}
"""


def exchange(op: str, dtype: str) -> Case:
    """Each warp reverses its 32 elements through shared memory, with no barrier of the block."""

    def make(device):
        x = spread(dtype, (64,))
        out = device.empty(64, x.dtype)
        size = x.dtype.itemsize * 64
        text = EXCHANGE.format(dtype).replace("warps=2", f"warps=2 shared={size}")
        expected = np.concatenate([x[31::-1], x[:31:-1]])
        return Trial(RawCall(text, 1, device.put(x), out), [(out, expected)])

    return Case(op, dtype, make)


CASES += [exchange(op, dtype) for op in ("registers.cat", "registers.slice") for dtype in DATA]
CASES.append(Case("sync.warp", "", exchange("sync.warp", "f32").make))


@wl.kernel
def ahead(x: wl.Tensor, y: wl.Tensor, CACHE: wl.const):
    """y = x, under a cache policy; read ahead into both caches, also outside of x."""
    where = x[wl.ds(wl.program_id(0) * 16, 16), wl.ds(0, 64)]
    wl.prefetch(where)
    wl.prefetch(where, "L1", wl.arange(64)[None, :] + wl.arange(16)[:, None] > 9)
    wl.prefetch(x[wl.ds(48, 64), wl.ds(32, 64)], "L1", x.shape[0] > 3)
    t = wl.load(where, cache=CACHE)
    wl.store(y[wl.ds(wl.program_id(0) * 16, 16), wl.ds(0, 64)], t, cache=CACHE)


def cached(op: str, dtype: str, cache: str) -> Case:
    def make(device):
        x = spread(dtype or "f32", (40, 64))
        y = device.empty(x.shape, x.dtype)
        return Trial(ahead.launch(3).call(device.put(x), y, CACHE=cache), [(y, x)])

    return Case(op, dtype, make, cache or "prefetch")


CASES += [
    cached(f"global_memory.{name}", dtype, cache)
    for name in ("load", "store")
    for dtype in ("f32", "bf16", "bool")
    for cache in ("evict_first", "evict_last", "evict_normal", "no_allocate")
]
CASES += [cached(op, "", "") for op in ("tile.prefetch", "global_memory.prefetch")]
