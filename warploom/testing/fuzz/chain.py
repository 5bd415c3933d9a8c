"""Random programs of roles and pipes, as what they are made of: a chain of roles that hand items
on, with more consumers at every pipe. Knows neither their text (`chain_text`) nor how they are run.

Who fills the first pipe, how many stages a pipe has, how items are shared out and handed back, and
how often all loops turn is drawn; that the program is right follows from its form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

DTYPES = ("i32", "f32", "bf16")
FILLS = ("copy", "threads", "async", "bulk", "two")
TAKES = ("get", "take", "ready")
FORMS = ("for", "while", "flat")
LAYOUTS = ("plain", "pitch", "turned")


@dataclass(frozen=True)
class Sink:
    """A role that only consumes: `replicas` share a pipe as it deals its items. It folds what it
    sees, and where it `writes` ("store", "engine") puts each item into a tensor besides. `take` is
    how it takes items of a pipe; tiles of a channel it receives, or polls for besides."""

    warps: int = 1
    replicas: int = 1
    behind: int = 0
    take: str = "get"
    writes: str = ""
    out_stages: int = 1


@dataclass(frozen=True)
class Link:
    """One pipe (or channel) of the chain with its sinks, and the role that hands its items on to
    the next one. `one`: items are dealt by tiles, in `turns` or not."""

    stages: int = 1
    channel: bool = False
    one: bool = False
    turns: bool = False
    relay_warps: int = 1
    relay_behind: int = 0
    relay_take: str = "take"
    sinks: tuple[Sink, ...] = ()


@dataclass(frozen=True)
class Chain:
    """A program, its sizes and its launch. `fill` says who fills the first pipe, and how; `layout`
    how the tensors lie: rows one behind the other, further apart, or across."""

    links: tuple[Link, ...]
    dtype: str = "i32"
    rows: int = 16
    columns: int = 32
    swizzle: int = -1  # bytes; −1: what the language chooses
    fill: str = "threads"
    fill_warps: int = 1
    form: str = "for"
    layout: str = "plain"
    tiles: int = 1
    steps: int = 1
    blocks: int = 1
    cluster: int = 1
    seed: int = 0

    @property
    def shared(self) -> bool:
        """Whether the blocks of a cluster fill the first pipe for each other."""
        return self.fill == "copy" and self.cluster > 1

    def smaller(self) -> Iterator[Chain]:
        """Programs that lack something of this one, the larger parts first."""
        if len(self.links) > 1:
            yield replace(
                self, links=self.links[:-2] + _with_a_sink(self.links[-2], self.links[-1])
            )
        for number, link in enumerate(self.links):
            for less in _smaller_link(link, last=number + 1 == len(self.links)):
                links = (*self.links[:number], less, *self.links[number + 1 :])
                yield replace(self, links=links)
        plain: dict[str, Any] = {"cluster": 1, "blocks": 1, "dtype": "i32", "swizzle": -1}
        plain |= {"fill": "threads", "fill_warps": 1, "form": "for", "rows": 16, "columns": 32}
        plain |= {"layout": "plain"}
        for name, value in plain.items():
            if getattr(self, name) != value:
                made = replace(self, **{name: value})
                yield replace(made, blocks=max(made.blocks, made.cluster))
        for name in ("tiles", "steps"):
            for value in range(getattr(self, name)):
                yield replace(self, **{name: value})


def _with_a_sink(link: Link, last: Link) -> tuple[Link, ...]:
    """The end of a chain without its last pipe: somebody must take what is put."""
    return (link if link.sinks else replace(link, sinks=(replace(last.sinks[0], replicas=1),)),)


def _smaller_link(link: Link, last: bool) -> Iterator[Link]:
    if len(link.sinks) > last:
        for number in range(len(link.sinks)):
            yield replace(link, sinks=(*link.sinks[:number], *link.sinks[number + 1 :]))
    plain: dict[str, Any] = {"one": False, "turns": False, "channel": False, "relay_behind": 0}
    plain |= {"relay_take": "take", "relay_warps": 1}
    for name, value in plain.items():
        if getattr(link, name) != value:
            made = replace(link, **{name: value})
            yield made if made.one else replace(made, turns=False)
    behind = max([link.relay_behind, *(s.behind for s in link.sinks)], default=0)
    for stages in range(behind + 1, link.stages):
        yield replace(link, stages=stages)
    for number, sink in enumerate(link.sinks):
        plain = {"replicas": 1, "warps": 1, "behind": 0, "take": "get", "writes": ""}
        for name, value in plain.items():
            if getattr(sink, name) != value:
                sinks = list(link.sinks)
                sinks[number] = replace(sink, **{name: value})
                yield replace(link, sinks=tuple(sinks))


# ---- drawing -----------------------------------------------------------------------------------


class Draw:
    """Draws evenly."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def of(self, *choices: Any) -> Any:
        """One of these."""
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return int(self.rng.integers(low, high + 1))


# Warps of a block, and bytes of shared memory that the pipes may take.
_MOST_WARPS, _MOST_BYTES = 20, 160 << 10
_BYTES = {"i32": 4, "f32": 4, "bf16": 2}


def drawn(seed: int) -> Chain:
    """The program of a seed."""
    draw = Draw(np.random.default_rng([seed, 2]))
    while True:
        made = _draw(draw, seed)
        if _warps(made) <= _MOST_WARPS and _bytes(made) <= _MOST_BYTES:
            return made


def _draw(draw: Draw, seed: int) -> Chain:
    dtype, columns = draw.of(*DTYPES), draw.of(32, 64)
    span = columns * _BYTES[dtype]
    count = draw.number(1, 3)
    fill, cluster = draw.of(*FILLS), draw.of(1, 1, 1, 2, 4)
    layouts = {"threads": LAYOUTS, "bulk": LAYOUTS[:1]}.get(fill, LAYOUTS[:2])
    halves = (16, 32) if fill == "two" or cluster > 1 else (8, 16, 32)
    chain = Chain(
        links=tuple(_link(draw, n, n + 1 == count) for n in range(count)),
        dtype=dtype,
        rows=32 if cluster == 4 else draw.of(*halves),
        layout=draw.of(*layouts),
        columns=columns,
        swizzle=0 if fill == "bulk" else draw.of(-1, 0, span if span in (64, 128) else 0),
        fill=fill,
        fill_warps=draw.of(1, 2, 4),
        form=draw.of(*FORMS),
        tiles=draw.number(0, 4),
        steps=draw.number(0, 6),
        blocks=cluster * draw.of(1, 1, 2),
        cluster=cluster,
        seed=seed,
    )
    first = chain.links[0]
    if first.channel:
        return replace(chain, fill="threads")
    if chain.shared:
        # What blocks of a cluster share they take equally often, whatever a poll says.
        sinks = tuple(replace(s, take="take") if s.take == "ready" else s for s in first.sinks)
        return replace(chain, links=(replace(first, sinks=sinks), *chain.links[1:]))
    return chain


def _link(draw: Draw, number: int, last: bool) -> Link:
    stages, channel = draw.number(1, 4), draw.number(0, 4) == 0
    one = last and draw.number(0, 1) == 1
    most = 0 if channel else min(stages - 1, 2)
    least, limit = (1, 1 if one else 2) if last else (0, 2)
    sinks = tuple(_sink(draw, one, most) for _ in range(draw.number(least, limit)))
    return Link(
        stages=stages,
        channel=channel,
        one=one,
        turns=one and draw.number(0, 1) == 1,
        relay_warps=draw.of(1, 2, 4),
        relay_behind=draw.number(0, most),
        relay_take=draw.of("get", "take"),
        sinks=sinks,
    )


def _sink(draw: Draw, one: bool, most: int) -> Sink:
    takes = ("get", "take") if one else TAKES
    return Sink(
        warps=draw.of(1, 2, 3, 4),
        replicas=draw.of(1, 2, 3) if one else draw.of(1, 2),
        behind=draw.number(0, most),
        take=draw.of(*takes),
        writes=draw.of("", "", "store", "engine"),
        out_stages=draw.number(1, 3),
    )


def _warps(chain: Chain) -> int:
    """Warps of all roles, those of 4 and more at multiples of 4."""
    found = [chain.fill_warps] * (2 if chain.fill == "two" else 1)
    found += [link.relay_warps for link in chain.links[:-1]]
    found += [s.warps for link in chain.links for s in link.sinks for _ in range(s.replicas)]
    small = sum(w for w in found if w % 4)
    return sum(w for w in found if w % 4 == 0) + -(-small // 4) * 4


def _bytes(chain: Chain) -> int:
    """Bytes of shared memory, about."""
    tile = chain.rows * chain.columns * _BYTES[chain.dtype]
    slots = sum(link.stages for link in chain.links)
    slots += sum(
        s.out_stages * s.replicas for k in chain.links for s in k.sinks if s.writes == "engine"
    )
    return tile * slots
