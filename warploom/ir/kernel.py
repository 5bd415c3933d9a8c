"""A kernel: parameters, one body block, and what launching it needs. Knows no device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warploom.ir.op import UNKNOWN, Block, Loc, Op, Stage, Value
from warploom.ir.types import Scalar, Tensor


@dataclass(eq=False, slots=True)
class Kernel:
    """One compiled variant on its way down the stages.

    `params` are values of type `Tensor` or `Scalar` in call order (compile-time arguments are
    gone). The body ends with a `control.yield` without values. `written` names the parameters that
    the kernel stores to, as indices into `params`; `shared_bytes` is set by plan_shared_memory;
    `cluster` is the number of blocks of a cluster along each axis of the grid; `dependent`: it
    waits for the launch before it, and so may begin while that one ends.
    `kept` are the tensors behind the parameters that the launch brings by itself.
    With `trace` each role notes so many events, in a tensor behind the parameters (insert_trace).
    `watched`: warps note what they wait for, in another one, and leave when nothing comes; with
    `delays`, a seed from 0 on, they are held up at random (insert_watch).
    """

    name: str
    params: tuple[Value, ...]
    body: Block
    stage: Stage = Stage.TILE
    warps: int = 4
    loc: Loc = UNKNOWN
    fast_math: bool = False
    shared_bytes: int = 0
    written: tuple[int, ...] = ()
    source: tuple[str, ...] = field(default=())
    maps: tuple[TensorMap, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    dependent: bool = False
    kept: tuple[Kept, ...] = ()
    trace: int = 0
    watched: bool = False
    delays: int = -1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    def words(self) -> Iterator[LaunchWord]:
        """The launch arguments in order: for a tensor its address, extents and "n" strides, else
        the scalar.

        Emitter, driver and simulator all take the order from here.
        """
        for index, param in enumerate(self.params):
            if isinstance(param.type, Tensor):
                yield LaunchWord("address", index)
                for axis in range(param.type.rank):
                    yield LaunchWord("extent", index, axis)
                for axis, letter in enumerate(param.type.cls.strides):
                    if letter == "n":
                        yield LaunchWord("stride", index, axis)
            else:
                assert isinstance(param.type, Scalar)
                yield LaunchWord("scalar", index)
        for number, made in enumerate(self.maps):
            yield LaunchWord("map", made.param, number)


@dataclass(frozen=True, slots=True)
class TensorMap:
    """What the copy engine must know of a tensor argument to move boxes of it (one descriptor).

    `axes` lists the tensor's axes fastest first, `box` the extents of a box along them in elements,
    `swizzle` the span in bytes (0: none), `nan` says that floats outside the tensor read as NaN.
    A `blank` one says nothing of the tensor but its dtype: the kernel makes descriptors from it.
    """

    param: int
    axes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    nan: bool = False
    blank: bool = False

    def __str__(self) -> str:
        axes, box = ",".join(map(str, self.axes)), "x".join(map(str, self.box))
        flags = (":nan" if self.nan else "") + (":blank" if self.blank else "")
        return f"{self.param}:{axes}:{box}:{self.swizzle}{flags}"

    @classmethod
    def parse(cls, text: str) -> TensorMap:
        """Read back what `str` prints."""
        param, axes, box, swizzle, *flags = text.split(":")
        return cls(
            int(param),
            tuple(int(a) for a in axes.split(",")),
            tuple(int(n) for n in box.split("x")),
            int(swizzle),
            "nan" in flags,
            "blank" in flags,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """Memory that launches of a kernel keep for each other: a parameter, a row-major tensor of
    `fixed` rows and `each` more for every block of the grid, each row of the shape `inner`. All is
    zero before the first launch."""

    param: int
    dtype: str
    fixed: int
    each: int
    inner: tuple[int, ...] = ()

    def shape(self, blocks: int) -> tuple[int, ...]:
        """The extents for a grid of so many blocks."""
        return (self.fixed + self.each * blocks, *self.inner)

    def __str__(self) -> str:
        inner = "x".join(map(str, self.inner))
        return f"{self.param}:{self.dtype}:{self.fixed}:{self.each}:{inner}"

    @classmethod
    def parse(cls, text: str) -> Kept:
        """Read back what `str` prints."""
        param, dtype, fixed, each, inner = text.split(":")
        extents = tuple(int(n) for n in inner.split("x")) if inner else ()
        return cls(int(param), dtype, int(fixed), int(each), extents)


@dataclass(frozen=True, slots=True)
class LaunchWord:
    """One launch argument. Extents and strides are i32, or i64 where the tensor's class is wide; a
    "map" is the 128-byte descriptor number `axis` of the kernel, a grid constant."""

    kind: str
    param: int
    axis: int = 0


def walk(block: Block) -> Iterator[Op]:
    """Every operation of a block, outer before inner, in program order."""
    for op in block.ops:
        yield op
        for inner in op.regions():
            yield from walk(inner)
