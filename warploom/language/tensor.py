"""Global memory: windows of tensors, loads, stores, gathers; what happens outside of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.op import Value
from warploom.ir.ops import scalar as scalars
from warploom.ir.ops import tile as tiles
from warploom.ir.ops.global_memory import CACHE
from warploom.language import core
from warploom.language.context import (
    Refused,
    builder,
    current,
    need_all_threads,
    vocabulary,
)
from warploom.language.tile import extent_of
from warploom.language.values import (
    Arithmetic,
    Ds,
    Scalar,
    Tensor,
    Tile,
    Window,
    index_value,
    kind_of,
    not_a,
    operand,
)


@vocabulary
def ds(start: Scalar | int, size: int) -> Ds:
    """A window of one axis: `size` elements from `start` on, for use in `x[…]`.

    Shapes: `start` is an integer scalar, `size` a constant from 1 up.
    Executes: nothing by itself.
    Since: sm_80.
    """
    extent = extent_of(size, "size")
    if not isinstance(start, int) or isinstance(start, bool):
        index_value(start, "start")
    return Ds(start, extent)


def window(tensor: Tensor, index: Any) -> Window:
    """`x[…]` of a tensor: one entry an axis, each `wl.ds`, `a : a + CONST`, or an integer."""
    entries = index if isinstance(index, tuple) else (index,)
    for at, entry in enumerate(entries):
        _check_entry(repr(tensor), entry, f"[{at}]")
    if len(entries) != tensor.rank:
        raise Refused(
            "T006",
            f"{_indices(len(entries))} for a tensor of rank {tensor.rank}",
            notes=(repr(tensor),),
            hint="give one `wl.ds(start, SIZE)` or integer for each axis",
        )
    return Window(tensor, *_starts_and_sizes(entries))


def entries_of(
    index: Any, rank: int, what: str
) -> tuple[tuple[Value, ...], tuple[int | None, ...]]:
    """Starts and sizes of the same index into something else of `rank` axes."""
    entries = index if isinstance(index, tuple) else (index,)
    for at, entry in enumerate(entries):
        _check_entry(what, entry, f"[{at}]")
    if len(entries) != rank:
        raise Refused(
            "T006",
            f"{_indices(len(entries))} for {what} of rank {rank}",
            hint="give one `wl.ds(start, SIZE)` for each axis",
        )
    return _starts_and_sizes(entries)


def _starts_and_sizes(
    entries: tuple[Any, ...],
) -> tuple[tuple[Value, ...], tuple[int | None, ...]]:
    starts: list[Value] = []
    sizes: list[int | None] = []
    for at, entry in enumerate(entries):
        start, size = _entry(entry, f"[{at}]")
        starts.append(start)
        sizes.append(size)
    core.check_size(tuple(size for size in sizes if size is not None))
    return tuple(starts), tuple(sizes)


def _indices(count: int) -> str:
    return "1 index" if count == 1 else f"{count} indices"


def _check_entry(what: str, entry: Any, argument: str) -> None:
    """Refuse what is no window of `what`, with the way it is written here."""
    if isinstance(entry, Tile):
        raise Refused(
            "T007",
            "a tensor is indexed by a tile",
            argument=argument,
            notes=(core.describe(entry.value), what),
            hint="a run of elements is a window, `x[wl.ds(start, SIZE)]`; "
            "`wl.gather(x, (index, …))` reads elements at computed places",
        )
    if entry is None or entry is Ellipsis:
        shown = "None" if entry is None else "..."
        raise Refused(
            "T006",
            f"`{shown}` has no meaning in a window of a tensor",
            argument=argument,
            notes=(what,),
            hint="give one `wl.ds(start, SIZE)` or integer for each axis; tiles take `t[:, None]`",
        )
    if not isinstance(entry, Ds | slice | Scalar | int):
        raise Refused(
            "T015",
            f"an index is `wl.ds(start, SIZE)` or an integer, not {kind_of(entry)}",
            argument=argument,
            notes=(what,),
            hint="write an integer for one element, `wl.ds` for a window",
        )
    if isinstance(entry, int) and entry < 0:
        raise Refused(
            "T009",
            f"index {entry} is in front of the tensor; indices do not count from the end",
            argument=argument,
            notes=(what,),
            hint="the last element is `x.shape[axis] - 1`",
        )


def _entry(entry: Any, argument: str) -> tuple[Value, int | None]:
    """Start and size of one entry; size None for an integer."""
    if isinstance(entry, Ds):
        return index_value(entry.start, argument), entry.size
    if isinstance(entry, slice):
        return _slice(entry, argument)
    return index_value(entry, argument), None


def _slice(entry: slice, argument: str) -> tuple[Value, int]:
    """`lo : hi` where hi − lo is a constant, found by comparing values, not spelling."""
    if entry.step is not None:
        raise Refused(
            "T009",
            "a window has no step",
            argument=argument,
            hint="load a wider window, or use `wl.gather` with indices",
        )
    if entry.stop is None:
        raise Refused(
            "T009",
            "a window needs both ends"
            if entry.start is not None
            else "`:` is no window of a tensor",
            argument=argument,
            notes=("the extent of a tensor is a run-time value, the shape of a tile a constant",),
            hint="`wl.ds(0, SIZE)` with a constant SIZE; what lies outside reads as zero",
        )
    start = index_value(0 if entry.start is None else entry.start, argument)
    stop = index_value(entry.stop, argument)
    size = current().facts.difference(stop, start)
    if size is None:
        raise Refused(
            "T009",
            "the size of this window is not a constant",
            argument=argument,
            notes=("`a : b` is a window where b - a is the same constant always",),
            hint="`wl.ds(start, SIZE)` with a constant SIZE",
        )
    if size < 1:
        raise Refused(
            "T016",
            f"the window has {size} elements",
            argument=argument,
            hint="`a : b` needs b > a",
        )
    return start, size


def need_window(given: Any, argument: str, verb: str) -> Window:
    """An argument that must be a window of a tensor, of the function `verb`."""
    if isinstance(given, Window):
        return given
    if isinstance(given, Tensor):
        sizes = ", ".join(["wl.ds(…, SIZE)"] * given.rank)
        raise Refused(
            "T015",
            f"`{verb}` takes a window of a tensor, not all of it",
            argument=argument,
            notes=(repr(given),),
            hint=f"`wl.{verb}({given.root.name}[{sizes}]{', t' if verb == 'store' else ''})`",
        )
    raise not_a("a window of a tensor, such as `x[wl.ds(start, SIZE)]`,", given, argument)


def stored(place: Window, value: Arithmetic, argument: str, verb: str) -> Value:
    """A value as a tile of a window's shape and of the tensor's dtype; numbers and scalars are
    repeated."""
    tensor = place.tensor
    given = operand(value, argument, "a tile, a scalar or a number")
    if isinstance(value, Tile):
        tile = value.value
    else:
        tile = core.spread(element(given, tensor.dtype, argument), place.shape)
    dtype = core.dtype_of(tile)
    if dtype != tensor.dtype:
        raise Refused(
            "T010",
            f"{core.with_article(dtype)} tile is {verb} to a tensor of {tensor.dtype}",
            argument=argument,
            label=f"this is {dtype}",
            notes=(core.describe(tile), repr(tensor)),
            hint=f"`{tile.name or 't'}.cast({tensor.root.name}.dtype)`",
        )
    shape = core.shape_of(tile)
    if shape != place.shape:
        raise Refused(
            "T011",
            f"a tile of shape {core.shape_text(shape or ())} is {verb} to a window of shape "
            f"{core.shape_text(place.shape)}",
            argument=argument,
            notes=(core.describe(tile), repr(place)),
            hint=_shape_hint(shape or (), place.shape),
        )
    return tile


@vocabulary
def load(window: Window, other: Arithmetic = 0, cache: str = "") -> Any:
    """Read a window of a tensor. Elements outside the tensor are `other`. All dtypes.

    `cache` says how long both caches shall keep it: "evict_first", "evict_last", "evict_normal", or
    "no_allocate" (not in the first level). It changes no value.

    Shapes: the sizes of the window; an integer index drops its axis; integers only give a scalar.
    Executes: the block, each thread its elements; a scalar: every warp the same address.
    Since: sm_80.
    PTX: ld.global, with predicates where the window may leave the tensor.
    """
    place = need_window(window, "window", "load")
    tensor, b = place.tensor, builder()
    filler = None if _is_zero(other) else element(other, tensor.dtype, "other")
    _check_cache(cache)
    if not place.shape and all(size is None for size in place.sizes):
        made = b.emit(scalars.Load(tensor=tensor.value, indices=place.starts, other=filler))
        return Scalar(made)
    made = tiles.Load(
        tensor=tensor.value, starts=place.starts, sizes=place.sizes, other=filler, cache=cache
    )
    return Tile(b.emit(made))


def _check_cache(cache: Any) -> None:
    if cache not in CACHE:
        words = ", ".join(map(repr, CACHE))
        raise Refused("T015", f"`cache` is one of {words}", argument="cache")


@vocabulary
def prefetch(window: Window, level: str = "L2", mask: Arithmetic = True) -> None:
    """Have a window read into a cache ("L1" or "L2") ahead of its load, where `mask` holds. What
    lies outside the tensor is left alone; nothing is waited for.

    Shapes: `mask` is a bool tile of the window's shape, a bool scalar or a bool.
    Executes: the block, each thread its part.
    Since: sm_80.
    PTX: prefetch.global.
    """
    place = need_window(window, "window", "prefetch")
    if level not in ("L1", "L2"):
        raise Refused("T015", '`level` is "L1" or "L2"', argument="level")
    need_all_threads("all threads prefetch their part; `wl.copy_prefetch` is for one")
    masked = not (isinstance(mask, bool) and mask)
    test = _mask(mask, "prefetch")
    if core.shape_of(test) not in (None, place.shape):
        raise Refused(
            "T011",
            f"a mask of shape {core.shape_text(core.shape_of(test) or ())} for a window of shape "
            f"{core.shape_text(place.shape)}",
            argument="mask",
            notes=(core.describe(test), repr(place)),
            hint="give the mask the shape of the window",
        )
    if core.shape_of(test) is None:
        test = core.spread(test, place.shape)
    builder().add(
        tiles.Prefetch(
            tensor=place.tensor.value,
            mask=test,
            starts=place.starts,
            sizes=place.sizes,
            level=level,
            masked=masked,
        )
    )


@vocabulary
def store(window: Window, value: Arithmetic, cache: str = "") -> None:
    """Write a tile to a window of a tensor. Elements outside the tensor are dropped.

    `cache` says how long both caches shall keep it: "evict_first", "evict_last", "evict_normal", or
    "no_allocate" (not in the first level).

    Shapes: the tile has the shape of the window and the tensor's dtype; a number or a scalar of
    that dtype is repeated.
    Executes: the block, each thread its elements.
    Since: sm_80.
    PTX: st.global, with predicates where the window may leave the tensor.
    """
    place = need_window(window, "window", "store")
    tensor = place.tensor
    tile = stored(place, value, "value", "stored")
    _check_cache(cache)
    builder().add(
        tiles.Store(
            tensor=tensor.value,
            value=tile,
            starts=place.starts,
            sizes=place.sizes,
            cache=cache,
        )
    )
    current().written.add(tensor.param)


@vocabulary
def gather(
    x: Tensor,
    indices: Sequence[Tile | Scalar | int],
    mask: Arithmetic = True,
    other: Arithmetic = 0,
    run: int = 0,
) -> Tile:
    """Read x[indices[0], indices[1], …] element by element, or runs of elements. All dtypes.

    Outside the tensor, and where `mask` is False, nothing is read and the result is `other`.
    With `run` the last index says where so many neighbouring elements of the last axis begin. Where
    it is a multiple of the run as it is written (`i * 8`), a thread reads up to 16 bytes at once.

    Shapes: one integer tile, scalar or number for each axis of x, at least one a tile; tiles (the
    bool mask too) are spread to their common shape, which the result has; with `run` it has an axis
    of that size behind it.
    Executes: the block, each thread its elements.
    Since: sm_80.
    PTX: ld.global, with a predicate an element, or a group of a run.
    """
    if not isinstance(x, Tensor):
        raise (
            not_a("a tensor", x, "x")
            if not isinstance(x, Window)
            else Refused(
                "T015",
                "`gather` takes the tensor, not a window of it",
                argument="x",
                hint="`wl.gather(x, (rows, columns))`, with one tile of indices an axis",
            )
        )
    given = indices if isinstance(indices, tuple | list) else (indices,)
    if len(given) != x.rank:
        raise Refused(
            "T018",
            f"{_indices(len(given))} for a tensor of rank {x.rank}",
            argument="indices",
            notes=(repr(x),),
            hint="give a tuple with one tile or scalar for each axis",
        )
    values = [_index(entry) for entry in given]
    masked = None if isinstance(mask, bool) and mask else _mask(mask, "gather")
    shape = core.common_shape("`gather`", *values, *([] if masked is None else [masked]))
    if shape is None or all(core.shape_of(v) is None for v in values):
        raise Refused(
            "T018",
            "`gather` needs at least one tile of indices",
            argument="indices",
            notes=tuple(core.describe(v) for v in values),
            hint="one element at scalar indices is `wl.load(x[i, …])`",
        )
    if run:
        shape = (*shape, extent_of(run, "run"))
        core.check_size(shape)
    filler = None if _is_zero(other) else element(other, x.dtype, "other")
    made = tiles.Gather(
        tensor=x.value,
        indices=tuple(v if core.shape_of(v) is None else _each(v, shape, run) for v in values),
        mask=None if masked is None else _each(masked, shape, run),
        other=filler,
        run=run,
    )
    return Tile(builder().emit(made))


def _each(given: Value, shape: tuple[int, ...], run: int) -> Value:
    """Indices or a mask spread to the shape of what is gathered, runs behind."""
    held = core.shape_of(given)
    if run and held is not None:
        given = builder().emit(tiles.InsertAxis(value=given, axis=len(held)))
    return core.spread(given, shape)


def _index(given: Any) -> Value:
    """One index of a gather."""
    if not isinstance(given, Tile):
        return index_value(given, "indices")
    if not given.dtype.is_int:
        raise Refused(
            "T018",
            f"an index is an integer, and this tile is {given.dtype}",
            argument="indices",
            notes=(core.describe(given.value),),
            hint="cast it: `.cast(wl.i32)`",
        )
    return given.value


def _mask(given: Any, verb: str) -> Value:
    value = core.materialise(operand(given, "mask", "a bool tile or scalar"), argument="mask")
    if not core.dtype_of(value).is_bool:
        raise Refused(
            "T004",
            f"the mask of `{verb}` is {core.dtype_of(value)}, not bool",
            argument="mask",
            hint="compare it with something, such as `t < n`",
        )
    return value


def _is_zero(given: Any) -> bool:
    """Whether a filler is what memory outside reads as anyhow; -0.0 is not."""
    return isinstance(given, bool | int | float) and not given and str(given) != "-0.0"


def element(given: Any, dtype: DType, argument: str) -> Value:
    """One element of a tensor's dtype: a number takes it, a scalar must have it."""
    if isinstance(given, Tile):
        raise Refused("T017", "one value is needed here, not a tile", argument=argument)
    held = given if isinstance(given, Value) else operand(given, argument, "a number or a scalar")
    value = core.materialise(held, dtype, argument)
    if core.dtype_of(value) != dtype:
        raise Refused(
            "T010",
            f"{core.with_article(core.dtype_of(value))} scalar meets a tensor of {dtype}",
            argument=argument,
            notes=(core.describe(value),),
            hint=f"cast it: `.cast(wl.{dtype})`",
        )
    return value


def _shape_hint(shape: tuple[int, ...], window: tuple[int, ...]) -> str:
    if shape == window[::-1] and len(shape) == 2:
        return "transpose it: `t.T`"
    if len(shape) < len(window):
        return "an integer index drops an axis of the window: `x[i, wl.ds(start, SIZE)]`"
    return "the sizes of the window are the shape of the tile"
