"""The mutants of a kernel: every edit at every operation that it can be made at. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warploom.base.diagnostics import Span
from warploom.ir.clone import clone
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops.roles import Split
from warploom.testing.mutation.edits import EDITS, Edit, Place


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit at operation number `number` of a kernel, in the order of `walk`: what it changes
    (`text`) and where that stands in the source (`span`)."""

    edit: Edit
    number: int
    text: str
    span: Span

    def of(self, kernel: Kernel) -> Kernel:
        """The kernel with this edit; the one given stays as it is."""
        return altered(kernel, self)

    @property
    def drops(self) -> bool:
        """Whether it does away with an operation."""
        return self.edit.name.startswith("drop-")


def altered(kernel: Kernel, *mutants: Mutant) -> Kernel:
    """A kernel with the edits of several mutants of it."""
    return altered_around(kernel, (), *mutants)[0]


def altered_around(
    kernel: Kernel, numbers: Sequence[int], *mutants: Mutant
) -> tuple[Kernel, tuple[Op, ...]]:
    """The same, and what has become of the operations of some numbers."""
    made = clone(kernel)
    places = list(_places(made.body))
    for mutant in mutants:
        block, op = places[mutant.number]
        mutant.edit.change(Place(made, _home(made.body, op, block), op))
    return made, tuple(places[number][1] for number in numbers)


def _places(block: Block) -> Iterator[tuple[Block, Op]]:
    """Every operation with its block, in the order of `walk`."""
    for op in block.ops:
        yield block, op
        for inner in op.regions():
            yield from _places(inner)


def _home(body: Block, op: Op, block: Block) -> Block:
    """The block that holds an operation: `block` unless an edit has moved it."""
    if any(held is op for held in block.ops):
        return block
    return next(b for b, held in _places(body) if held is op)


def roles_of(kernel: Kernel) -> dict[int, str]:
    """The role of each operation that stands in one, by number."""
    found: dict[int, str] = {}
    numbers = {op: i for i, op in enumerate(walk(kernel.body))}
    for op in walk(kernel.body):
        if isinstance(op, Split):
            for name, body in zip(op.names, op.bodies, strict=True):
                found |= {numbers[inner]: name for inner in walk(body)}
    return found


def mutants_of(kernel: Kernel) -> list[Mutant]:
    """All mutants of a kernel of the machine stage, in the order of the program text."""
    roles, spare = roles_of(kernel), clone(kernel)
    places = list(_places(spare.body))
    found: list[Mutant] = []
    for number, op in enumerate(walk(kernel.body)):
        for edit in EDITS:
            if type(op) not in edit.on:
                continue
            block, copy = places[number]
            text = edit.change(Place(spare, block, copy))
            if text:  # the copy is spent
                span = Span.at(op.loc, role=roles.get(number, ""), label=text)
                found.append(Mutant(edit, number, text, span))
                spare = clone(kernel)
                places = list(_places(spare.body))
    return found
