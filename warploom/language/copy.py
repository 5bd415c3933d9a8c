"""Windows of tensors moved by the copy engine, to and from shared memory."""

from __future__ import annotations

from typing import Any

from warploom.ir.ops import tma
from warploom.language import context, core
from warploom.language.barrier import Barrier
from warploom.language.cluster import mask_value
from warploom.language.context import Refused, builder, need_one_thread, vocabulary
from warploom.language.shared import Shared
from warploom.language.values import Scalar, Window, kind_of


@vocabulary
def copy_async(
    source: Any,
    target: Any,
    barrier: Barrier | None = None,
    cache: str = "",
    multicast: Scalar | int | None = None,
) -> None:
    """Begin to copy a window of a tensor to a tile in shared memory, or a tile to a window.

    To shared memory the bytes complete on `barrier`; in `with ring.put() as …` that is the item's
    own. What lies outside the tensor arrives as zero and is not written. A copy to a tensor joins
    the thread's bulk group: `wl.copy_commit()`, `wl.copy_wait()`. Stand it in `wl.one_thread()`, or
    in a `put`. `cache`: "", "evict_first", "evict_last", "evict_normal".

    `multicast` (to shared memory): the blocks of the cluster that get the window, one bit a rank,
    such as `wl.cluster_mask(axis)`. Each gets it at this place of its own shared memory, and its
    bytes complete on its barrier at this place: each announces what it gets.

    Shapes: equal.
    Executes: one thread.
    Since: sm_90.
    PTX: cp.async.bulk.tensor.
    """
    if cache not in tma.CACHE:
        raise Refused(
            "T015", f"`cache` is one of {', '.join(map(repr, tma.CACHE))}", argument="cache"
        )
    send = context.current().send
    if send is None or not isinstance(source, Shared) or source.item is not send:
        need_one_thread("begin this copy")
    if isinstance(source, Window) and isinstance(target, Shared):
        _load(source, target, barrier, cache, multicast)
    elif isinstance(source, Shared) and isinstance(target, Window):
        if multicast is not None:
            raise Refused("T015", "a copy to a tensor goes to one place", argument="multicast")
        _store(source, target, cache)
    else:
        raise Refused(
            "T015",
            "a copy goes from a window of a tensor to a shared tile, or back",
            notes=(f"from {_kind(source)}", f"to {_kind(target)}"),
            hint="`wl.copy_async(x[wl.ds(m, BM), wl.ds(k, BK)], tile)`",
        )


def _kind(given: Any) -> str:
    return repr(given) if isinstance(given, Shared | Barrier) else kind_of(given)


def _check(window: Window, tile: Shared) -> None:
    if window.shape != tile.shape or window.tensor.dtype != tile.dtype:
        raise Refused(
            "T005",
            f"a window of {core.with_article(window.tensor.dtype)} tensor of shape "
            f"{core.shape_text(window.shape)} does not fit {tile!r}",
        )
    tile.check_single()


def _load(
    window: Window, tile: Shared, barrier: Barrier | None, cache: str, multicast: Any
) -> None:
    _check(window, tile)
    put = context.current().put
    blocks = None if multicast is None else mask_value(multicast)
    if barrier is None:
        if put is None:
            raise Refused(
                "P006",
                "nothing says where the bytes of this copy complete",
                argument="barrier",
                hint="give `barrier=`, or copy inside `with ring.put() as …`",
            )
        completes: Barrier = put.announce(tile, blocks)
    elif not isinstance(barrier, Barrier):
        raise Refused(
            "T015", f"`barrier` is an mbarrier, not {kind_of(barrier)}", argument="barrier"
        )
    else:
        completes = barrier
    builder().add(
        tma.Load(
            tensor=window.tensor.value,
            starts=window.starts,
            sizes=window.sizes,
            target=tile.value,
            barrier=completes.one(),
            multicast=blocks,
            cache=cache,
        )
    )


def _store(tile: Shared, window: Window, cache: str) -> None:
    _check(window, tile)
    context.current().written.add(window.tensor.param)
    made = tma.Store(
        tensor=window.tensor.value,
        starts=window.starts,
        sizes=window.sizes,
        source=tile.value,
        cache=cache,
    )
    send = context.current().send
    if send is not None and tile.item is send:
        send.begin(made)
    else:
        builder().add(made)


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
    if isinstance(pending, bool) or not isinstance(pending, int) or pending < 0:
        raise Refused("F027", "`pending` is a constant from 0 up", argument="pending")
    builder().add(tma.Wait(pending=pending, reads=bool(reads)))
