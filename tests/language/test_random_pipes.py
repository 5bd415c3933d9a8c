"""Random programs of roles and pipes: chains in which roles hand items on, with more consumers at
every pipe, any stages, shares and trip counts, in one block or in all blocks of a cluster, which
fill the first pipe for each other. Each is checked on several schedules, and every consumer folds
what it sees in an order-sensitive way, held against plain counting."""

import importlib.util
import itertools
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROWS, COLUMNS = 16, 32


@dataclass(frozen=True)
class Sink:
    """A role that only consumes: `replicas` share a pipe as the pipe deals its items."""

    warps: int
    replicas: int
    behind: int
    take: bool  # and release, instead of get


@dataclass(frozen=True)
class Link:
    """One pipe of the chain with the role that hands its items on, and its sinks."""

    stages: int
    by_copy: bool  # of the first pipe: who fills it
    one: bool  # of the last pipe: items are dealt by tiles
    turns: bool
    relay_warps: int
    relay_behind: int
    sinks: tuple[Sink, ...]


@st.composite
def links(draw: st.DrawFn) -> tuple[Link, ...]:
    """A chain of one to three pipes."""
    count = draw(st.integers(1, 3))
    made = []
    for number in range(count):
        stages = draw(st.sampled_from([1, 2, 3, 4]))
        last = number == count - 1
        one = last and draw(st.booleans())
        most = min(stages - 1, 2)
        sink = st.builds(
            Sink,
            warps=st.sampled_from([1, 2, 3, 4]),
            replicas=st.sampled_from([1, 2, 3] if one else [1, 2]),
            behind=st.integers(0, most),
            take=st.booleans(),
        )
        sinks = draw(st.lists(sink, min_size=1 if last else 0, max_size=1 if one else 2))
        made.append(
            Link(
                stages=stages,
                by_copy=draw(st.booleans()),
                one=one,
                turns=one and draw(st.booleans()),
                relay_warps=draw(st.sampled_from([1, 2, 4])),
                relay_behind=draw(st.integers(0, most)),
                sinks=tuple(sinks),
            )
        )
    return tuple(made)


# ---- the program as text -----------------------------------------------------------------------


def indented(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def walk(body: list[str]) -> list[str]:
    """The loops that every end of every pipe goes through: `steps` items a tile, and one more in
    every other tile."""
    return [
        "for t in wl.range(tiles):",
        "    for k in wl.range(steps + t % 2):",
        *indented(body, 2),
    ]


def consumed(pipe: str, behind: int, take: bool, use: list[str]) -> list[str]:
    """Take an item as `tile`, use it, hand it back."""
    if take:
        return [
            f"item = {pipe}.take()",
            "tile = item[0].load()",
            *use,
            f"item.release(behind={behind})",
        ]
    return [
        f"with {pipe}.get(behind={behind}) as held:",
        "    tile = held.load()",
        *indented(use, 1),
    ]


FOLD = ["total = total * 3 + tile"]


def sink_of(number: int, link: Link, which: int, sink: Sink, first: int) -> list[str]:
    """A role that folds the items of pipe `number` and writes rows `first` … of y."""
    pipe = f"p{number}"
    head = (
        f'with wl.role("sink{number}_{which}", warps={sink.warps}, replicas={sink.replicas}) as r:'
    )
    zero = f"total = wl.zeros(({ROWS}, {COLUMNS}), wl.i32)"
    place = f"y[block, {first} + r, wl.ds(0, {ROWS}), wl.ds(0, {COLUMNS})]"
    write = f"wl.store({place}, total)"
    uses = consumed(pipe, sink.behind, sink.take, FOLD)
    if not link.one:
        return [head, *indented([zero, *walk(uses), write], 1)]
    inner = ["for k in wl.range(steps + t % 2):", *indented(uses, 1)]
    if link.turns:
        inner = ["with unit.turn(r):", *indented(inner, 1)]
    share = [
        zero,
        "for t in wl.range(tiles):",
        f"    if t % {sink.replicas} == r:",
        *indented(inner, 2),
        "    else:",
        f"        {pipe}.skip(steps + t % 2)",
        write,
    ]
    return [head, *indented(share, 1)]


def source_of(chain: tuple[Link, ...]) -> str:
    """The text of the kernel."""
    tile = f"[wl.shared(({ROWS}, {COLUMNS}), wl.i32)]"
    lines = ["block = wl.program_id(0)", f"PART = {ROWS} // wl.cluster_size()"]
    lines += [
        f"p{i} = wl.pipe({k.stages}, slots={tile}, deliver={'one' if k.one else 'all'!r}, "
        f"cluster={i == 0 and k.by_copy})"
        for i, k in enumerate(chain)
    ]
    last = chain[-1]
    if last.turns:
        lines.append(f"unit = wl.turns({last.sinks[0].replicas})")
    window = f"x[t * (steps + 1) + k, wl.ds(0, {ROWS}), wl.ds(0, {COLUMNS})]"
    part = "wl.ds(wl.cluster_rank() * PART, PART)"
    fill = f"slot.store(wl.load({window}))"
    if chain[0].by_copy:
        window = f"x[t * (steps + 1) + k, {part}, wl.ds(0, {COLUMNS})]"
        fill = f"wl.copy_async({window}, slot[{part}, :], multicast=wl.cluster_mask(0))"
    roles = [
        f'with wl.role("source", warps={1 if chain[0].by_copy else 2}):',
        *indented(walk(["with p0.put() as slot:", f"    {fill}"]), 1),
    ]
    rows = 0
    for number, link in enumerate(chain):
        if number + 1 < len(chain):
            onward = [f"with p{number + 1}.put() as slot:", "    slot.store(tile * 5 + 1)"]
            uses = consumed(f"p{number}", link.relay_behind, take=True, use=onward)
            roles += [
                f'with wl.role("relay{number}", warps={link.relay_warps}):',
                *indented(walk(uses), 1),
            ]
        for which, sink in enumerate(link.sinks):
            roles += sink_of(number, link, which, sink, rows)
            rows += sink.replicas
    head = [
        "import warploom as wl",
        "",
        "",
        "@wl.kernel",
        "def chain(x: wl.Tensor, y: wl.Tensor, tiles: wl.i32, steps: wl.i32):",
    ]
    body = [*lines, "with wl.roles():", *indented(roles, 1)]
    return "\n".join([*head, *indented(body, 1), ""])


_count = itertools.count()


def loaded(text: str, folder: Path) -> ModuleType:
    """The text as a module of its own."""
    path = folder / f"chain_{next(_count)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what it should give -----------------------------------------------------------------------


def expected_of(chain: tuple[Link, ...], x: np.ndarray, tiles: int, steps: int) -> np.ndarray:
    """What each sink's replicas fold, in the order of the program."""
    found = []
    with np.errstate(over="ignore"):
        for number, link in enumerate(chain):
            for sink in link.sinks:
                for r in range(sink.replicas):
                    total = np.zeros((ROWS, COLUMNS), np.int32)
                    for t in range(tiles):
                        if link.one and t % sink.replicas != r:
                            continue
                        for k in range(steps + t % 2):
                            tile = x[t * (steps + 1) + k]
                            for _ in range(number):
                                tile = tile * np.int32(5) + np.int32(1)
                            total = total * np.int32(3) + tile
                    found.append(total)
    return np.stack(found)


def run(
    chain: tuple[Link, ...], cluster: int, tiles: int, steps: int, device, folder: Path
) -> None:
    text = source_of(chain)
    kernel = loaded(text, folder).chain
    shape = (max(1, tiles * (steps + 1)), ROWS, COLUMNS)
    x = np.random.default_rng(steps).integers(-(2**31), 2**31, shape, np.int32)
    expected = np.stack([expected_of(chain, x, tiles, steps)] * cluster)
    y = device.put(np.zeros_like(expected))
    kernel.launch(cluster, cluster=cluster)(device.put(x), y, tiles, steps)
    assert np.array_equal(device.get(y), expected), text
    if device.name == "sim":
        again = np.zeros_like(expected)
        launcher = kernel.launch(cluster, cluster=cluster)
        findings = launcher.check(x, again, tiles, steps, seeds=2)
        assert findings.clean, f"{findings.text()}\n{text}"
        assert np.array_equal(again, expected), text


few = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
many = settings(few, max_examples=200)
CLUSTERS = st.sampled_from([1, 2])


@few
@given(chain=links(), cluster=CLUSTERS, tiles=st.integers(0, 4), steps=st.integers(0, 6))
def test_random_chains(device, tmp_path, chain, cluster, tiles, steps):
    run(chain, cluster, tiles, steps, device, tmp_path)


@pytest.mark.slow
@many
@given(chain=links(), cluster=CLUSTERS, tiles=st.integers(0, 5), steps=st.integers(0, 9))
def test_many_random_chains(device, tmp_path, chain, cluster, tiles, steps):
    run(chain, cluster, tiles, steps, device, tmp_path)
