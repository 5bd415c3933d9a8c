"""How an operation is declared. One declaration gives constructor, operand walk, text form, clone
and documentation; rules for devices live elsewhere. Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum, Flag, auto
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from warploom.base.dtypes import DType
from warploom.ir.types import Type


class Stage(Flag):
    """Stages of lowering; a declaration lists those in which its operation is legal."""

    TILE = auto()
    ROLES = auto()
    MACHINE = auto()

    @classmethod
    def any(cls) -> Stage:
        return cls.TILE | cls.ROLES | cls.MACHINE


class Actor(Enum):
    """Who executes an operation."""

    THREAD = "thread"
    WARP = "warp"
    ROLE = "role"
    BLOCK = "block"


class Effect(Enum):
    """What an operation does to memory, order or the outside; an operation without effects is
    pure."""

    READ_GLOBAL = "reads global"
    WRITE_GLOBAL = "writes global"
    READ_SHARED = "reads shared"
    WRITE_SHARED = "writes shared"
    ALLOCATE = "allocates shared"
    SYNC = "synchronises"
    OUTSIDE = "observes"
    CONTROL = "controls"
    STORAGE = "writes a storage"


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in user source; `chain` holds the call sites of inlined functions, innermost
    first."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    chain: tuple[Loc, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


UNKNOWN = Loc("?", 0)


class Value:
    """One SSA value. `storage` is the variable that holds it, set by assign_storage."""

    __slots__ = ("loc", "name", "owner", "storage", "type")

    def __init__(self, type: Type, name: str = "", loc: Loc = UNKNOWN) -> None:
        self.type: Type = type
        self.name = name
        self.loc = loc
        self.owner: Op | Block | None = None
        self.storage: str = ""

    def __repr__(self) -> str:
        return f"<{self.name or '_'}: {self.type}>"


class Block:
    """A list of operations with arguments. The last operation of a region's block is its yield."""

    __slots__ = ("args", "ops")

    def __init__(self, args: tuple[Value, ...] = (), ops: list[Op] | None = None) -> None:
        self.args = args
        self.ops: list[Op] = ops if ops is not None else []
        for arg in args:
            arg.owner = self


class FieldKind(Enum):
    """What a declared field is."""

    OPERAND = "operand"
    OPERANDS = "operands"
    OPTIONAL = "optional"
    ATTRIBUTE = "attribute"
    REGION = "region"
    REGIONS = "regions"


def operand() -> Any:
    """Field: one `Value`."""
    return field(metadata={"kind": FieldKind.OPERAND})


def operands() -> Any:
    """Field: a tuple of `Value`."""
    return field(default=(), metadata={"kind": FieldKind.OPERANDS})


def optional() -> Any:
    """Field: a `Value` or None."""
    return field(default=None, metadata={"kind": FieldKind.OPTIONAL})


_REQUIRED = object()


def attribute(default: Any = _REQUIRED) -> Any:
    """Field: a compile-time constant (int, float, str, bool, None, dtype or a tuple of these)."""
    metadata = {"kind": FieldKind.ATTRIBUTE}
    if default is _REQUIRED:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def region() -> Any:
    """Field: a nested `Block`."""
    return field(default_factory=Block, metadata={"kind": FieldKind.REGION})


def regions() -> Any:
    """Field: a tuple of nested `Block`s."""
    return field(default=(), metadata={"kind": FieldKind.REGIONS})


class Complaint(Exception):
    """An operation that breaks its declaration; the verifier adds the place."""


def check(condition: bool, message: str) -> None:
    """Raise `Complaint` unless `condition` holds."""
    if not condition:
        raise Complaint(message)


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One declared field, in order."""

    name: str
    kind: FieldKind
    default: Any


@dataclass(eq=False, kw_only=True)
class Op:
    """Base of all operations. Subclasses are declared with `@op`."""

    OPCODE: ClassVar[str] = ""
    FAMILY: ClassVar[str] = ""
    STAGES: ClassVar[Stage] = Stage.any()
    EFFECTS: ClassVar[frozenset[Effect]] = frozenset()
    EXECUTES: ClassVar[Actor] = Actor.THREAD
    SINCE: ClassVar[str] = "sm_80"
    TERMINATOR: ClassVar[bool] = False
    DTYPES: ClassVar[tuple[DType, ...]] = ()
    FIELDS: ClassVar[tuple[FieldInfo, ...]] = ()
    # Taken out of FIELDS once: every pass walks operands and regions of every operation.
    OPERANDS: ClassVar[tuple[tuple[str, bool], ...]] = ()
    REGIONS: ClassVar[tuple[tuple[str, bool], ...]] = ()  # name, and whether it holds several

    loc: Loc = UNKNOWN
    results: tuple[Value, ...] = ()

    def infer(self) -> tuple[Type, ...]:
        """The types of the results; raises `Complaint` where operands do not fit."""
        return ()

    def verify(self) -> None:
        """Raise `Complaint` where something beyond `infer` is wrong."""

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def operand_values(self) -> Iterator[Value]:
        """Every operand in declaration order, variadic ones flattened, absent ones left out."""
        for name, many in self.OPERANDS:
            held = getattr(self, name)
            if many:
                yield from held
            elif held is not None:
                yield held

    def replace_operands(self, swap: Callable[[Value], Value]) -> None:
        """Put `swap(v)` in the place of every operand v (regions are not entered)."""
        for name, many in self.OPERANDS:
            held = getattr(self, name)
            if many:
                setattr(self, name, tuple(swap(v) for v in held))
            elif held is not None:
                setattr(self, name, swap(held))

    def attributes(self) -> dict[str, Any]:
        """Attributes by name, in declaration order."""
        return {i.name: getattr(self, i.name) for i in self.FIELDS if i.kind is FieldKind.ATTRIBUTE}

    def regions(self) -> tuple[Block, ...]:
        """Nested blocks in declaration order."""
        if not self.REGIONS:
            return ()
        found: list[Block] = []
        for name, many in self.REGIONS:
            if many:
                found += getattr(self, name)
            else:
                found.append(getattr(self, name))
        return tuple(found)

    @property
    def is_pure(self) -> bool:
        """No effect of its own and no region: may be merged, moved and dropped."""
        return not self.EFFECTS and not self.REGIONS


REGISTRY: dict[str, type[Op]] = {}
T = TypeVar("T", bound=Op)


@dataclass_transform(
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(operand, operands, optional, attribute, region, regions),
)
def op(
    opcode: str,
    *,
    stages: Stage | None = None,
    effects: tuple[Effect, ...] = (),
    executes: Actor = Actor.THREAD,
    since: str = "sm_80",
    terminator: bool = False,
    dtypes: tuple[DType, ...] = (),
) -> Callable[[type[T]], type[T]]:
    """Declare an operation `family.name`. `dtypes` are those that tests/ops must cover."""

    def declare(cls: type[T]) -> type[T]:
        made = cast(type[T], dataclass(eq=False, kw_only=True, repr=False)(cls))
        many = FieldKind.OPERANDS
        values = (FieldKind.OPERAND, many, FieldKind.OPTIONAL)
        infos: list[FieldInfo] = []
        for f in fields(made):
            kind = f.metadata.get("kind")
            if kind is not None:
                infos.append(FieldInfo(f.name, kind, f.default))
        made.FIELDS = tuple(infos)
        made.OPERANDS = tuple((i.name, i.kind is many) for i in infos if i.kind in values)
        nested = (FieldKind.REGION, FieldKind.REGIONS)
        made.REGIONS = tuple(
            (i.name, i.kind is FieldKind.REGIONS) for i in infos if i.kind in nested
        )
        made.OPCODE = opcode
        made.FAMILY = opcode.split(".", 1)[0]
        made.STAGES = stages if stages is not None else Stage.any()
        made.EFFECTS = frozenset(effects)
        made.EXECUTES = executes
        made.SINCE = since
        made.TERMINATOR = terminator
        made.DTYPES = dtypes
        if opcode in REGISTRY:
            raise ValueError(f"operation {opcode} declared twice")
        REGISTRY[opcode] = made
        return made

    return declare
