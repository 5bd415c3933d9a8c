"""Roles, pipes, copies and products as programs: what is built, and every report of a mistake."""

import pytest

from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.passes.pipeline import lower

GEMM = """
def kernel(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STAGES: wl.const = 3):
    ring = wl.pipe(STAGES, slots=[wl.shared((64, 64), a.dtype), wl.shared((32, 64), b.dtype)])
    K = a.shape[1]
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, K, 64):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k, 64)], sa)
                    wl.copy_async(b[wl.ds(0, 32), wl.ds(k, 64)], sb)
        with wl.role("math", warps=4) as r:
            acc = wl.zeros((64, 32), wl.f32)
            for k in wl.range(0, K, 64):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa, sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(c[wl.ds(r * 64, 64), wl.ds(0, 32)], acc.wait())
"""
TENSORS = {"a": "bf16 n1", "b": "bf16 n1", "c": "f32 n1"}


def test_a_product_with_two_roles(source, golden):
    golden(source.ir(GEMM, **TENSORS))


def test_levels_mix(source, golden):
    golden(
        source.body(
            """
bars = wl.barrier(2, arrivals=1)
tiles = wl.shared((16, 32), wl.f32, slots=2)
with wl.one_thread():
    bars[1].expect(16 * 32 * 4)
    wl.copy_async(x[wl.ds(0, 16), wl.ds(n, 32)], tiles[1], barrier=bars[1], cache="evict_first")
bars[1].wait(0)
t = wl.exp(tiles[1][wl.ds(8, 8), :].load())
tiles[0][wl.ds(0, 8), :].store(t)
wl.fence_async()
bars[0].arrive()
bars[1].arrive(per="warp")
bars[1].arrive(2, per="thread")
with wl.one_thread(per="warp"):
    bars[0].arrive()
if bars[0].test(0):
    print("early")
with wl.one_thread():
    wl.copy_async(tiles[0].T, y[wl.ds(0, 32), wl.ds(0, 16)])
    wl.copy_commit()
    wl.copy_wait(pending=0, reads=True)
""",
            x="f32 n1",
            y="f32 1n",
        )
    )


def test_a_role_removed_by_a_constant_takes_its_end_with_it(source):
    text = """
def kernel(x: wl.Tensor, SPY: wl.const):
    ring = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            with ring.put() as s:
                wl.copy_async(x[wl.ds(0, 8), wl.ds(0, 32)], s)
        with wl.role("use", warps=2, replicas=3):
            ring.take().release()
        if SPY:
            with wl.role("spy", warps=4):
                ring.take().release()
"""
    without, spied = (source.ir(text, x="f32 n1", SPY=spy) for spy in (False, True))
    assert "%ring_empty: barriers<2> = mbarrier.alloc() [count=2, arrivals=6]" in without
    assert "%ring_empty: barriers<2> = mbarrier.alloc() [count=2, arrivals=10]" in spied
    assert '"spy"' not in without


def test_names_of_roles_are_their_own(source):
    text = """
def kernel(y: wl.Tensor):
    i = wl.program_id(0)
    with wl.roles():
        with wl.role("first", warps=1):
            i = i + 1
            j = i
            wl.store(y[wl.ds(i, 1)], wl.full((1,), j, wl.i32))
        with wl.role("second", warps=1):
            wl.store(y[wl.ds(i, 1)], wl.full((1,), i, wl.i32))
"""
    ir = source.ir(text, y="i32 1")
    second = ir[ir.rindex("roles.replica") :]
    assert "tile.splat(%i)" in second, "the second role sees the name as it was before the roles"
    error = source.refused(text.replace("i, wl.i32))\n", "j, wl.i32))\n"), y="i32 1")
    assert error.code == "F013" or "j" in str(error)


def in_roles(load: str = "pass", math: str = "pass", before: str = "pass") -> str:
    """A kernel of two roles, one of 1 warp and one of 4, with a pipe between them."""

    def block(text: str, depth: int) -> str:
        return "\n".join("    " * depth + line for line in text.strip("\n").split("\n"))

    return f"""
def kernel(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    ring = wl.pipe(2, slots=[wl.shared((64, 64), wl.bf16)])
    tile = wl.shared((64, 64), wl.bf16)
{block(before, 1)}
    with wl.roles():
        with wl.role("load", warps=1):
{block(load, 3)}
        with wl.role("math", warps=4):
{block(math, 3)}
"""


PUT = """
with ring.put() as s:
    wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], s)
"""
GET = "with ring.get() as s:\n    t = s.load()"
ZERO = "acc = wl.zeros((64, 64), wl.f32)\n"
TAKE = "item = ring.take()\n"

TURN = "\nwith unit.turn({}):\n    pass\n"
DEALT = """
def kernel(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    ring = wl.pipe(2, slots=[wl.shared((64, 64), wl.bf16)], deliver="one")
    with wl.roles():
        with wl.role("load", warps=1):
            with ring.put() as s:
                wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], s)
        with wl.role("math", warps=4, replicas=2) as r:
            with ring.get() as s:
                t = s.load()
            {}
"""

TO = "out = wl.pipe(2, slots=[wl.shared((64, 64), wl.bf16)], to=wl.copy_engine)"
OUT = "\nwith out.put() as t:\n    {}"

MISTAKES = {
    "P001": "with wl.roles(), wl.roles():\n    pass",
    "P002 outside": "with wl.role('a'):\n    pass",
    "P002 branch": "with wl.roles():\n    if n > 0:\n        with wl.role('a'):\n            pass",
    "P002 inside": in_roles(PUT, GET + "\nwith wl.role('c'):\n    pass"),
    "P003": "with wl.roles():\n"
    "    with wl.role('a'):\n        pass\n    with wl.role('a'):\n        pass",
    "P004": "one = wl.one_thread()\nwith one:\n    pass\nwith one:\n    pass",
    "P005": "bars = wl.barrier(2)\nbars.wait(0)",
    "P006": in_roles(
        PUT, GET + "\nwith wl.one_thread():\n    wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile)"
    ),
    "P008 no consumer": in_roles(PUT),
    "P008 two producers": in_roles(PUT, PUT),
    "P008 no producer": in_roles(math=GET),
    "P009": in_roles(PUT, GET, before="item = ring.take()"),
    "P010": in_roles("with ring.put() as s:\n    with ring.put() as t:\n        pass", GET),
    "P011": in_roles(
        "with ring.put() as s:\n"
        "    for k in wl.range(2):\n"
        "        wl.copy_async(x[wl.ds(0, 64), wl.ds(k, 64)], s)",
        GET,
    ),
    "P012 behind": in_roles(PUT, TAKE + "item.release(behind=2)"),
    "P012 takes": in_roles(PUT, "a = ring.take()\nb = ring.take()\nc = ring.take()"),
    "P012 both": in_roles(PUT, "a = ring.take()\nb = ring.take()\na.release(behind=1)"),
    "P013 pipe": in_roles(PUT, "other = wl.pipe(2, slots=[tile])\n" + GET),
    "P013 shared": in_roles(PUT, "mine = wl.shared((8, 8), wl.f32)\n" + GET),
    "P013 barrier": "for i in wl.range(n):\n    bars = wl.barrier(2)",
    "P014": in_roles(
        PUT,
        GET + "\nwl.store(y[0, wl.ds(0, 8)], t8)",
        before="t8 = wl.zeros((8,), wl.bf16)",
    ),
    "P015 name": "with wl.one_thread():\n    k = n + 1\nprint(k)",
    "P015 changed": "k = n\nwith wl.one_thread():\n    k = n + 1\nprint(k)",
    "P015 loop": "k = n\nfor i in wl.range(n):\n    print(k)\n"
    "    with wl.one_thread():\n        k = n + 1",
    "P015 put": in_roles("with ring.put() as s:\n    k = n * 2\nprint(k)", GET),
    "P016": "with (1, 2) as pair:\n    pass",
    "P016 number": "with n:\n    pass",
    "P017": "with wl.roles():\n    with wl.role('a'):\n        pass\nprint(n)",
    "P017 loop": "for i in wl.range(n):\n    with wl.roles():\n        pass",
    "P018": "with wl.roles():\n    with wl.role('a'):\n        pass\n    k = n + 1",
    "P018 if": "with wl.roles():\n"
    "    if True:\n        k = n + 1\n    with wl.role('a'):\n        pass",
    "P019 take": in_roles(PUT, "with wl.one_thread():\n    item = ring.take()\n" + GET),
    "P019 put": in_roles("with wl.one_thread():\n    with ring.put() as s:\n        pass", GET),
    "P019 thread": "with wl.one_thread():\n    with wl.one_thread():\n        pass",
    "P020 copy": in_roles(PUT, GET + "\nwl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 64)])"),
    "P020 expect": "bar = wl.barrier()\nbar.expect(64)",
    "P020 commit": "wl.copy_commit()",
    "P021 tile": "with wl.one_thread():\n    t = wl.arange(8)",
    "P022": in_roles(PUT, TAKE + "item.release()\nitem.release()"),
    "P023 branch": in_roles(PUT, TAKE + "if n > 0:\n    item.release()"),
    "P023 thread": in_roles(PUT, TAKE + "with wl.one_thread():\n    item.release()"),
    "P024": in_roles(PUT, TAKE + "item.release()\nt = item[0].T.load()"),
    "P024 get": in_roles(PUT, GET + "\nu = s.load()"),
    "P025 order": in_roles(
        PUT, "a = ring.take()\nb = ring.take()\nb.release()\na.release(behind=1)"
    ),
    "P026": in_roles(PUT, "for k in wl.range(n):\n    item = ring.take()\n    t = item[0].load()"),
    "P040": in_roles(PUT, GET + TURN.format("0"), before="unit = wl.turns(3)"),
    "P040 twice": in_roles(
        PUT + TURN.format("1"), GET + TURN.format("1"), before="unit = wl.turns(2)"
    ),
    "P041 two": in_roles(
        PUT, GET + TURN.format("0") + TURN.format("1"), before="unit = wl.turns(2)"
    ),
    "P041 inside": in_roles(
        PUT, GET + "\nwith unit.turn(0), unit.turn(0):\n    pass", before="unit = wl.turns(1)"
    ),
    "P041 number": in_roles(PUT, GET + TURN.format("n"), before="unit = wl.turns(2)"),
    "P041 outside": in_roles(PUT, GET + TURN.format("2"), before="unit = wl.turns(2)"),
    "P041 replicas": "unit = wl.turns(4)\nwith wl.roles():\n"
    "    with wl.role('a', replicas=2):\n        with unit.turn(1):\n            pass",
    "P042": DEALT.format("pass"),
    "P010 out": in_roles(PUT, GET + OUT.format("with ring.put() as u:\n        pass"), before=TO),
    "P043": in_roles(
        PUT,
        GET + OUT.format("if n > 0:\n        wl.copy_async(t, y[wl.ds(0, 64), wl.ds(0, 64)])"),
        before=TO,
    ),
    "P044": in_roles(PUT, GET + OUT.format("t.store(wl.zeros((64, 64), wl.bf16))"), before=TO),
    "P024 sent": in_roles(
        PUT,
        GET + OUT.format("wl.copy_async(t, y[wl.ds(0, 64), wl.ds(0, 64)])") + "\nu = t.load()",
        before=TO,
    ),
    "P020 out": in_roles(
        PUT, GET + OUT.format("wl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 64)])"), before=TO
    ),
    "B013": "with wl.roles():\n    with wl.role('a', registers=41):\n        pass",
    "L012": "t = wl.shared((8, 24), wl.bf16, swizzle=32)",
    "L013 n": in_roles(
        PUT,
        "acc = wl.zeros((64, 20), wl.f32)\n"
        + GET.replace("t = s.load()", "")
        + "acc = wl.dot_async(s, odd.T, acc)",
        before="odd = wl.shared((20, 64), wl.bf16)",
    ),
    "L013 m": "a = wl.shared((48, 64), wl.bf16)\n"
    "acc = wl.dot_async(a, a.T, wl.zeros((48, 48), wl.f32))",
    "L013 wide": "a = wl.shared((64, 16), wl.bf16)\nb = wl.shared((16, 512), wl.bf16)\n"
    "acc = wl.dot_async(a, b, wl.zeros((64, 512), wl.f32))",
    "L013 dtype": "a = wl.shared((64, 64), wl.i16)\n"
    "acc = wl.dot_async(a, a.T, wl.zeros((64, 64), wl.f32))",
    "L013 two dtypes": "a = wl.shared((64, 64), wl.f16)\nb = wl.shared((64, 64), wl.f8e4m3)\n"
    "acc = wl.dot_async(a, b.T, wl.zeros((64, 64), wl.f32))",
    "L013 along": "a = wl.shared((64, 64), wl.f8e4m3)\n"
    "acc = wl.dot_async(a, a, wl.zeros((64, 64), wl.f32))",
    "L013 along m": "a = wl.shared((64, 64), wl.f32)\n"
    "acc = wl.dot_async(a.T, a.T, wl.zeros((64, 64), wl.f32))",
    "L013 k": "a = wl.shared((64, 48), wl.f8e4m3)\n"
    "acc = wl.dot_async(a, a.T, wl.zeros((64, 64), wl.f32))",
    "L013 n of i8": "a = wl.shared((64, 32), wl.i8)\nb = wl.shared((40, 32), wl.u8)\n"
    "acc = wl.dot_async(a, b.T, wl.zeros((64, 40), wl.i32))",
    "T002 sums of i8": "a = wl.shared((64, 32), wl.i8)\n"
    "acc = wl.dot_async(a, a.T, wl.zeros((64, 64), wl.f32))",
    "L014": "with wl.roles():\n    with wl.role('a', warps=8):\n"
    "        acc = wl.dot_async(tile, tile.T, wl.zeros((64, 64), wl.f32))",
    "L015 constant": "t = tile[wl.ds(4, 8), :].load()",
    "L015 run time": "t = tile[wl.ds(n * 4, 8), :].load()",
    "L015 panel": "w = wl.shared((8, 128), wl.bf16)\nt = w[:, wl.ds(32, 64)].load()",
    # Codes of other letters that only programs of these levels can show.
    "F027 skip": DEALT.format("ring.skip(-1)"),
    "F027 turns": "unit = wl.turns(0)",
    "T015 to": "other = wl.pipe(2, slots=[tile], to='tensor')",
    "T015 channel": "ch = wl.channel((8,), wl.f32, deliver='some')",
    "T005 channel": "ch = wl.channel((8,), wl.f32)\nwith wl.roles():\n    with wl.role('a'):\n"
    "        ch.send(wl.zeros((4,), wl.f32))\n    with wl.role('b'):\n        t = ch.receive()",
    "T015 deliver": "other = wl.pipe(2, slots=[tile], deliver='some')",
    "F018 return": "with wl.one_thread():\n    return",
    "F027 parity": "bar = wl.barrier(2)[n % 2]\nbar.arrive(n)",
    "F037 slot": "tiles = wl.shared((8, 64), wl.bf16, slots=2)\nt = tiles[2].load()",
    "F037 barrier": "bars = wl.barrier(2)\nbars[2].wait(0)",
    "T002 acc": "acc = wl.dot_async(tile, tile, wl.zeros((64, 64), wl.f16))",
    "T005 product": "acc = wl.dot_async(tile, tile, wl.zeros((64, 32), wl.f32))",
    "T005 copy": "with wl.one_thread():\n    wl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 32)])",
    "T005 store": "tile.store(wl.zeros((64, 32), wl.bf16))",
    "T013 window": "t = tile[wl.ds(32, 64), :].load()",
    "T015 slots": "tiles = wl.shared((8, 64), wl.bf16, slots=2)\nt = tiles.load()",
    "T015 used": "view = tile.T\nring2 = wl.pipe(2, slots=[tile])",
    "T015 pipe": "t = ring[0]",
    "T015 operand": "a = wl.zeros((64, 64), wl.bf16)\n"
    "acc = wl.dot_async(tile, a, wl.zeros((64, 64), wl.f32))",
    "T015 left": "acc = wl.dot_async(1.0, tile, wl.zeros((64, 64), wl.f32))",
    "T015 copy": "with wl.one_thread():\n    wl.copy_async(tile, tile)",
    "T015 arithmetic": "t = tile * 2.0",
    "T015 pending": "acc = wl.dot_async(tile, tile, wl.zeros((64, 64), wl.f32))\nt = acc + 1.0",
}


def as_kernel(body: str) -> str:
    """A whole kernel, or a body with a ring and a tile at hand."""
    if body.lstrip().startswith("def "):
        return body
    head = """
def kernel(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    ring = wl.pipe(2, slots=[wl.shared((64, 64), wl.bf16)])
    tile = wl.shared((64, 64), wl.bf16)
"""
    return head + "\n".join("    " + line for line in body.split("\n"))


@pytest.mark.parametrize("name", MISTAKES)
def test_report(source, golden, name):
    error = source.refused(as_kernel(MISTAKES[name]), x="bf16 n1", y="bf16 n1")
    assert [report.code for report in error.reports] == [name.split()[0]], str(error)
    golden(str(error), name)


def lowered(source, text: str, **given) -> CompileError:
    """The error that the passes give."""
    kernel = source.build(as_kernel(text), **({"x": "bf16 n1", "y": "bf16 n1"} | given))
    with pytest.raises(CompileError) as caught:
        lower(kernel, SM_90A)
    return caught.value


def copy(window: str, tile: str, tensor: str = "x") -> str:
    return f"{tile}\nwith wl.one_thread():\n    wl.copy_async(s, {tensor}[{window}])"


ROLES = "with wl.roles():\n"
LOWERED = {
    "B010": ROLES
    + "    with wl.role('load', warps=1, registers=40):\n        pass\n"
    + "    with wl.role('math', warps=4, replicas=2, registers=240):\n        pass",
    "B010 small": ROLES
    + "    with wl.role('a', warps=6, registers=200):\n        pass\n"
    + "    with wl.role('b', warps=10):\n        pass",
    "B011": ROLES + "    with wl.role('many', warps=2, replicas=16):\n        pass",
    "B012": ROLES
    + "    with wl.role('load', warps=1):\n        pass\n"
    + "    with wl.role('math', warps=4, replicas=8):\n        pass",
    "L010 long": copy("wl.ds(0, 512), wl.ds(0, 64)", "s = wl.shared((512, 64), wl.bf16)"),
    "L010 narrow": copy("wl.ds(0, 8), wl.ds(0, 4)", "s = wl.shared((8, 4), wl.bf16)"),
    "L010 order": copy("wl.ds(0, 64), wl.ds(0, 64)", "s = wl.shared((64, 64), wl.bf16).T"),
    "L010 rows": copy(
        "wl.ds(0, 64), wl.ds(0, 64)", "s = wl.shared((64, 64), wl.bf16)", "x.rows(0, n)"
    ),
    "L010 part": copy(
        "wl.ds(0, 8), wl.ds(0, 32)", "s = wl.shared((8, 64), wl.bf16)[:, wl.ds(0, 32)]"
    ),
    "L010 read": copy("wl.ds(0, 64), wl.ds(0, 64)", "s = wl.shared((64, 64), wl.bf16)")
    + "\nt = wl.load(x[0, wl.ds(0, 8)])\nwl.store(y[0, wl.ds(0, 8)], t)",
    "L011": "plain = wl.shared((64, 64), wl.bf16, swizzle=0)\n"
    "acc = wl.dot_async(tile, plain.T, wl.zeros((64, 64), wl.f32))\n"
    "wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], acc.wait().cast(wl.bf16))",
    "L016": "s = wl.zeros((64, 64), wl.f32)\nfor k in wl.range(n):\n"
    "    s = wl.dot_async(tile, tile.T, wl.zeros((64, 64), wl.f32))\n"
    "wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], wl.dot_async(tile, tile.T, s).wait().cast(wl.bf16))",
    "L016 swap": "a = wl.dot_async(tile, tile.T, wl.zeros((64, 64), wl.f32))\n"
    "b = wl.dot_async(tile, tile.T, wl.zeros((64, 64), wl.f32))\nfor k in wl.range(n):\n"
    "    a, b = b, wl.dot_async(tile, tile.T, a)\n"
    "wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], (a.wait() + b.wait()).cast(wl.bf16))",
}


@pytest.mark.parametrize("name", LOWERED)
def test_report_of_the_passes(source, golden, name):
    error = lowered(source, LOWERED[name])
    assert error.code == name.split()[0], str(error)
    golden(str(error), name)


def test_no_axis_is_contiguous(source, golden):
    text = copy("wl.ds(0, 64), wl.ds(0, 64)", "s = wl.shared((64, 64), wl.bf16)")
    golden(str(lowered(source, text, x="bf16 nn")))


def test_a_product_in_a_block_of_another_size(source, golden):
    text = as_kernel(LOWERED["L011"].replace(", swizzle=0", ""))
    kernel = source.build(text, x="bf16 n1", y="bf16 n1")
    kernel.warps = 8
    with pytest.raises(CompileError) as caught:
        lower(kernel, SM_90A)
    golden(str(caught.value))
