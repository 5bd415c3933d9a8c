"""What the rules of one emission share: names, places of values, storages, statements.
Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from warploom.base.dtypes import DType
from warploom.base.target import Target
from warploom.codegen.c_types import c_type
from warploom.codegen.lines import Lines
from warploom.codegen.names import Names
from warploom.codegen.places import Place, Walk, walk
from warploom.codegen.prelude import Prelude
from warploom.codegen.registry import emits
from warploom.codegen.wishes import wishes
from warploom.ir.kernel import Kernel
from warploom.ir.op import UNKNOWN, Block, Op, Value
from warploom.ir.types import Regs, Scalar


class Fault(Exception):
    """Machine IR that cannot be printed as it stands: a fault of a pass, never of the user."""


@dataclass(frozen=True, slots=True)
class Warps:
    """The warps that run what is being printed: all, or `replicas` of a role of `count` warps.

    `block_warp` is the C++ text of a warp's number in the block, `first` the role's first warp.
    """

    block_warp: str
    first: int
    count: int
    replicas: int = 1

    @property
    def within(self) -> str:
        """A warp's number in its replica."""
        if self.count == 1:
            return "0"
        own = self._own
        return f"{own} % {self.count}" if self.replicas > 1 else own

    @property
    def replica(self) -> str:
        """The replica's number."""
        if self.replicas == 1:
            return "0"
        return f"{self._own} / {self.count}" if self.count > 1 else self._own

    @property
    def first_thread(self) -> str:
        """Whether this is the first thread of a replica of a role."""
        if not self.first and self.replicas == 1:
            return "threadIdx.x == 0"
        lane = "threadIdx.x % 32 == 0"
        return lane if self.count == 1 else f"({self.within}) == 0 && {lane}"

    @property
    def _own(self) -> str:
        if not self.first:
            return self.block_warp
        own = f"{self.block_warp} - {self.first}"
        return f"({own})" if self.count * self.replicas > 1 else own


class Emitter:
    """The state of one emission, and what rules call."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.prelude = Prelude()
        self.names = Names()
        self.lines = Lines()
        self.places: dict[Value, Place] = {}
        self.extents: dict[tuple[Value, int], str] = {}
        self.strides: dict[tuple[Value, int], str] = {}
        self.maps: list[str] = []
        self.warps = Warps("(int)(threadIdx.x / 32)", 0, kernel.warps)
        self.alone = False  # one thread runs what is being printed
        # Operations that an operation around them has printed.
        self.printed: set[Op] = set()
        self._overwritten: set[Value] = set()
        self._storages: dict[str, str] = {}
        self._wishes = wishes(kernel)

    # ---- blocks ----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Print the operations of a block in order."""
        for op in block.ops:
            if op.loc is not UNKNOWN and op.loc.line > 0:
                self.lines.loc = op.loc
            try:
                rule = emits.of(op)
            except KeyError:
                raise Fault(f"{op.OPCODE} has no rule in codegen/rules") from None
            rule(self, op)

    # ---- values ----------------------------------------------------------------------------

    def type(self, dtype: DType) -> str:
        """The C++ type of a register, entered in the prelude."""
        self.prelude.type(dtype)
        return c_type(dtype)

    def place(self, value: Value) -> Place:
        """Where a value stands; for a carried value its storage."""
        if value in self._overwritten:
            raise Fault(f"{value} is used after its storage is overwritten")
        found = self.places.get(value)
        if found is not None:
            return found
        name = self._storages.get(value.storage)
        if name is None:
            raise Fault(f"{value} is used before it is defined, or carried without a storage")
        # The argument of a loop is overwritten at the end of each trip; a result is not.
        place = Place.of(name, extents_of(value), mutable=isinstance(value.owner, Block))
        self.places[value] = place
        return place

    def scalar(self, value: Value) -> str:
        """The C++ operand of a scalar, or of a register tile with one register."""
        return self.place(value).only

    def name_of(self, value: Value, hint: str = "v") -> str:
        """A new identifier for a value: its own name, the one its use suggests, or `hint`."""
        return self.names.take(value.name or self._wishes.get(value, hint))

    def declare(self, value: Value, hint: str = "v") -> tuple[Place, str]:
        """A new variable for a value, and the declaration to print before its first assignment.

        That is "float " for a scalar (it goes in front of the assignment), "float t[8]; " for an
        array.
        """
        place = Place.of(self.name_of(value, hint), extents_of(value))
        self.places[value] = place
        c = self.type(dtype_of(value))
        return place, f"{c} {place.root}[{prod(place.extents)}]; " if place.array else f"{c} "

    def declare_only(self, value: Value, hint: str = "v") -> Place:
        """A new variable for a value, declared on a line of its own."""
        place, declaration = self.declare(value, hint)
        self.lines.add(declaration.strip() if place.array else f"{declaration}{place.root};")
        return place

    def declare_storage(self, value: Value) -> None:
        """A variable for a storage; values that name the storage stand there."""
        if not value.storage or value.storage in self._storages:
            raise Fault(f"{value}: storage {value.storage!r} cannot be declared")
        self._storages[value.storage] = self.declare_only(value, value.storage).root

    def overwrite(self, old: Value, new: Value) -> None:
        """Let a value take the storage of another one, which, like all views of it, is gone."""
        root = self.place(old).root
        for value, place in self.places.items():
            if place.root == root:
                self._overwritten.add(value)
        self.places[new] = Place.of(root, extents_of(new), mutable=True)

    def assigned(self, storage: Value) -> Place:
        """The place of a storage that is given a value now."""
        self._overwritten.discard(storage)
        return self.place(storage)

    # ---- statements ------------------------------------------------------------------------

    def walk(self, extents: tuple[int, ...], *places: Place) -> Walk:
        """Loops over registers (see `places.walk`), the macro entered."""
        found = walk(extents, *places)
        if found.loops:
            self.prelude.use("UNROLL")
        return found

    def elementwise(
        self, result: Value, operands: Sequence[Value], render: Callable[..., str], hint: str = "v"
    ) -> None:
        """Print `result = render(operands)` register by register; operands broadcast."""
        self.assign_each(result, [self.place(v) for v in operands], render, hint)

    def assign_each(
        self, result: Value, sources: Sequence[Place], render: Callable[..., str], hint: str = "v"
    ) -> None:
        """As `elementwise`, from places."""
        target, declaration = self.declare(result, hint)
        found = self.walk(target.extents, target, *sources)
        to, *registers = found.registers
        self.lines.add(f"{declaration}{found.header}{to} = {render(*registers)};")

    def alias(self, value: Value, place: Place, hint: str = "v") -> None:
        """Let a value stand where another one does; copied where that place is overwritten."""
        if place.mutable:
            self.assign_each(value, [place], lambda x: x, hint)
        else:
            self.places[value] = place

    def variable(self, value: Value) -> Place:
        """A place whose address can be taken: a literal gets a variable."""
        place = self.place(value)
        if place.variable:
            return place
        dtype = dtype_of(value)
        name = self.names.take("held")
        self.lines.add(f"{self.type(dtype)} {name} = {place.only};")
        return Place(name, place.extents, place.strides)


def dtype_of(value: Value) -> DType:
    """The dtype of a scalar or a register tile."""
    if not isinstance(value.type, Scalar | Regs):
        raise Fault(f"{value} is no scalar and not in registers")
    return value.type.dtype


def extents_of(value: Value) -> tuple[int, ...]:
    """Register extents of a value; () for a scalar."""
    return value.type.extents if isinstance(value.type, Regs) else ()
