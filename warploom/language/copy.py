"""Windows and runs of tensors moved by the copy engine, to and from shared memory."""

from __future__ import annotations

from math import prod
from typing import Any

from warploom.ir.op import Value
from warploom.ir.ops import bulk, remote, tma
from warploom.language import context, core
from warploom.language.barrier import Barrier, RemoteBarrier
from warploom.language.cluster import mask_value
from warploom.language.context import (
    Refused,
    builder,
    need_count,
    need_one_thread,
    vocabulary,
)
from warploom.language.descriptors import MadeWindow
from warploom.language.remote import RemoteShared
from warploom.language.shared import Shared
from warploom.language.values import Scalar, Tile, Window, kind_of, not_a

_LONGEST_BOX = 256  # elements along one axis


@vocabulary
def copy_async(
    source: Any,
    target: Any,
    barrier: Barrier | None = None,
    cache: str = "",
    multicast: Scalar | int | None = None,
    fill: str = "zero",
    reduce: str = "",
) -> None:
    """Begin to copy a window of a tensor to a tile in shared memory, or a tile to a window.

    To shared memory the bytes complete on `barrier`; in `with ring.put() as …` that is the item's
    own. What lies outside the tensor arrives as zero (as NaN with `fill="nan"`, f32) and is not
    written. Along the contiguous axis a window starts at a multiple of 16 bytes: elsewhere the GPU
    traps, and the simulator reports M003. A copy to a tensor joins the thread's bulk group:
    `wl.copy_commit()`, `wl.copy_wait()`; with `reduce` each element is combined with the one that
    is there: "add", "min", "max", "and", "or", "xor" of integers (i64: "min", "max"), the first
    three of f16 and bf16, "add" of f32.
    Stand it in `wl.one_thread()`, or in a `put`. `cache`: "", "evict_first", "evict_last",
    "evict_normal".

    `multicast` (to shared memory): the blocks of the cluster that get the window, one bit a rank,
    such as `wl.cluster_mask(axis)`. Each gets it at this place of its own shared memory, and its
    bytes complete on its barrier at this place: each announces what it gets.

    Shapes: equal.
    Executes: one thread.
    Since: sm_90.
    PTX: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor.
    """
    _check_word("cache", cache, tma.CACHE)
    send = context.current().send
    if send is None or not isinstance(source, Shared) or source.item is not send:
        need_one_thread("begin this copy")
    if isinstance(source, Window | MadeWindow) and isinstance(target, Shared):
        _check_fill(fill, source)
        _no_reduce(reduce)
        _load(source, target, barrier, cache, multicast, fill)
    elif isinstance(source, Shared) and isinstance(target, Window | MadeWindow):
        if multicast is not None:
            raise Refused(
                "T015",
                "a copy to a tensor goes to one place",
                argument="multicast",
                hint="leave `multicast` out",
            )
        _check_reduce(reduce, source, tma.BOX_REDUCES)
        _store(source, target, cache, reduce)
    else:
        raise no_copy(source, target, "wl.copy_async(x[wl.ds(m, BM), wl.ds(k, BK)], tile)")


def no_copy(source: Any, target: Any, example: str) -> Refused:
    """The refusal of two ends that no copy goes between."""
    return Refused(
        "T015",
        "a copy goes from a window of a tensor to a shared tile, or back",
        notes=(f"from {_kind(source)}", f"to {_kind(target)}"),
        hint=f"`{example}`",
    )


def _check_word(argument: str, given: Any, words: tuple[str, ...]) -> None:
    if given not in words:
        raise Refused(
            "T015", f"`{argument}` is one of {', '.join(map(repr, words))}", argument=argument
        )


def _check_fill(fill: Any, window: Window | MadeWindow) -> None:
    _check_word("fill", fill, tma.FILL)
    if fill != "zero" and isinstance(window, MadeWindow):
        message = "a descriptor that the kernel makes fills with zero"
        raise Refused("T004", message, argument="fill")
    if fill == "nan" and window.tensor.dtype.name not in tma.FILL_NAN:
        words = ", ".join(tma.FILL_NAN)
        message = f"the copy engine fills with NaN in {words}, not in {window.tensor.dtype}"
        raise Refused("T004", message, argument="fill")


def _no_reduce(reduce: Any) -> None:
    if reduce:
        raise Refused(
            "T015",
            "elements are combined in a tensor, and this copy goes to shared memory",
            argument="reduce",
            hint="leave `reduce` out, or copy to a window of a tensor",
        )


def _check_reduce(reduce: Any, tile: Shared, table: dict[str, tuple[str, ...]]) -> None:
    legal = table.get(tile.dtype.name, ())
    if reduce and reduce not in legal:
        words = ", ".join(map(repr, legal)) or "nothing"
        raise Refused(
            "T004",
            f"the copy engine has no {reduce!r} for {tile.dtype}",
            argument="reduce",
            notes=(f"for {tile.dtype} it has {words}",),
        )


def _kind(given: Any) -> str:
    return repr(given) if isinstance(given, Shared | RemoteShared | Barrier) else kind_of(given)


def check_fits(window: Window | MadeWindow, tile: Shared) -> None:
    """Raises Refused T005 where a window has another shape or dtype than a tile."""
    if isinstance(window, MadeWindow):
        window.check(tile)
        tile.check_single()
        return
    if window.shape != tile.shape or window.tensor.dtype != tile.dtype:
        raise Refused(
            "T005",
            f"a window of {core.with_article(window.tensor.dtype)} tensor of shape "
            f"{core.shape_text(window.shape)} does not fit {tile!r}",
        )
    tile.check_single()


def _completes_on(tile: Shared, barrier: Barrier | None, blocks: Value | None = None) -> Value:
    """The barrier on which the bytes of a copy complete."""
    put = context.current().put
    if barrier is None:
        if put is None:
            raise Refused(
                "P006",
                "nothing says where the bytes of this copy complete",
                argument="barrier",
                hint="give `barrier=`, or copy inside `with ring.put() as …`",
            )
        return put.announce(tile, blocks).one()
    return one_barrier(barrier)


def one_barrier(barrier: Any) -> Value:
    """An argument that must be a single mbarrier."""
    if not isinstance(barrier, Barrier):
        raise Refused(
            "T015",
            f"`barrier` is an mbarrier, not {kind_of(barrier)}",
            argument="barrier",
            hint="`bar = wl.barrier(1)` makes one",
        )
    return barrier.one()


def _made(window: Window | MadeWindow) -> tuple[Value | None, Value | None]:
    """The descriptor of a window, its room and its number there, where the kernel has made it."""
    if isinstance(window, Window):
        return None, None
    return window.made.owner.room.value, window.made.number


def _load(
    window: Window | MadeWindow,
    tile: Shared,
    barrier: Barrier | None,
    cache: str,
    multicast: Any,
    fill: str,
) -> None:
    check_fits(window, tile)
    blocks = None if multicast is None else mask_value(multicast)
    room, number = _made(window)
    builder().add(
        tma.Load(
            tensor=window.tensor.value,
            starts=window.starts,
            sizes=window.sizes,
            target=tile.value,
            barrier=_completes_on(tile, barrier, blocks),
            multicast=blocks,
            cache=cache,
            fill=fill,
            room=room,
            number=number,
        )
    )


def _store(tile: Shared, window: Window | MadeWindow, cache: str, reduce: str) -> None:
    check_fits(window, tile)
    context.current().written.add(window.tensor.param)
    room, number = _made(window)
    made = tma.Store(
        tensor=window.tensor.value,
        starts=window.starts,
        sizes=window.sizes,
        source=tile.value,
        reduce=reduce,
        cache=cache,
        room=room,
        number=number,
    )
    send = context.current().send
    if send is not None and tile.item is send:
        made.loc = builder().loc  # it starts at the end of the `put`, and is written here
        send.begin(made)
    else:
        builder().add(made)


@vocabulary
def copy_bulk(
    source: Any, target: Any, barrier: Barrier | None = None, cache: str = "", reduce: str = ""
) -> None:
    """Begin to copy a run of neighbouring elements of a tensor to a tile in shared memory that lies
    in one piece (swizzle=0), or back, without a descriptor; otherwise as `wl.copy_async`.

    The run lies in the tensor: nothing is clipped. Its address and size are multiples of 16 bytes.

    From a shared tile it may also go to that of a peer, `tile.on(rank)`: its bytes complete on the
    peer's barrier at the place of `barrier`. Nothing tells this block that the source has been
    read, but what the peer says after its wait.

    Shapes: a window of one axis, `x[i, wl.ds(start, N)]`, and a tile of N elements; two tiles of
    one shape.
    Executes: one thread.
    Since: sm_90.
    PTX: cp.async.bulk, cp.reduce.async.bulk.
    """
    _check_word("cache", cache, tma.CACHE)
    need_one_thread("begin this copy")
    if isinstance(source, Window) and isinstance(target, Shared):
        _no_reduce(reduce)
        _check_run(source, target)
        made = bulk.Load(
            tensor=source.tensor.value,
            starts=source.starts,
            sizes=source.sizes,
            target=target.value,
            barrier=_completes_on(target, barrier),
            cache=cache,
        )
        builder().add(made)
    elif isinstance(source, Shared) and isinstance(target, Window):
        _check_reduce(reduce, source, tma.REDUCES)
        _check_run(target, source)
        context.current().written.add(target.tensor.param)
        builder().add(
            bulk.Store(
                tensor=target.tensor.value,
                starts=target.starts,
                sizes=target.sizes,
                source=source.value,
                reduce=reduce,
                cache=cache,
            )
        )
    elif isinstance(source, Shared) and isinstance(target, RemoteShared):
        _no_reduce(reduce)
        _to_peer(source, target, barrier, cache)
    else:
        raise no_copy(source, target, "wl.copy_bulk(x[i, wl.ds(start, N)], tile)")


def _to_peer(source: Shared, target: RemoteShared, barrier: Any, cache: str) -> None:
    """Begin a copy from a shared tile to that of a peer."""
    if cache:
        raise Refused("T015", "this copy passes no cache", argument="cache")
    if source.shape != target.shape or source.dtype != target.dtype:
        raise Refused("T005", f"{source!r} does not fit {target!r}", argument="target")
    source.check_single()
    on = _of_peer(barrier)
    builder().add(remote.Copy(source=source.value, target=target.value(), barrier=on))


def _of_peer(barrier: Any) -> Value:
    """The barrier on which bytes for a peer complete, as the block names its own."""
    if barrier is None:
        raise Refused(
            "P006",
            "nothing says where the bytes complete",
            argument="barrier",
            hint="give `barrier=`: the peer's barrier at the same place counts them",
        )
    if isinstance(barrier, RemoteBarrier):
        raise Refused(
            "T015",
            f"`barrier` is {barrier!r}",
            argument="barrier",
            hint="name this block's own: the bytes complete on the one at its place in the peer",
        )
    return one_barrier(barrier)


@vocabulary
def store_async(target: RemoteShared, tile: Tile, barrier: Barrier) -> None:
    """Begin to write a tile of registers to the shared memory of a peer, `buffer.on(rank)`. The
    bytes complete on the peer's barrier at the place of `barrier`; the peer announces them with
    `barrier.expect(bytes)`, all elements of the tile, and sees the data behind its wait.

    It costs no fence. Behind that wait the peer may also write what this thread has read before;
    what it has *written* before (other memory) is not promised to be seen there.

    Shapes: equal, and so are the dtypes; rows of whole words of 4 bytes.
    Executes: the role, each thread its elements.
    Since: sm_90.
    PTX: st.async.
    """
    if not isinstance(target, RemoteShared):
        raise Refused(
            "T015",
            f"`target` is a tile of another block, not {_kind(target)}",
            argument="target",
            hint="`tile.on(rank)`; a block writes its own tile by `tile.store(value)`",
        )
    send(target, target.check_fits(tile), barrier, 0)


def send(target: RemoteShared, tile: Tile, barrier: Barrier, replica: int) -> None:
    """As `store_async`, by the threads of one replica where several hold an element."""
    on = _of_peer(barrier)
    builder().add(remote.Send(target=target.value(), value=tile.value, barrier=on, replica=replica))


def _check_run(window: Window, tile: Shared) -> None:
    if len(window.shape) != 1:
        raise Refused(
            "T006",
            f"a bulk copy moves one run of elements, and this is {window!r}",
            hint="index the other axes: `x[i, wl.ds(start, N)]`; `wl.copy_async` moves boxes",
        )
    count = prod(tile.shape)
    if window.shape != (count,) or window.tensor.dtype != tile.dtype:
        raise Refused(
            "T005",
            f"a run of {window.shape[0]} elements of {core.with_article(window.tensor.dtype)} "
            f"tensor does not fit {tile!r}",
        )
    tile.check_single()


@vocabulary
def copy_prefetch(window: Window | MadeWindow, cache: str = "") -> None:
    """Have the copy engine read a window of a tensor into the second-level cache, as a box; a later
    copy of it finds it there. A run whose address and size are multiples of 16 bytes may be longer
    than a box.

    Shapes: up to 256 elements along each axis of a box.
    Executes: one thread.
    Since: sm_90.
    PTX: cp.async.bulk.prefetch.tensor, cp.async.bulk.prefetch.
    """
    _check_word("cache", cache, tma.CACHE)
    need_one_thread("prefetch this window")
    if isinstance(window, MadeWindow):
        window.check(None)
    elif not isinstance(window, Window):
        raise not_a("a window of a tensor", window, "window")
    tensor, starts = window.tensor.value, window.starts
    (room, number), sizes = _made(window), window.sizes
    like = window.made.owner.tile.value if isinstance(window, MadeWindow) else None
    run = [n for n in sizes if n is not None]
    if len(run) == 1 and run[0] > _LONGEST_BOX and not cache and like is None:
        builder().add(bulk.Prefetch(tensor=tensor, starts=starts, sizes=sizes))
    else:
        builder().add(
            tma.Prefetch(
                tensor=tensor,
                starts=starts,
                sizes=sizes,
                room=room,
                number=number,
                like=like,
                cache=cache,
            )
        )


@vocabulary
def copy_commit() -> None:
    """Close the group of copies to tensors that this thread has begun.

    Shapes: none.
    Executes: one thread.
    Since: sm_90.
    PTX: cp.async.bulk.commit_group.
    """
    need_one_thread("close a group of its own")
    builder().add(tma.Commit())


@vocabulary
def copy_wait(pending: int = 0, reads: bool = False) -> None:
    """Wait until at most `pending` groups of this thread are open; with `reads`, until the shared
    tiles have been read and may be overwritten (the tensor need not have the data yet).

    Shapes: none.
    Executes: the thread that began the copies.
    Since: sm_90.
    PTX: cp.async.bulk.wait_group(.read).
    """
    need_count("pending", pending, 0)
    builder().add(tma.Wait(pending=pending, reads=bool(reads)))
