"""Whether a model fits into the memory of its device, found out before anything is allocated, and
what is said where it, or one more token, does not. Knows sizes, not arrays."""

from collections.abc import Callable
from dataclasses import dataclass

from warploom.engine.place import Place
from warploom.engine.refusal import refuse

# What the driver, code and small arrays take besides, in bytes.
_SPARE = 256 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes that a model needs with a context."""

    weights: int
    cache: int
    scratch: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.scratch


def check(name: str, sizes: Callable[[int], Sizes], context: int, place: Place) -> None:
    """Raises ModelError E307 where the sizes for a context exceed what is free on the device."""
    free = place.free_bytes
    if free is None:
        return
    usable, needed = max(0, free - _SPARE), sizes(context)
    if needed.total <= usable:
        return
    smaller = _longest(sizes, context, usable)
    hint = "choose a smaller model"
    if smaller:
        hint = f"load it with a context of up to {smaller:,} tokens, or choose a smaller model"
    raise refuse(
        "E307",
        f"{name} does not fit into the memory of {place.name}: {shown(needed.total - usable)} are"
        " missing",
        notes=[
            f"weights {shown(needed.weights)}, cache of {context:,} tokens {shown(needed.cache)},"
            f" scratch {shown(needed.scratch)}",
            f"{shown(free)} are free, of which {shown(min(free, _SPARE))} stay free",
        ],
        hint=hint,
    )


def no_memory(name: str, context: int, why: str) -> Exception:
    """The error where the host gives no more memory."""
    return refuse(
        "E307",
        f"{name} does not fit into the memory of this machine",
        notes=[f"a context of {context:,} tokens", why],
        hint="give a smaller context (--context N), or choose a smaller model",
    )


def _longest(sizes: Callable[[int], Sizes], context: int, usable: int) -> int:
    """The longest context that fits; 0 where none does."""
    low, high = 0, context
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sizes(middle).total <= usable else (low, middle)
    return low


def shown(count: int) -> str:
    """A number of bytes for a person."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1024:.1f} KiB"


def require_free(context: int, held: int, more: int) -> None:
    """Raises ModelError E301 where `more` tokens do not fit behind `held` ones; nothing has been
    written then."""
    if held + more > context:
        raise refuse(
            "E301",
            f"the context of {context:,} tokens is full: it holds {held:,}, and {more:,} more were"
            " given",
            notes=["the cache is as it was"],
            hint="load the model with a larger context, or start a new sequence",
        )
