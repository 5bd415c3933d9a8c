"""PTX instructions written in the kernel, with their effects declared and a model for the
simulator."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.op import Value
from warploom.ir.ops import ptx as ptx_ops
from warploom.language import core
from warploom.language.context import Refused, builder, need_all_threads, vocabulary
from warploom.language.values import Arithmetic, Scalar, Tile, kind_of, need_dtype, operand

_EFFECTS = ("memory", "sync")
# First words of instructions that touch memory, or order threads and what they do to it.
_TOUCH = {"ld", "ldu", "st", "red", "atom", "cp", "multimem", "discard", "tensormap", "stmatrix"}
_TOUCH |= {"ldmatrix", "applypriority"}
_ORDER = {"bar", "barrier", "mbarrier", "fence", "membar", "griddepcontrol", "setmaxnreg", "wgmma"}


@vocabulary
def ptx(
    text: str,
    outputs: Sequence[DType] | DType = (),
    inputs: Sequence[Arithmetic] | Arithmetic = (),
    effects: Sequence[str] | str = (),
    model: Callable[..., Any] | None = None,
) -> Any:
    """Run PTX for each element of tiles by itself: `wl.ptx("ex2.approx.f32 %0, %1;", wl.f32, t)`.

    `text` names operands `%0`, `%1`, …: outputs first, then inputs; registers of 16, 32 or 64 bits.
    Without `effects` it depends on its inputs only, and may be moved, merged or dropped; with
    "memory" or "sync" it stays where it is, and what touches memory or synchronises needs them.
    `model` takes a NumPy array for each input and gives the outputs: the simulator runs it, and
    refuses inline PTX without one.

    Shapes: inputs are tiles of one shape, at least one, and scalars; outputs have that shape.
    Executes: every thread on its own elements (copies of an element that several threads hold too).
    Since: what the text needs.
    PTX: the text.
    """
    need_all_threads("tiles are held by all threads")
    if not isinstance(text, str) or not text.strip():
        raise Refused("T015", f"PTX is a text, not {kind_of(text)}", argument="text")
    made = tuple(need_dtype(d, "outputs") for d in _several(outputs))
    declared = _effects(effects)
    acts = bool(declared)
    if not made and not acts:
        raise Refused(
            "P050",
            "this PTX has neither outputs nor effects, so it would be dropped",
            hint='declare what it does: `effects="memory"` or `effects="sync"`',
        )
    _need_declared(text, declared)
    values = _operands(_several(inputs))
    for dtype in (*made, *(core.dtype_of(v) for v in values)):
        if dtype not in ptx_ops.OPERANDS:
            words = ", ".join(str(d) for d in ptx_ops.OPERANDS)
            message = f"an operand of PTX is one of {words}, not {dtype}"
            raise Refused("T004", message, hint="cast it: `.cast(wl.i32)`")
    kind = ptx_ops.Act if acts else ptx_ops.Compute
    op = builder().add(kind(inputs=values, text=text, outputs=made, model=_model(model)))
    tiles = tuple(Tile(r) for r in op.results)
    return tiles[0] if len(tiles) == 1 else tiles or None


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _need_declared(text: str, declared: Sequence[str]) -> None:
    """Refuse an instruction with an effect that is not declared, by its name."""
    for statement in re.split(r"[;{}\n]", text):
        found = re.match(r"\s*(?:@!?[\w%]+\s+)?(?:[\w$]+:\s*)?([a-z]+)((?:\.[\w:]+)*)", statement)
        word = found[1] if found else ""
        lacks = "memory" if word in _TOUCH else "sync" if word in _ORDER else ""
        # A fence is of memory too: either word keeps it where it is.
        fences = word in ("fence", "membar")
        if found is None or not lacks or lacks in declared or (fences and "memory" in declared):
            continue
        does = "touches memory" if lacks == "memory" else "synchronises"
        raise Refused(
            "P051",
            f"`{word}{found[2]}` {does}, and this PTX does not declare it",
            argument="effects",
            hint=f'`effects="{lacks}"`: it then stays where it is',
        )


def _effects(given: Any) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given)
    for word in words:
        if word not in _EFFECTS:
            raise Refused("T015", '`effects` are "memory" and "sync"', argument="effects")
    return words


def _operands(given: tuple[Any, ...]) -> tuple[Value, ...]:
    held = [operand(v, "inputs") for v in given]
    shape = core.common_shape("`ptx`", *(v for v in held if isinstance(v, Value)))
    if shape is None or not any(isinstance(v, Tile) for v in given):
        raise Refused(
            "T015",
            "inline PTX needs a tile among its inputs, which says for how many elements it runs",
            argument="inputs",
            hint="`wl.thread_id()` has one element a thread",
        )
    if not all(isinstance(v, Tile | Scalar) for v in given):
        raise Refused("T015", "an input is a tile or a scalar; numbers stand in the text")
    return tuple(core.spread(v, shape) for v in held if isinstance(v, Value))


def _model(function: Any) -> str:
    """The key under which the simulator finds the model: its name, its code, and the values that it
    was made with, so that two models of one factory are two."""
    if function is None:
        return ""
    code = getattr(function, "__code__", None)
    if code is None:
        raise Refused("T015", f"a model is a function, not {kind_of(function)}", argument="model")
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    given = (held, function.__defaults__, function.__kwdefaults__)
    parts = (code.co_code, repr(code.co_consts), repr(code.co_names), repr(given))
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
    key = f"{function.__module__}.{function.__qualname__}@{digest}"
    ptx_ops.MODELS[key] = function
    return key
