"""What names of a kernel stand for: tiles, scalars, tensors, windows.

Thin wrappers of IR values with Python's operators. Knows no syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from warploom.base.dtypes import DType
from warploom.ir import types
from warploom.ir.op import Value
from warploom.ir.ops import scalar as scalars
from warploom.ir.ops import tensor as tensors
from warploom.ir.ops import tile as tiles
from warploom.language import core, elsewhere
from warploom.language.context import Handle, Refused, builder
from warploom.language.operators import Operators


class _Arithmetic(Operators):
    """What scalars and tiles have in common: an IR value, a dtype, operators."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return core.describe(self.value)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return core.dtype_of(self.value)

    def cast(self, dtype: DType) -> Any:
        """The same values in another dtype.

        To floats rounds to nearest even, float to integer truncates towards zero, to bool tests
        for non-zero. To 8-bit floats (f8e4m3, f8e5m2) it saturates: what is beyond their range,
        infinity included, becomes the largest number. NaN stays NaN.

        Shapes: any, unchanged.
        Executes: every thread on its own elements.
        Since: sm_80; 8-bit floats sm_89.
        PTX: cvt.
        """
        return wrap(core.convert(self.value, need_dtype(dtype)))

    def __bool__(self) -> bool:
        raise Refused(
            "F030",
            "a value of the kernel has no truth value here",
            hint="`wl.where(condition, a, b)` chooses element by element",
        )

    @staticmethod
    def _binary(kind: str, lhs: Any, rhs: Any) -> Any:
        return wrap(core.binary(kind, operand(lhs, "lhs"), operand(rhs, "rhs")))

    @staticmethod
    def _compare(kind: str, lhs: Any, rhs: Any) -> Any:
        return wrap(core.compare(kind, operand(lhs, "lhs"), operand(rhs, "rhs")))

    def _unary(self, kind: str) -> Any:
        return wrap(core.unary(kind, self.value))


class Scalar(_Arithmetic):
    """One run-time value for the whole block: i32, i64, f32, f64, bool, or what a tensor holds."""

    __slots__ = ()


class Tile(_Arithmetic):
    """An array in the registers of the block, of constant shape. A value: it never changes."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, known at compile time."""
        shape = core.shape_of(self.value)
        assert shape is not None
        return shape

    @property
    def T(self) -> Tile:
        """The transposed tile.

        Shapes: (m, n) gives (n, m).
        Executes: nothing; the layout follows.
        Since: sm_80.
        """
        if len(self.shape) != 2:
            raise Refused(
                "T012",
                f"`.T` needs two axes, and this tile has the shape {core.shape_text(self.shape)}",
                hint="`t[:, None]` or `t[None, :]` gives a row of numbers a second axis",
            )
        made = builder().emit(tiles.Permute(value=self.value, order=(1, 0)), self.value.name)
        return Tile(made)

    def __getitem__(self, index: Any) -> Tile:
        return sub_tile(self, index)


Arithmetic: TypeAlias = Tile | Scalar | int | float | bool


class Tensor:
    """An argument in global memory. `x[…]` makes a window; `wl.load` and `wl.store` access it.

    `root` is the argument itself, `param` its number; a sub-tensor of `.rows` has own extents.
    """

    __slots__ = ("extents", "param", "root", "value")

    def __init__(
        self,
        value: Value,
        param: int,
        root: Value | None = None,
        extents: dict[int, Scalar] | None = None,
    ) -> None:
        self.value = value
        self.param = param
        self.root = root if root is not None else value
        self.extents: dict[int, Scalar] = extents or {}

    def __repr__(self) -> str:
        return f"`{self.root.name}`, {self.dtype} tensor of rank {self.rank}"

    @property
    def type(self) -> types.Tensor:
        """The IR type: dtype, rank and argument class."""
        type = self.value.type
        assert isinstance(type, types.Tensor)
        return type

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of axes, known at compile time."""
        return self.type.rank

    @property
    def shape(self) -> Extents:
        """The extents, one run-time scalar an axis: i32, or i64 where offsets need it."""
        return Extents(self)

    def stride(self, axis: int) -> Scalar:
        """The distance of neighbours along an axis, in elements, as a scalar.

        Executes: every warp.
        Since: sm_80.
        """
        axis = core_axis(axis, self.rank, f"a tensor of rank {self.rank}")
        return Scalar(builder().emit(scalars.Stride(tensor=self.root, axis=axis)))

    def rows(self, lo: Scalar | int, hi: Scalar | int, axis: int = 0) -> Tensor:
        """The sub-tensor lo ≤ index < hi along an axis; hi is clipped to the extent.

        Windows of it end inside it: what lies beyond reads as zero and is not written, although
        the parent has data there. lo is from 0 up.

        Shapes: rank unchanged; the axis has the run-time extent max(min(hi, extent) − lo, 0).
        Executes: nothing by itself.
        Since: sm_80.
        """
        axis = core_axis(axis, self.rank, f"a tensor of rank {self.rank}")
        low, high = index_value(lo, "lo"), index_value(hi, "hi")
        made = builder().emit(
            tensors.Rows(tensor=self.value, lo=low, hi=high, axis=axis), self.value.name
        )
        end = core.binary("min", high, self.shape[axis].value)
        extent = Scalar(core.binary("max", core.binary("sub", end, low), 0))
        return Tensor(made, self.param, self.root, {**self.extents, axis: extent})


class Extents:
    """`x.shape`: made axis by axis, where it is asked for."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"the shape of {self.tensor!r}"

    def __len__(self) -> int:
        return self.tensor.rank

    def __getitem__(self, axis: int) -> Scalar:
        axis = core_axis(axis, len(self), f"a tensor of rank {len(self)}")
        known = self.tensor.extents.get(axis)
        if known is not None:
            return known
        return Scalar(builder().emit(scalars.Dim(tensor=self.tensor.root, axis=axis)))

    def __iter__(self) -> Iterator[Scalar]:
        return (self[axis] for axis in range(len(self)))


@dataclass(frozen=True, slots=True)
class Ds:
    """`wl.ds(start, size)`: `size` elements from `start` on."""

    start: Scalar | int
    size: int


@dataclass(frozen=True, slots=True)
class Window:
    """`x[…]`: a place in a tensor. `sizes` holds None where an axis is indexed by a scalar."""

    tensor: Tensor
    starts: tuple[Value, ...]
    sizes: tuple[int | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile that is loaded from here."""
        return tuple(n for n in self.sizes if n is not None)

    def __repr__(self) -> str:
        shape = core.shape_text(self.shape)
        return f"a window of shape {shape} of {self.tensor!r}"


def wrap(value: Value) -> Any:
    """The wrapper of a scalar or tile."""
    return Tile(value) if isinstance(value.type, types.Tile) else Scalar(value)


def operand(
    given: Any, argument: str = "", what: str = "a tile, a scalar or a number"
) -> core.Operand:
    """The IR value or number behind an argument; refuses everything else."""
    if isinstance(given, Tile | Scalar):
        return given.value
    if isinstance(given, int | float):
        return given
    raise not_a(what, given, argument)


def not_a(what: str, given: Any, argument: str = "") -> Refused:
    """The refusal of an argument of another kind."""
    if isinstance(given, Tensor):
        return Refused(
            "T019",
            f"{what} is needed here, not a tensor",
            argument=argument,
            label="a tensor in global memory",
            notes=(repr(given),),
            hint="load a window of it first: `wl.load(x[wl.ds(start, SIZE)])`; "
            "a tensor is no pointer to add to",
        )
    if isinstance(given, Window):
        return Refused(
            "T019",
            f"{what} is needed here, not a window of a tensor",
            argument=argument,
            label="a window, not yet loaded",
            notes=(repr(given),),
            hint="load it: `wl.load(x[…])`",
        )
    if given is None:
        return Refused(
            "T020",
            f"{what} is needed here, not None",
            argument=argument,
            label="None",
            hint="`if x is not None:` leaves code out where an argument is missing",
        )
    return Refused(
        "T015",
        f"{what} is needed here, not {kind_of(given)}",
        argument=argument,
        label=kind_of(given),
        hint=given.hint if isinstance(given, Handle) else "",
    )


def kind_of(given: Any) -> str:
    """What a value is, in words, with its article."""
    if isinstance(given, Tile):
        return f"{core.with_article(given.dtype)} tile of shape {core.shape_text(given.shape)}"
    if isinstance(given, Scalar):
        return f"a run-time {given.dtype} scalar"
    if isinstance(given, bool):
        return f"the constant {given}"
    if isinstance(given, int | float):
        return f"the number {given!r}"
    if given is None:
        return "None"
    if isinstance(given, Handle):
        return repr(given)
    words = {str: "a text", tuple: "a tuple", list: "a list", DType: "a dtype", Ds: "a `wl.ds`"}
    if isinstance(given, Tensor | Window):
        return "a tensor" if isinstance(given, Tensor) else "a window of a tensor"
    if callable(given) and hasattr(given, "__name__"):
        return f"the function `{given.__name__}`"
    return words.get(type(given)) or f"a value of type {type(given).__name__}"


def need_dtype(given: Any, argument: str = "dtype") -> DType:
    """An argument that must be a dtype."""
    if isinstance(given, DType):
        return given
    # "float32", np.float32, np.dtype("float32"), torch.float32, float
    name = str(getattr(given, "__name__", given)).rpartition(".")[2]
    own = elsewhere.OF_PACKAGE.get(name, "")
    raise Refused(
        "T015",
        f"a dtype is needed here, not {kind_of(given)}",
        argument=argument,
        hint=f"write {own}"
        if own.startswith("`wl.")
        else "the dtypes are wl.f32, wl.f16, wl.bf16, wl.f8e4m3, wl.f8e5m2, wl.i32, "
        "wl.i64, wl.boolean",
    )


def need_tile(given: Any, argument: str = "") -> Tile:
    """An argument that must be a tile."""
    if not isinstance(given, Tile):
        raise not_a("a tile", given, argument)
    return given


def core_axis(axis: Any, rank: int, what: str, argument: str = "axis") -> int:
    """An axis from −rank to rank − 1 as one from 0; refuses what is not a constant or not there."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        if isinstance(axis, Scalar | Tile):
            raise Refused(
                "F027",
                "the axis is not a constant",
                argument=argument,
                hint="write a number, or a `wl.const` parameter",
            )
        raise Refused(
            "T015",
            f"the axis is an integer, not {kind_of(axis)}",
            argument=argument,
            hint="write a number, such as axis=1",
        )
    if not -rank <= axis < rank:
        possible = f"axes 0 to {rank - 1}" if rank > 1 else "axis 0 only" if rank else "no axis"
        raise Refused(
            "T012",
            f"there is no axis {axis} in {what}",
            argument=argument,
            notes=(f"it has {possible}",),
            hint="axes count from 0, or back from -1",
        )
    return axis % rank


def index_value(given: Any, argument: str = "") -> Value:
    """An integer scalar as an IR value."""
    if isinstance(given, Tile):
        raise Refused(
            "T017",
            "one integer is needed here, not a tile",
            argument=argument,
            notes=(core.describe(given.value),),
            hint="`wl.scalar(t)` turns a tile of shape () into a scalar",
        )
    if isinstance(given, bool) or not isinstance(given, Scalar | int):
        raise not_a("an integer", given, argument)
    value = core.materialise(operand(given), argument=argument)
    if not core.dtype_of(value).is_int:
        raise Refused(
            "T015",
            f"an integer is needed here, not {core.describe(value)}",
            argument=argument,
            hint="cast it: `.cast(wl.i32)`",
        )
    return value


def sub_tile(tile: Tile, index: Any) -> Tile:
    """`t[…]`: constant slices, constant indices (which drop an axis), and None for a new axis."""
    entries = index if isinstance(index, tuple) else (index,)
    axes = [e for e in entries if e is not None]
    if len(axes) > len(tile.shape):
        raise Refused(
            "T006",
            f"{len(axes)} indices for a tile of shape {core.shape_text(tile.shape)}",
            hint="one entry an axis; None makes a new axis",
        )
    axes += [slice(None)] * (len(tile.shape) - len(axes))
    starts, sizes, dropped = [], [], []
    # The places of the entries that are no new axis, in the source.
    places = [f"[{at}]" for at, e in enumerate(entries) if e is not None]
    places += [""] * (len(axes) - len(places))
    for axis, (entry, extent) in enumerate(zip(axes, tile.shape, strict=True)):
        start, size = _static_entry(entry, extent, places[axis])
        starts.append(start)
        sizes.append(1 if size is None else size)
        if size is None:
            dropped.append(axis)
    b, value, name = builder(), tile.value, tile.value.name
    if tuple(sizes) != tile.shape:
        value = b.emit(tiles.Slice(value=value, starts=tuple(starts), sizes=tuple(sizes)), name)
    for axis in reversed(dropped):
        value = b.emit(tiles.DropAxis(value=value, axis=axis), name)
    place = given = 0
    for entry in entries:
        if entry is None:
            value = b.emit(tiles.InsertAxis(value=value, axis=place), name)
            place += 1
        else:
            place += given not in dropped
            given += 1
    return Tile(value)


def _static_entry(entry: Any, extent: int, argument: str) -> tuple[int, int | None]:
    """Start and size of one entry of a sub-tile; size None where the entry is one index."""
    if isinstance(entry, Tile):
        raise Refused(
            "T007",
            "a tile is indexed by a tile",
            argument=argument,
            hint="`wl.gather(x, (index,))` reads elements of a tensor at computed places; "
            "`wl.where` chooses between tiles",
        )
    if isinstance(entry, Ds):
        entry = slice(entry.start, entry.start + entry.size)
    bounds = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,)
    for bound in bounds:
        if isinstance(bound, Scalar):
            raise Refused(
                "T013",
                "the bounds of a sub-tile are constants, and this one is known at run time only",
                argument=argument,
                notes=(core.describe(bound.value),),
                hint="load the part that is needed: `wl.load(x[wl.ds(start, SIZE)])`",
            )
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
            raise Refused(
                "T015",
                f"an index is an integer, not {kind_of(bound)}",
                argument=argument,
                hint="write a constant integer or a slice",
            )
    if not isinstance(entry, slice):
        if not -extent <= entry < extent:
            raise Refused(
                "T013",
                f"index {entry} is outside an axis of {extent}",
                argument=argument,
                hint="give an index inside the tile",
            )
        return entry % extent, None
    if entry.step not in (None, 1):
        raise Refused(
            "T009",
            f"a sub-tile has no step, and this slice has {entry.step}",
            argument=argument,
            hint="take each second element by `wl.gather` when loading",
        )
    lo = 0 if entry.start is None else entry.start + (extent if entry.start < 0 else 0)
    hi = extent if entry.stop is None else entry.stop + (extent if entry.stop < 0 else 0)
    if not 0 <= lo < hi <= extent:
        raise Refused(
            "T013",
            f"{_bound(entry.start)}:{_bound(entry.stop)} does not fit an axis of {extent}",
            argument=argument,
            notes=("a sub-tile lies inside the tile and is not empty",),
            hint="give bounds inside the tile",
        )
    return lo, hi - lo


def _bound(bound: int | None) -> str:
    return "" if bound is None else str(bound)
