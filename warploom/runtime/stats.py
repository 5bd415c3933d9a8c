"""Counters of this process, and the switch that forbids further compilation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warploom.base.errors import error


@dataclass(slots=True)
class Stats:
    """What has happened in this process so far.

    compiles: variants that the compiler built. cache_hits: variants found on disk instead.
    variants: variants in memory, by kernel. simulated_launches: launches run by the simulator.
    """

    compiles: int = 0
    cache_hits: int = 0
    variants: dict[str, int] = field(default_factory=dict)
    simulated_launches: int = 0


counters = Stats()
_frozen = False


def stats() -> Stats:
    """A copy of the counters."""
    return replace(counters, variants=dict(counters.variants))


def freeze(frozen: bool = True) -> None:
    """From now on a call that needs a new variant raises LaunchError H024 instead of compiling.

    `freeze(False)` allows it again.
    """
    global _frozen
    _frozen = frozen


def refuse_when_frozen(kernel: str, classes: str) -> None:
    """Raise H024 where compilation is frozen."""
    if _frozen:
        text = f"`{kernel}` needs a new variant, and compilation is frozen"
        hint = "make one call of this class before wl.freeze()"
        raise error("H024", text, notes=(classes,), hint=hint)


def count_variant(kernel: str) -> None:
    """Note a variant that is now in memory."""
    counters.variants[kernel] = counters.variants.get(kernel, 0) + 1
