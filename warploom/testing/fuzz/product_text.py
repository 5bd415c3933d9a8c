"""The text of a random product of matrices: a file of its own with the kernel, its inputs, and what
it should give, in NumPy. Knows not how it is run."""

from __future__ import annotations

from warploom.testing.fuzz.chain_text import MAIN, indented
from warploom.testing.fuzz.product import DTYPES, Matrices

NUMPY = {
    **{"f16": "np.float16", "bf16": "ml_dtypes.bfloat16", "f32": "np.float32"},
    **{"f8e4m3": "ml_dtypes.float8_e4m3fn", "f8e5m2": "ml_dtypes.float8_e5m2"},
    **{"i8": "np.int8", "u8": "np.uint8"},
}
SUMS = {"f32": "np.float32", "i32": "np.int32"}


def text_of(made: Matrices) -> str:
    """The whole file."""
    head = [
        f'"""A random program: `warploom fuzz --seed {made.seed} --count 1`, or run this file."""',
        "",
        *(["import ml_dtypes"] if "ml_dtypes" in NUMPY[made.dtype] else []),
        "import numpy as np",
        "",
        "import warploom as wl",
        "",
        "",
    ]
    return "\n".join([*head, *_kernel(made), "", "", *_data(made)])


def _kernel(made: Matrices) -> list[str]:
    deliver = ', deliver="one"' if made.one else ""
    shared = ", cluster=True" if made.cluster > 1 else ""
    b_shape = f"({made.bn}, {made.bk})" if made.turned else f"({made.bk}, {made.bn})"
    slots = f"[wl.shared(({made.bm}, {made.bk}), a.dtype), wl.shared({b_shape}, b.dtype)]"
    body = [
        f"steps = (a.shape[1] + {made.bk - 1}) // {made.bk}",
        f"across = (c.shape[1] + {made.bn - 1}) // {made.bn}",
        f"tiles = (c.shape[0] + {made.bm - 1}) // {made.bm} * across",
        f"ring = wl.pipe({made.stages}, slots={slots}{deliver}{shared})",
    ]
    if made.turns:
        body.append(f"unit = wl.turns({made.replicas})")
    if made.out == "engine":
        body.append(f"out = wl.pipe(1, slots=[wl.shared((64, {made.bn}), c.dtype)], {_ENGINE})")
    if made.out == "channel":
        body.append(f"sums = wl.channel((64, {made.bn}), wl.{made.sum})")
    body += ["with wl.roles():", *indented([*_load(made), *_math(made)])]
    if made.out == "channel":
        body += indented(_write(made))
    head = "def product(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):"
    return ["@wl.kernel", head, *indented(body)]


_ENGINE = "to=wl.copy_engine"


def _tiles(made: Matrices, body: list[str]) -> list[str]:
    """The tiles of a block; those of a cluster do the same rows of neighbours together."""
    if made.cluster > 1:
        # Blocks of a cluster run equally often: a tile that is not there has no rows.
        first, step = f"wl.program_id(0) // {made.cluster}", f"wl.num_programs(0) // {made.cluster}"
        rows = f"(c.shape[0] + {made.bm * made.cluster - 1}) // {made.bm * made.cluster}"
        return [
            f"for t in wl.range({first}, {rows} * across, {step}):",
            f"    m = (t // across * {made.cluster} + wl.cluster_rank()) * {made.bm}",
            f"    n = t % across * {made.bn}",
            *indented(body),
        ]
    return [
        "for t in wl.range(wl.program_id(0), tiles, wl.num_programs(0)):",
        f"    m, n = t // across * {made.bm}, t % across * {made.bn}",
        *indented(body),
    ]


def _load(made: Matrices) -> list[str]:
    part = made.bn // made.cluster
    k = f"wl.ds(k * {made.bk}, {made.bk})"
    if made.turned:
        b, own = f"b[wl.ds(n, {made.bn}), {k}]", "sb"
        if made.cluster > 1:
            b = f"b[wl.ds(n + wl.cluster_rank() * {part}, {part}), {k}]"
            own = f"sb[wl.ds(wl.cluster_rank() * {part}, {part}), :]"
    else:
        b, own, rows = f"b[{k}, wl.ds(n, {made.bn})]", "sb", made.bk // made.cluster
        if made.cluster > 1:
            first = f"wl.cluster_rank() * {rows}"
            b = f"b[wl.ds(k * {made.bk} + {first}, {rows}), wl.ds(n, {made.bn})]"
            own = f"sb[wl.ds({first}, {rows}), :]"
    everyone = ", multicast=wl.cluster_mask(0)" if made.cluster > 1 else ""
    steps = [
        "for k in wl.range(steps):",
        "    with ring.put() as (sa, sb):",
        f"        wl.copy_async(a[wl.ds(m, {made.bm}), {k}], sa)",
        f"        wl.copy_async({b}, {own}{everyone})",
    ]
    return ['with wl.role("load", warps=1):', *indented(_tiles(made, steps))]


def _math(made: Matrices) -> list[str]:
    a = "sa" if made.one else "sa[wl.ds(r * 64, 64), :]"
    if made.registers:
        a += ".load()"
    b = "sb.T" if made.turned else "sb"
    steps = [
        "for k in wl.range(steps):",
        "    item = ring.take()",
        "    sa, sb = item",
        f"    acc = wl.dot_async({a}, {b}, acc)",
        f"    item.release(after=acc, behind={made.behind})",
        "tile = acc.wait()",
    ]
    start = [f"acc = wl.zeros((64, {made.bn}), wl.{made.sum})"]
    if made.turns:
        steps = ["with unit.turn(r):", *indented(steps)]
    work = [*start, *steps, *(["tile = wl.maximum(tile, 0)"] if made.rectified else [])]
    work += _out(made)
    if made.one:
        work = [
            "if whose == r:",
            *indented(work),
            "else:",
            "    ring.skip(steps)",
            f"whose = (whose + 1) % {made.replicas}",
        ]
        return [
            f'with wl.role("math", warps=4, replicas={made.replicas}) as r:',
            "    whose = 0",
            *indented(_tiles(made, work)),
        ]
    head = f'with wl.role("math", warps=4, replicas={made.replicas}) as r:'
    return [head, *indented(_tiles(made, work))]


def _place(made: Matrices) -> str:
    row = "m" if made.one else "m + r * 64"
    return f"c[wl.ds({row}, 64), wl.ds(n, {made.bn})]"


def _out(made: Matrices) -> list[str]:
    if made.out == "engine":
        copy = f"    wl.copy_async(slot, {_place(made)})"
        return ["with out.put() as slot:", "    slot.store(tile)", copy]
    if made.out == "channel":
        return ["sums.send(tile)"]
    return [f"wl.store({_place(made)}, tile)"]


def _write(made: Matrices) -> list[str]:
    """Another role writes what it receives from the one replica."""
    steps = [f"wl.store(c[wl.ds(m, 64), wl.ds(n, {made.bn})], sums.receive())"]
    return ['with wl.role("write", warps=4):', *indented(_tiles(made, steps))]


def _data(made: Matrices) -> list[str]:
    dtype, total = NUMPY[made.dtype], SUMS[made.sum]
    b_shape = (made.n, made.k) if made.turned else (made.k, made.n)
    low, high = (0, 4) if made.dtype == "u8" else (-3, 4)
    more = 2 * DTYPES[made.dtype][1] if made.pitch else 0
    a, b = (
        f"rng.integers({low}, {high}, ({rows}, {columns + more})).astype({dtype})"
        + (f"[:, :{columns}]" if more else "")
        for rows, columns in ((made.m, made.k), b_shape)
    )
    kept = "np.maximum(total, 0)" if made.rectified else "total"
    product = "a.astype(np.float64) @ b.astype(np.float64)" + (".T" if made.turned else "")
    return [
        f"LAUNCHER = product.launch({made.blocks}, cluster={made.cluster})",
        "",
        "",
        "def inputs():",
        '    """The arguments by name; whole numbers, so that each order of summation is exact."""',
        f"    rng = np.random.default_rng({made.seed})",
        f"    a = {a}",
        f"    b = {b}",
        f'    return {{"a": a, "b": b, "c": np.full(({made.m}, {made.n}), 77, {total})}}',
        "",
        "",
        "def expected(a, b, c):",
        '    """What the output should hold."""',
        f"    total = {product}",
        f'    return {{"c": {kept}.astype(c.dtype)}}',
        "",
        "",
        *MAIN,
    ]
