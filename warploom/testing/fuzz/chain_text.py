"""The text of a random program of roles and pipes: a file of its own with the kernel, its inputs,
and what it should give, in NumPy. Knows not how it is run."""

from __future__ import annotations

from warploom.testing.fuzz.chain import Chain, Link, Sink

# The end of a file: it runs its kernel, and says what came out as it should.
MAIN = (
    'if __name__ == "__main__":',
    "    held = inputs()",
    "    LAUNCHER(**held)",
    "    for name, wanted in expected(**held).items():",
    "        print(name, np.array_equal(held[name], wanted, equal_nan=True))",
    "",
)

NUMPY = {"i32": "np.int32", "f32": "np.float32", "bf16": "ml_dtypes.bfloat16"}


def indented(lines: list[str], depth: int = 1) -> list[str]:
    """Lines further to the right."""
    return ["    " * depth + line for line in lines]


def text_of(chain: Chain) -> str:
    """The whole file."""
    head = [
        f'"""A random program: `warploom fuzz --seed {chain.seed} --count 1`, or run this file."""',
        "",
        *(["import ml_dtypes"] if chain.dtype == "bf16" else []),
        "import numpy as np",
        "",
        "import warploom as wl",
        "",
        "",
    ]
    return "\n".join([*head, *_kernel(chain), "", "", *_inputs(chain), "", "", *_expected(chain)])


def outputs(chain: Chain) -> list[tuple[int, int, Sink]]:
    """The sinks that write each item: number of the link, of the sink there, and the sink."""
    return [
        (number, which, sink)
        for number, link in enumerate(chain.links)
        for which, sink in enumerate(link.sinks)
        if sink.writes
    ]


# ---- the kernel ---------------------------------------------------------------------------------


def _kernel(chain: Chain) -> list[str]:
    names = ", flat: wl.Tensor" if chain.fill == "bulk" else ""
    names += "".join(f", z{n}_{w}: wl.Tensor" for n, w, _ in outputs(chain))
    head = f"def chain(x: wl.Tensor, y: wl.Tensor{names}, tiles: wl.i32, steps: wl.i32):"
    body = ["block = wl.program_id(0)", *_pipes(chain), "with wl.roles():"]
    roles = _sources(chain)
    rows = 0
    for number, link in enumerate(chain.links):
        if number + 1 < len(chain.links):
            roles += _relay(chain, number)
        for which, sink in enumerate(link.sinks):
            roles += _sink(chain, number, which, rows)
            rows += sink.replicas
    return ["@wl.kernel", head, *indented([*body, *indented(roles)])]


def _tile(chain: Chain, swizzle: int) -> str:
    more = f", swizzle={swizzle}" if swizzle >= 0 else ""
    return f"wl.shared(({chain.rows}, {chain.columns}), wl.{chain.dtype}{more})"


def _pipes(chain: Chain) -> list[str]:
    lines = []
    for number, link in enumerate(chain.links):
        deliver = ', deliver="one"' if link.one else ""
        if link.channel:
            shape = f"({chain.rows}, {chain.columns}), wl.{chain.dtype}"
            lines.append(f"p{number} = wl.channel({shape}, stages={link.stages}{deliver})")
            continue
        shared = ", cluster=True" if number == 0 and chain.shared else ""
        slots = f"slots=[{_tile(chain, chain.swizzle)}]"
        lines.append(f"p{number} = wl.pipe({link.stages}, {slots}{deliver}{shared})")
        if link.turns:
            lines.append(f"unit = wl.turns({link.sinks[0].replicas})")
    lines += [
        f"unit = wl.turns({link.sinks[0].replicas})"
        for link in chain.links
        if link.channel and link.turns
    ]
    for number, which, sink in outputs(chain):
        if sink.writes == "engine":
            slots = f"slots=[{_tile(chain, -1)}], to=wl.copy_engine"
            lines.append(f"out{number}_{which} = wl.pipe({sink.out_stages}, {slots})")
    return lines


def _walk(chain: Chain, body: list[str]) -> list[str]:
    """The loops that every end of every pipe goes through: `steps` items a tile, and one more in
    every other tile. `n` is the number of the item."""
    if chain.form == "while":
        return [
            "t = 0",
            "n = 0",
            "while t < tiles:",
            "    k = 0",
            "    while k < steps + t % 2:",
            *indented([*body, "k = k + 1", "n = n + 1"], 2),
            "    t = t + 1",
        ]
    if chain.form == "flat":
        return ["for n in wl.range(tiles * steps + tiles // 2):", *indented(body)]
    return [
        "n = 0",
        "for t in wl.range(tiles):",
        "    for k in wl.range(steps + t % 2):",
        *indented([*body, "n = n + 1"], 2),
    ]


def _sources(chain: Chain) -> list[str]:
    """The roles that fill the first pipe."""
    rows, columns, first = chain.rows, chain.columns, chain.links[0]
    whole = f"x[n, wl.ds(0, {rows}), wl.ds(0, {columns})]"
    if first.channel:
        return _source(chain, "source", chain.fill_warps, [f"p0.send(wl.load({whole}))"])
    if chain.fill == "two":
        half = rows // 2
        parts = [f"x[n, wl.ds({at}, {half}), wl.ds(0, {columns})]" for at in (0, half)]
        slots = [f"slot[wl.ds({at}, {half}), :]" for at in (0, half)]
        copied = _put([f"wl.copy_async({parts[0]}, {slots[0]})"])
        stored = _put([f"{slots[1]}.store(wl.load({parts[1]}))"])
        lines = _source(chain, "top", 1, copied)
        return lines + _source(chain, "bottom", chain.fill_warps, stored)
    warps = chain.fill_warps
    if chain.fill == "copy":
        fill, warps = f"wl.copy_async({whole}, slot)", 1
        if chain.shared:
            part = f"wl.ds(wl.cluster_rank() * {rows // chain.cluster}, {rows // chain.cluster})"
            own = f"x[n, {part}, wl.ds(0, {columns})]"
            fill = f"wl.copy_async({own}, slot[{part}, :], multicast=wl.cluster_mask(0))"
    elif chain.fill == "bulk":
        count, warps = rows * columns, 1
        fill = f"wl.copy_bulk(flat[n, wl.ds(0, {count})], slot.reshape(({count},)))"
    elif chain.fill == "async":
        fill = f"wl.copy_by_threads({whole}, slot)"
    else:
        fill = f"slot.store(wl.load({whole}))"
    return _source(chain, "source", warps, _put([fill]))


def _put(lines: list[str]) -> list[str]:
    return ["with p0.put() as slot:", *indented(lines)]


def _source(chain: Chain, name: str, warps: int, body: list[str]) -> list[str]:
    return [f'with wl.role("{name}", warps={warps}):', *indented(_walk(chain, body))]


def _consumed(pipe: str, behind: int, take: str, use: list[str]) -> list[str]:
    """Take an item as `tile`, use it, hand it back."""
    if take == "receive":
        return [f"tile = {pipe}.receive()", *use]
    if take in ("take", "ready"):
        return [
            f"item = {pipe}.take()",
            "tile = item[0].load()",
            *use,
            f"item.release(behind={behind})",
        ]
    return [f"with {pipe}.get(behind={behind}) as held:", *indented(["tile = held.load()", *use])]


def _relay(chain: Chain, number: int) -> list[str]:
    link, after = chain.links[number], chain.links[number + 1]
    made = "tile * 5 + 1"
    onward = [f"with p{number + 1}.put() as slot:", f"    slot.store({made})"]
    if after.channel:
        onward = [f"p{number + 1}.send({made})"]
    take = "receive" if link.channel else link.relay_take
    uses = _consumed(f"p{number}", link.relay_behind, take, onward)
    head = f'with wl.role("relay{number}", warps={link.relay_warps}):'
    return [head, *indented(_walk(chain, uses))]


def _sink(chain: Chain, number: int, which: int, first: int) -> list[str]:
    """A role that folds the items of pipe `number` and writes rows `first` … of y."""
    link = chain.links[number]
    sink, pipe = link.sinks[which], f"p{number}"
    rows, columns = chain.rows, chain.columns
    window = f"wl.ds(0, {rows}), wl.ds(0, {columns})"
    use = ["total = total * 3 + tile"]
    place = f"z{number}_{which}[block, r, n, {window}]"
    if sink.writes == "store":
        use.append(f"wl.store({place}, tile)")
    elif sink.writes == "engine":
        use += [f"with out{number}_{which}.put() as sent:", "    sent.store(tile)"]
        use.append(f"    wl.copy_async(sent, {place})")
    take = "receive" if link.channel else sink.take
    uses = _consumed(pipe, sink.behind, take, use)
    inner = _dealt(link, sink, pipe, uses) if link.one else _walk(chain, uses)
    if sink.take == "ready" and not link.one:
        inner = _polled(pipe, uses)
    return [
        f'with wl.role("sink{number}_{which}", warps={sink.warps}, replicas={sink.replicas}) as r:',
        f"    total = wl.zeros(({rows}, {columns}), wl.{chain.dtype})",
        *indented(inner),
        f"    wl.store(y[block, {first} + r, {window}], total)",
    ]


def _dealt(link: Link, sink: Sink, pipe: str, uses: list[str]) -> list[str]:
    """Each replica takes the items of its tiles."""
    inner = ["for k in wl.range(steps + t % 2):", *indented([*uses, "n = n + 1"])]
    if link.turns:
        inner = ["with unit.turn(r):", *indented(inner)]
    return [
        "n = 0",
        "for t in wl.range(tiles):",
        f"    if t % {sink.replicas} == r:",
        *indented(inner, 2),
        "    else:",
        f"        {pipe}.skip(steps + t % 2)",
        "        n = n + steps + t % 2",
    ]


def _polled(pipe: str, uses: list[str]) -> list[str]:
    """Take what is there, and then the rest."""
    return [
        "count = tiles * steps + tiles // 2",
        "n = 0",
        "for _ in wl.range(count):",
        f"    if {pipe}.ready():",
        *indented([*uses, "n = n + 1"], 2),
        "for _ in wl.range(n, count):",
        *indented([*uses, "n = n + 1"]),
    ]


# ---- inputs and what comes of them --------------------------------------------------------------


def _inputs(chain: Chain) -> list[str]:
    shape = f"(max(1, COUNT), {chain.rows}, {chain.columns})"
    dtype = NUMPY[chain.dtype]
    low, high = ("-(2**31)", "2**31") if chain.dtype == "i32" else ("-8", "9")
    sinks = sum(sink.replicas for link in chain.links for sink in link.sinks)
    y = f"({chain.blocks}, {sinks}, {chain.rows}, {chain.columns})"
    lines = [
        f"GRID, CLUSTER, TILES, STEPS = {chain.blocks}, {chain.cluster}, {chain.tiles}, "
        f"{chain.steps}",
        "COUNT = TILES * STEPS + TILES // 2",
        "LAUNCHER = chain.launch(GRID, cluster=CLUSTER)",
        "",
        "",
        "def inputs():",
        '    """The arguments by name; outputs are zero."""',
        f"    rng = np.random.default_rng({chain.seed})",
        f"    x = rng.integers({low}, {high}, {shape}).astype({dtype})",
        *_laid(chain),
        f'    held = {{"x": x, "y": np.zeros({y}, {dtype})}}',
    ]
    if chain.fill == "bulk":
        lines.append('    held["flat"] = x.reshape(len(x), -1)')
    for number, which, sink in outputs(chain):
        z = f"({chain.blocks}, {sink.replicas}, max(1, COUNT), {chain.rows}, {chain.columns})"
        lines.append(f'    held["z{number}_{which}"] = np.zeros({z}, {dtype})')
    return [*lines, '    return {**held, "tiles": TILES, "steps": STEPS}']


def _laid(chain: Chain) -> list[str]:
    """How x lies in memory, where not row behind row."""
    if chain.layout == "pitch":
        return [f"    x = np.pad(x, ((0, 0), (0, 0), (0, 8)))[:, :, :{chain.columns}]"]
    if chain.layout == "turned":
        return ["    x = np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)"]
    return []


def _expected(chain: Chain) -> list[str]:
    """NumPy, by the number of each item: what each sink folds and writes, in program order."""
    sinks = [
        (number, which, sink.replicas, link.one, bool(sink.writes))
        for number, link in enumerate(chain.links)
        for which, sink in enumerate(link.sinks)
    ]
    return [
        "# Pipe, number there, replicas, whether items are dealt by tiles, and each is written.",
        f"SINKS = {sinks}",
        "",
        "",
        "def expected(x, y, **others):",
        '    """What the outputs should hold: each sink folds what it takes, in order."""',
        "    found = {name: np.zeros_like(z) for name, z in others.items() if name[0] == 'z'}",
        "    rows = []",
        "    for pipe, which, replicas, one, writes in SINKS:",
        "        for r in range(replicas):",
        "            total, n = np.zeros_like(x[0]), 0",
        "            for t in range(TILES):",
        "                for _ in range(STEPS + t % 2):",
        "                    if not one or t % replicas == r:",
        "                        tile = x[n]",
        "                        for _ in range(pipe):",
        "                            tile = tile * x.dtype.type(5) + x.dtype.type(1)",
        "                        total = total * x.dtype.type(3) + tile",
        "                        if writes:",
        '                            found[f"z{pipe}_{which}"][:, r, n] = tile',
        "                    n += 1",
        "            rows.append(total)",
        '    return {"y": np.stack([np.stack(rows)] * GRID), **found}',
        "",
        "",
        *MAIN,
    ]
