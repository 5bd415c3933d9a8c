"""Roles, shared tiles, barriers, copies and products: their text, their types, what is refused."""

import pytest

from warploom.ir.op import REGISTRY, Stage
from warploom.ir.ops import shared
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.roles import walk_roles
from warploom.ir.verifier import VerifyError, verify_kernel

FAMILIES = ("shared", "mbarrier", "tma", "wgmma", "roles")
PARAMS = (
    "%x: tensor<bf16, n1, align 16, extent 16>, %y: tensor<f32, n1, align 16, extent 16>, "
    "%n: i32@grid"
)

TILE = """\
  %z: i32@grid = scalar.const() [number=0, dtype=i32]
  %a: shared<3 of bf16 128x128 @01 (128x128; 2 B; swizzle 128)> = shared.alloc() \
[dtype=bf16, shape=(128, 128,), slots=3, swizzle=128]
  %o: shared<f32 8x16 @01 (8x16; 4 B; swizzle 0)> = shared.alloc() \
[dtype=f32, shape=(8, 16,), slots=0, swizzle=0]
  %over: shared<i8 4x16 @01 (4x16; 1 B; swizzle 0)> = shared.alias(%o) \
[dtype=i8, shape=(4, 16,), slots=0, swizzle=0, behind=True]
  %bars: barriers<3> = mbarrier.alloc() [count=3, arrivals=8]
  roles.split() [names=("load", "math",), warps=(1, 4,), replicas=(1, 2,), registers=(40, 232,), \
first=(-1, -1,), barrier=(-1, -1,)] {
    %round: i32@role = roles.round() [ring=0, advances=True]
    %slot: i32@role, %phase: i32@role = roles.position() [ring=0, stages=3, \
cluster=False, advances=True]
    control.one_thread() [per="role", meet=False] {
      %bar: barriers<1> = mbarrier.at(%bars, %slot)
      mbarrier.expect(%bar) [bytes=32768]
      %s: shared<bf16 128x128 @01 (128x128; 2 B; swizzle 128)> = shared.slot(%a, %slot)
      tma.load(%x, [%z, %n], %s, %bar, _, _, _) [sizes=(128, 128,), cache="evict_last", fill="zero"]
      control.yield([])
    }
    control.yield([])
  } {
    %r: i32@role = roles.replica()
    %round.1: i32@role = roles.round() [ring=2, advances=True]
    %slot.1: i32@role, %phase.1: i32@role = roles.position() [ring=1, stages=3, \
cluster=False, advances=True]
    roles.skip(%bars, %bars, %z) [ring=1, stages=3, visits=True, steps=(0,), ordered=False, \
cluster=False]
    %bar.1: barriers<1> = mbarrier.at(%bars, %slot.1)
    mbarrier.wait(%bar.1, %phase.1) [scope="block", takes=False]
    %early: bool@warp = mbarrier.test(%bar.1, %phase.1) [scope="block"]
    %s.1: shared<bf16 128x128 @01 (128x128; 2 B; swizzle 128)> = shared.slot(%a, %slot.1)
    %w: shared<bf16 64x128 @01 (128x128; 2 B; swizzle 128)> = shared.window(%s.1, [%z, %z]) \
[sizes=(64, 128,)]
    %b: shared<bf16 128x128 @10 (128x128; 2 B; swizzle 128)> = shared.permute(%s.1) [order=(1, 0,)]
    %0: f32@grid = scalar.const() [number=0.0, dtype=f32]
    %acc: f32<64x128> = tile.splat(%0) [shape=(64, 128,)]
    %acc.1: f32<64x128~> = wgmma.begin(%acc)
    %acc.2: f32<64x128~> = wgmma.dot(%w, %b, %acc.1)
    %acc.3: f32<64x128~> = wgmma.settle(%acc.2) [pending=1]
    roles.hand_back(%bars, %slot.1) [ring=1, stages=3, behind=1, steps=(0,), ordered=True]
    wgmma.drain() [pending=0]
    %t: f32<64x128> = wgmma.wait(%acc.3) [pending=0]
    %u: f32<8x16> = shared.load(%o)
    %e: f32<1x1> = shared.element(%o, [%z, %z])
    shared.store(%o, %u)
    %i: i32<8x16> = tile.splat(%z) [shape=(8, 16,)]
    %g: f32<8x16> = shared.gather(%o, %i) [axis=0]
    shared.scatter(%o, %g, %i) [axis=1]
    %q: shared<f32 16x8 @01 (16x8; 4 B; swizzle 0)> = shared.reshape(%o) [shape=(16, 8,)]
    %q2: shared<bf16 8x32 @01 (8x32; 2 B; swizzle 0)> = shared.reinterpret(%o) \
[dtype=bf16, shape=(8, 32,)]
    sync.fence_async() [why="to be copied", space="shared"]
    control.one_thread() [per="warp", meet=False] {
      mbarrier.arrive(%bar.1) [count=1]
      control.yield([])
    }
    control.one_thread() [per="role", meet=False] {
      tma.store(%y, [%z, %r], %o, _, _) [sizes=(8, 16,), reduce="add", cache=""]
      tma.prefetch(%y, [%z, %r], _, _, _) [sizes=(8, 16,), cache=""]
      tma.commit()
      tma.wait() [pending=0, reads=True]
      control.yield([])
    }
    control.yield([])
  }
"""

MACHINE = """\
  %z: i32@grid = scalar.const() [number=0, dtype=i32]
  %a: buffer<bf16, 16384> = shared_memory.buffer() [dtype=bf16, elements=16384, at=0, align=1024, \
copies=1, region=0, within=0, content=0, slots=1]
  %m: buffer<i64, 1> = shared_memory.buffer() [dtype=i64, elements=1, at=32768, align=16, \
copies=1, region=-1, within=0, content=0, slots=1]
  %at: i32@grid = shared_memory.address(%a)
  %bar: i32@grid = shared_memory.address(%m)
  %p: f32@grid = scalar.const() [number=0.0, dtype=f32]
  control.one_thread() [per="role", meet=False] {
    mbarrier.init(%bar) [arrivals=1]
    sync.fence_barrier_init()
    tma.prefetch_map() [map=0]
    tma.prefetch_box(%x, [%z, %n], _, _) [map=0, cache="evict_last"]
    mbarrier.expect(%bar) [bytes=16384]
    tma.load_box(%x, [%z, %n], %at, %bar, _, _, _) [map=0, bytes=16384, cache=""]
    control.yield([])
  }
  sync.barrier() [threads=128, id=1, why="made", per_replica=True]
  roles.split() [names=("math",), warps=(4,), replicas=(1,), registers=(232,), first=(0,), \
barrier=(1,)] {
    roles.set_registers() [count=232, grow=True]
    %0: f32[1x1] = registers.splat(%p) [rank=2]
    %acc: f32[2x16] (64x64; l4:1*2 l8:0*1 w4:0*16 r2:0*8 r2:1*1 r8:1*8) = registers.spread(%0) \
[extents=(2, 16,)]
    %part: f32[2x4] = registers.spread(%0) [extents=(2, 4,)]
    mbarrier.wait(%bar, %z) [scope="block", takes=False]
    wgmma.fence()
    %acc.1: f32[2x16] = wgmma.mma(%acc, %at, %at) [block=0, n=64, a_dtype=bf16, \
a_swizzle=128, a_lead=16, a_stride=1024, a_transposed=False, b_dtype=bf16, b_swizzle=128, \
b_lead=16384, b_stride=1024, b_transposed=True, fresh=True]
    %half: bf16[2x4] = registers.cast(%part) [dtype=bf16]
    %acc.2: f32[2x16] = wgmma.mma_registers(%acc.1, %half, %at) [block=0, step=0, n=64, \
b_dtype=bf16, b_swizzle=128, b_lead=16, b_stride=1024, b_transposed=False, fresh=False]
    wgmma.commit()
    %acc.3: f32[2x16] = wgmma.wait_group(%acc.2) [pending=0]
    control.one_thread() [per="role", meet=False] {
      tma.store_box(%y, [%z, %n], %at, _, _) [map=1, bytes=1024, reduce="", cache=""]
      control.yield([])
    }
    control.yield([])
  }
"""


def kernel(body: str, options: str) -> str:
    return f"kernel @k({PARAMS}) {options} {{\n{body}  control.yield([])\n}}\n"


TEXTS = {
    "tile": kernel(TILE, "stage=tile warps=4 written=1"),
    "machine": kernel(
        MACHINE,
        'stage=machine warps=4 shared=32784 written=1 maps="0:1,0:64x128:128 1:1,0:16x8:0"',
    ),
}


@pytest.mark.parametrize("stage", TEXTS)
def test_text_and_back(stage):
    made = parse_kernel(TEXTS[stage])
    verify_kernel(made)
    assert print_kernel(made) == TEXTS[stage]


def test_the_texts_hold_every_operation():
    for stage, text in TEXTS.items():
        legal = Stage[stage.upper()]
        names = {n for n, c in REGISTRY.items() if c.FAMILY in FAMILIES and legal in c.STAGES}
        both = {n for n in names if REGISTRY[n].STAGES == Stage.any()}
        other = "".join(TEXTS.values())
        missing = [n for n in names if f"{n}(" not in (other if n in both else text)]
        assert not missing, stage


def test_types_of_views():
    made = parse_kernel(TEXTS["tile"])
    alloc, window, view = (
        next(o for o, _ in walk_roles(made) if isinstance(o, kind))
        for kind in (shared.Alloc, shared.Window, shared.Permute)
    )
    ring = shared.shared_of(alloc.result)
    assert (ring.slots, ring.slot_bytes, ring.layout.panels) == (3, 32768, 2)
    assert shared.single_of(window.result).layout == ring.layout, (
        "a window keeps rows where they lie"
    )
    assert shared.single_of(view.result).order == (1, 0)
    assert shared.single_of(view.result).layout == ring.layout


def test_operations_know_how_many_warps_act_together():
    made = parse_kernel(TEXTS["tile"])
    warps = {op.OPCODE: count for op, count in walk_roles(made)}
    assert warps["mbarrier.alloc"] == 4
    assert warps["tma.load"] == 1
    assert warps["wgmma.dot"] == 4


def test_maps_are_launch_words():
    made = parse_kernel(TEXTS["machine"])
    words = [(w.kind, w.param, w.axis) for w in made.words() if w.kind == "map"]
    assert words == [("map", 0, 0), ("map", 1, 1)]
    assert [m.box for m in made.maps] == [(64, 128), (16, 8)]


BROKEN = {
    ("slots=3, swizzle=128", "slots=3, swizzle=96"): "a swizzle of 96 bytes",
    (
        "shared.window(%s.1, [%z, %z]) [sizes=(64, 128,)]",
        "shared.window(%s.1, [%z, %z]) [sizes=(64, 256,)]",
    ): "window too large",
    ("[order=(1, 0,)]", "[order=(1, 1,)]"): r"order \(1, 1\)",
    ("shared.slot(%a, %slot)", "shared.slot(%o, %slot)"): "<o: .* has no slots",
    ("shared.load(%o)", "shared.load(%a)"): "<a: .* has 3 slots: choose one",
    ("shared.store(%o, %u)", "shared.store(%o, %t)"): "stored to",
    ("mbarrier.wait(%bar.1", "mbarrier.wait(%bars"): "<bars: .* is not one barrier",
    ("[count=3, arrivals=8]", "[count=3, arrivals=0]"): "3 barriers of 0",
    ("[bytes=32768]", "[bytes=1048576]"): "1048576 bytes",
    ("[sizes=(128, 128,), cache", "[sizes=(128, 64,), cache"): r"window \(128, 64\)",
    ('reduce="add"', 'reduce="mul"'): "the copy engine has no 'mul' for f32",
    ("wgmma.dot(%w, %b, %acc.1)", "wgmma.dot(%w, %b, %acc)"): "where f32<64x128> is inferred",
    ("wgmma.dot(%w, %b, %acc.1)", "wgmma.dot(%b, %b, %acc.1)"): "into",
    (
        "shared.store(%o, %u)",
        "tile.store(%y, %acc.3, [%z, %z]) [sizes=(64, 128,)]",
    ): "still being written",
    ("registers=(40, 232,)", "registers=(40, 230,)"): "230 registers",
    ('names=("load", "math",)', 'names=("load", "load",)'): "role names",
    ("replicas=(1, 2,)", "replicas=(1,)"): "one entry a role",
    ("ring=1, stages=3, behind=1", "ring=1, stages=3, behind=3"): "3 behind in 3 stages",
    ('[per="warp", meet=False]', '[per="lane", meet=False]'): "one thread per 'lane'",
}


@pytest.mark.parametrize("change", BROKEN, ids=[after[-40:] for _, after in BROKEN])
def test_what_the_verifier_refuses(change):
    text = TEXTS["tile"]
    assert change[0] in text
    with pytest.raises(VerifyError, match=BROKEN[change]):
        verify_kernel(parse_kernel(text.replace(*change, 1)))


MACHINE_BROKEN = {
    ("block=0, n=64", "block=1, n=64"): "for n 64",
    ("block=0, n=64", "block=0, n=32"): "for n 32",
    ("[arrivals=1]", "[arrivals=0]"): "0 arrivals",
    ("w4:0*16", "w2:0*16"): "warps",
}


@pytest.mark.parametrize("change", MACHINE_BROKEN, ids=[after for _, after in MACHINE_BROKEN])
def test_what_the_verifier_refuses_at_the_machine_stage(change):
    text = TEXTS["machine"]
    assert change[0] in text
    with pytest.raises(VerifyError, match=MACHINE_BROKEN[change]):
        verify_kernel(parse_kernel(text.replace(*change, 1)))
