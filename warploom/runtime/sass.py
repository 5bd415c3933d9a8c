"""What the assembler made of each role: its instructions, the registers it uses, its traffic with
local memory (spills). Read from the text that nvdisasm prints; knows no kernel and no compiler.

A role is told by the source lines that only it has: it begins at the instruction by way of which
these are reached. What several roles run is nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

# A file and a line of it.
Place: TypeAlias = tuple[str, int]
# The lines that only one role has, by the name of the role.
RolePlaces: TypeAlias = Mapping[str, frozenset[Place]]

# nvdisasm's options for the two texts that `read` takes, and for the one that people read.
LINES, RANGES, PLAIN = (
    ("--print-code", "--print-line-info-inline"),
    ("--print-code", "--life-range-mode", "narrow"),
    ("--print-code",),
)

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_LABEL = re.compile(r"^(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_PLACE = re.compile(r'(?:File|inlined at) "([^"]*)", line (\d+)')
_WIDTH = re.compile(r"\.(64|128)\b")
_ENDS = ("EXIT", "RET", "BRX", "JMX", "KILL", "BPT")


@dataclass(slots=True)
class Instruction:
    """One instruction: its offset in the function, what it may go on to, where it comes from."""

    offset: int
    opcode: str
    goes_on: bool
    target: str
    places: tuple[Place, ...]
    registers: int = 0  # the highest that is alive here, counted from 1
    next: list[int] = field(default_factory=list)

    @property
    def local_bytes(self) -> int:
        """Bytes that a thread moves to or from local memory."""
        if not self.opcode.startswith(("STL", "LDL")):
            return 0
        width = _WIDTH.search(self.opcode)
        return int(width.group(1)) // 8 if width else 4


@dataclass(slots=True)
class Use:
    """What one role uses: registers a thread, bytes stored to and loaded from local memory in the
    text of its program, the source place of the first of them, its number of instructions."""

    registers: int = 0
    stored: int = 0
    loaded: int = 0
    place: Place | None = None
    instructions: int = 0

    @property
    def local_bytes(self) -> int:
        """Bytes stored to and loaded from local memory."""
        return self.stored + self.loaded


def read(lines: str, ranges: str) -> list[Instruction]:
    """The instructions of a function, from nvdisasm's texts under the options LINES and RANGES."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    places: list[Place] = []
    fresh = False  # whether the last line was a note of places
    for line in lines.splitlines():
        if line.lstrip().startswith("//## File"):
            places = [] if not fresh else places
            places += [(file, int(number)) for file, number in _PLACE.findall(line)]
            fresh = True
            continue
        fresh = False
        if label := _LABEL.match(line):
            labels[label.group(1)] = len(found)
        elif match := _INSTRUCTION.match(line):
            found.append(_instruction(match, tuple(places)))
    _link(found, labels)
    _note_registers(found, ranges)
    return found


def _instruction(match: re.Match[str], places: tuple[Place, ...]) -> Instruction:
    offset, predicate, opcode, operands = match.groups()
    target = _TARGET.search(operands)
    plain = opcode.startswith("BRA") and "," not in operands
    ends = not predicate and (plain or opcode.startswith(_ENDS))
    return Instruction(int(offset, 16), opcode, not ends, target.group(1) if target else "", places)


def _link(found: list[Instruction], labels: Mapping[str, int]) -> None:
    """Enter what each instruction may go on to."""
    for number, instruction in enumerate(found):
        if instruction.goes_on and number + 1 < len(found):
            instruction.next.append(number + 1)
        to = labels.get(instruction.target, len(found))
        if to < len(found):
            instruction.next.append(to)


def _note_registers(found: list[Instruction], ranges: str) -> None:
    """Enter the highest register that is alive at each instruction."""
    start = -1
    held = {i.offset: i for i in found}
    for line in ranges.splitlines():
        if start < 0:
            header = re.search(r"//\s*\|\s*#\s+0", line)
            start = header.end() - 1 if header else -1
        elif match := _INSTRUCTION.match(line):
            alive = line[start:].partition("|")[0].rstrip()
            held[int(match.group(1), 16)].registers = len(alive)


def owners(found: Sequence[Instruction], roles: RolePlaces) -> list[str]:
    """The role of each instruction; "" for what stands before the roles or is run by several."""
    if not found:
        return []
    order, above = _dominators(found)
    entries: dict[int, str] = {}
    for name, own in roles.items():
        other = frozenset().union(*(p for n, p in roles.items() if n != name))
        if (entry := _entry(found, order, above, own, other)) >= 0:
            entries[entry] = name
    names = [""] * len(found)
    for number in order:
        names[number] = entries.get(number, names[above[number]])
    return names


def _entry(
    found: Sequence[Instruction],
    order: Sequence[int],
    above: Sequence[int],
    own: frozenset[Place],
    other: frozenset[Place],
) -> int:
    """The instruction by way of which a role is entered: what it dominates has the role's lines and
    few of others. (The assembler gives some instructions the line of a neighbour.) −1: none."""
    score = [(not own.isdisjoint(i.places)) - (not other.isdisjoint(i.places)) for i in found]
    best, most = -1, 0
    for number in reversed(order):
        if score[number] >= most and score[number] > 0:
            best, most = number, score[number]
        if above[number] != number:
            score[above[number]] += score[number]
    return best


def _dominators(found: Sequence[Instruction]) -> tuple[list[int], list[int]]:
    """Reachable instructions in reverse postorder, and the next one that every way to each of them
    comes through (Cooper, Harvey and Kennedy); the first is its own."""
    order = _reverse_postorder(found)
    rank = {number: place for place, number in enumerate(order)}
    before: list[list[int]] = [[] for _ in found]
    for number in order:
        for to in found[number].next:
            before[to].append(number)
    above = [-1] * len(found)
    above[0] = 0
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            new = -1
            for a in before[number]:
                if above[a] >= 0:
                    new = a if new < 0 else _meet(a, new, above, rank)
            changed |= above[number] != new
            above[number] = new
    return order, above


def _meet(a: int, b: int, above: Sequence[int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = above[a]
        while rank[b] > rank[a]:
            b = above[b]
    return a


def _reverse_postorder(found: Sequence[Instruction]) -> list[int]:
    done: list[int] = []
    seen = {0}
    open_nodes = [(0, iter(found[0].next))]
    while open_nodes:
        number, following = open_nodes[-1]
        to = next((n for n in following if n not in seen), None)
        if to is None:
            done.append(number)
            open_nodes.pop()
        else:
            seen.add(to)
            open_nodes.append((to, iter(found[to].next)))
    return done[::-1]


def by_role(found: Sequence[Instruction], roles: RolePlaces) -> dict[str, Use]:
    """What each role uses; under "" what stands outside of the roles."""
    uses = {name: Use() for name in ("", *roles)}
    for instruction, name in zip(found, owners(found, roles), strict=True):
        use = uses[name]
        use.instructions += 1
        use.registers = max(use.registers, instruction.registers)
        if size := instruction.local_bytes:
            use.stored += size if instruction.opcode.startswith("STL") else 0
            use.loaded += size if instruction.opcode.startswith("LDL") else 0
            _note_place(use, instruction, roles.get(name, frozenset()))
    return uses


def _note_place(use: Use, instruction: Instruction, own: frozenset[Place]) -> None:
    """Keep the first place of traffic with local memory, rather one of the role's own lines."""
    # The last place is that of the source: helpers of the generated text are inlined there.
    place = instruction.places[-1] if instruction.places else None
    if use.place is None or (use.place not in own and place in own):
        use.place = place


def marked(text: str, found: Sequence[Instruction], roles: RolePlaces) -> str:
    """The plain text with a comment wherever the instructions of another role begin."""
    names = {i.offset: name for i, name in zip(found, owners(found, roles), strict=True)}
    out: list[str] = []
    said: str | None = None
    for line in text.splitlines():
        match = _INSTRUCTION.match(line)
        name = names.get(int(match.group(1), 16)) if match else said
        if name is not None and name != said and roles:
            out.append(f"// ---- role {name} ----" if name else "// ---- outside of the roles ----")
            said = name
        out.append(line)
    return "\n".join(out) + "\n"
