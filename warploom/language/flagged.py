"""Flagged data: tensors whose words hold values and an epoch, written and polled in one access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from warploom.base.dtypes import DType, i32, i64
from warploom.ir.ops import flagged as ops
from warploom.ir.ops import tile as tiles
from warploom.ir.ops.sync import SCOPES
from warploom.language import core
from warploom.language.context import (
    Handle,
    Refused,
    builder,
    current,
    need_all_threads,
    vocabulary,
)
from warploom.language.tensor import element, window
from warploom.language.values import Arithmetic, Scalar, Tensor, Tile, Window, operand


class Words(Handle):
    """A window of flagged data: what `mail[wl.ds(start, SIZE)]` is."""

    attributes: ClassVar[tuple[str, ...]] = ("send", "receive")
    hint = "receive it to registers: `t = mail[…].receive(epoch)`"

    def __init__(self, place: Window, kinds: tuple[DType, ...], scope: str) -> None:
        self.place = place
        self.kinds = kinds
        self.scope = scope

    def __repr__(self) -> str:
        return f"flagged data in {self.place!r}"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tiles that are sent and received."""
        return self.place.shape

    def send(self, value: Arithmetic | Sequence[Arithmetic], epoch: Scalar | int) -> None:
        """Write a tile, or one for each value of a word, and the epoch with each element.

        Nothing else that the role did is published. The epoch differs from all that a word has
        held while somebody may still poll it; who sends again to a word knows that all who receive
        have done so.

        Shapes: tiles of the window's shape; numbers and scalars are repeated.
        Executes: the role, each thread its words.
        Since: sm_80.
        PTX: st.relaxed of .b64 or .b128.
        """
        need_all_threads("all of the role send their part")
        given = tuple(value) if isinstance(value, tuple | list) else (value,)
        if len(given) != len(self.kinds):
            raise Refused(
                "T023",
                f"words of {len(self.kinds)} get {len(given)}",
                argument="value",
                hint=f"`wl.flagged(t, {_kinds(self.kinds)})` says what a word holds",
            )
        made = [self._tile(v, kind) for v, kind in zip(given, self.kinds, strict=True)]
        builder().add(
            ops.Send(
                tensor=self.place.tensor.value,
                epoch=element(epoch, i32, "epoch"),
                value=made[0],
                second=made[1] if len(made) > 1 else None,
                third=made[2] if len(made) > 2 else None,
                starts=self.place.starts,
                sizes=self.place.sizes,
                scope=self.scope,
            )
        )
        current().written.add(self.place.tensor.param)

    def receive(self, epoch: Scalar | int) -> Any:
        """Wait until each word of the window has this epoch, and give what was sent with it: a
        tile, or a tuple of one for each value of a word. Words outside the tensor give zero.

        Blocks that wait for each other run at the same time: the launch is `cooperative=True`
        (H040).

        Shapes: the sizes of the window; integers only give a scalar.
        Executes: the role, each thread polls its words. Many pollers flood the memory system.
        Since: sm_80.
        PTX: ld.relaxed of .b64 or .b128, in a loop.
        """
        need_all_threads("all of the role receive their part")
        made = builder().add(
            ops.Receive(
                tensor=self.place.tensor.value,
                epoch=element(epoch, i32, "epoch"),
                stop=current().stop,
                starts=self.place.starts,
                sizes=self.place.sizes,
                kinds=self.kinds,
                scope=self.scope,
            )
        )
        found = [self._whole(value) for value in made.results]
        return tuple(found) if len(found) > 1 else found[0]

    def _whole(self, value: Any) -> Tile | Scalar:
        if self.shape:
            return Tile(value)
        return Scalar(builder().emit(tiles.ToScalar(value=value)))

    def _tile(self, value: Any, kind: DType) -> Any:
        """A value as a tile of the window's shape."""
        given = operand(value, "value", "a tile, a scalar or a number")
        if not isinstance(value, Tile):
            return core.spread(element(given, kind, "value"), self.shape)
        if value.dtype != kind or value.shape != self.shape:
            raise Refused(
                "T023",
                f"{core.describe(value.value)} is sent as {kind} to words of shape "
                f"{core.shape_text(self.shape)}",
                argument="value",
                hint=f"cast it: `.cast(wl.{kind})`" if value.shape == self.shape else "",
            )
        return value.value


class Flagged(Handle):
    """A tensor of words that hold values and their epoch."""

    attributes: ClassVar[tuple[str, ...]] = ("shape",)
    hint = "receive a window of it: `t = mail[wl.ds(start, SIZE)].receive(epoch)`"

    def __init__(self, tensor: Tensor, kinds: tuple[DType, ...], scope: str) -> None:
        self.tensor = tensor
        self.kinds = kinds
        self.scope = scope

    def __repr__(self) -> str:
        return f"flagged data ({_kinds(self.kinds)}) in {self.tensor!r}"

    @property
    def shape(self) -> tuple[Scalar, ...]:
        """The number of words along each axis, run-time scalars."""
        axes = tuple(self.tensor.shape)
        return axes[:-1] if len(self.kinds) > 1 else axes

    def __getitem__(self, index: Any) -> Words:
        """Words of a window, one entry an axis: `wl.ds(start, SIZE)` or an integer."""
        entries = index if isinstance(index, tuple) else (index,)
        if len(self.kinds) > 1:
            entries = (*entries, 0)
        return Words(window(self.tensor, entries), self.kinds, self.scope)


@vocabulary
def flagged(tensor: Tensor, values: DType | Sequence[DType], scope: str = "gpu") -> Flagged:
    """A tensor of i64 as flagged data: each word holds 32-bit values and an i32, their epoch, and
    is written and read in one access. `mail[…].send(t, epoch)` writes, `mail[…].receive(epoch)`
    polls the words themselves until they have the epoch: one way through memory where a flag
    beside the data takes two. For small vectors, or few who poll.

    `values` is f32 or i32: a word is one element. Or a tuple of two or three of them: a word is
    two elements, the last axis of the tensor, which is contiguous, of extent 2 and begins at a
    multiple of 16 bytes.

    Shapes: any tensor of i64.
    Executes: nothing by itself.
    Since: sm_80.
    """
    if not isinstance(tensor, Tensor) or tensor.dtype != i64:
        raise Refused(
            "T023",
            "flagged data stands in a tensor of i64",
            argument="tensor",
            label=repr(tensor),
            hint="make it with `np.zeros(words, np.int64)`, or `(words, 2)` for several values",
        )
    kinds: tuple[Any, ...] = (values,)
    if isinstance(values, tuple | list):
        kinds = tuple(values)
    if not 1 <= len(kinds) <= ops.MOST or not all(kind in ops.DTYPES for kind in kinds):
        raise Refused(
            "T023",
            "a word holds one to three values of f32 or i32",
            argument="values",
            hint="cast halves to wl.f32, which holds them exactly",
        )
    if scope not in SCOPES:
        words = ", ".join(f'"{s}"' for s in SCOPES)
        raise Refused("T015", f"`scope` is {words}, not {scope!r}", argument="scope")
    cls = tensor.type.cls
    if len(kinds) > 1 and (cls.strides[-1:] != "1" or cls.align < ops.WORD):
        raise Refused(
            "T023",
            f"words of {ops.WORD} bytes begin at multiples of {ops.WORD} bytes",
            argument="tensor",
            label=repr(tensor),
            notes=(f"address and strides are multiples of {cls.align} bytes",),
            hint="pass a contiguous tensor whose last axis has two elements",
        )
    return Flagged(tensor, kinds, scope)


def _kinds(kinds: tuple[DType, ...]) -> str:
    names = ", ".join(f"wl.{kind}" for kind in kinds)
    return names if len(kinds) == 1 else f"({names})"
