"""Places and barriers together, on random programs: whatever way a block goes, a read finds what
was written to its buffer, and two accesses that conflict have a barrier between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.passes.text import parsed
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op
from warploom.ir.ops import shared_memory, sync
from warploom.ir.ops.control import For, If
from warploom.passes.insert_role_barriers import insert_role_barriers
from warploom.passes.plan_shared_memory import plan_shared_memory

HEAD = """
%o: i32[1] = index.lane() [rank=1]
%v: f32[1] = registers.splat(%p) [rank=1]
%q: bool@grid = scalar.compare(%n, %m) [kind="lt"]
"""


class Program:
    """A random program of buffers, stores and loads in loops and branches."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.count = 0

    def block(self, visible: list[str], depth: int) -> str:
        visible = list(visible)
        text = ""
        for _ in range(self.rng.integers(1, 6)):
            text += self.statement(visible, depth)
        return text

    def statement(self, visible: list[str], depth: int) -> str:
        kind = self.rng.choice(["new", "put", "get", "put", "get", "loop", "branch"])
        if kind == "loop" and depth:
            body = self.block(visible, depth - 1)
            return (
                f"control.for(%n, %m, %n, []) [unroll=1] (%i: i32@grid) {{\n{body}"
                "control.yield([])\n}\n"
            )
        if kind == "branch" and depth:
            then, orelse = (self.block(visible, depth - 1) for _ in range(2))
            return (
                f"control.if(%q) {{\n{then}control.yield([])\n}} "
                f"{{\n{orelse}control.yield([])\n}}\n"
            )
        if kind == "new" or not visible:
            name, elements = f"b{self.count}", int(self.rng.choice([8, 100, 128]))
            self.count += 1
            visible.append(name)
            return (
                f"%{name}: buffer<f32, {elements}> = shared_memory.buffer() "
                f"[dtype=f32, elements={elements}, at=-1]\n" + self.put(name)
            )
        name = str(self.rng.choice(visible))
        return self.put(name) if kind == "put" else self.get(name)

    def put(self, name: str) -> str:
        return f"shared_memory.store(%{name}, %v, %o, _) [axis=0, vec=1]\n"

    def get(self, name: str) -> str:
        return f"%_: f32[1] = shared_memory.load(%{name}, %o, _) [axis=0, vec=1]\n"


def trace(block: Block, rng: np.random.Generator) -> Iterator[Op]:
    """The operations of one run: random trips and branches."""
    for op in block.ops:
        if isinstance(op, For):
            for _ in range(rng.integers(0, 4)):
                yield from trace(op.body, rng)
        elif isinstance(op, If):
            yield from trace(op.then if rng.integers(2) else op.orelse, rng)
        else:
            yield op


def check_run(kernel: Kernel, rng: np.random.Generator) -> None:
    owner: dict[int, object] = {}  # which buffer wrote a byte last
    touched: dict[int, tuple[bool, bool]] = {}  # read, written since the last barrier
    for op in trace(kernel.body, rng):
        if isinstance(op, sync.Barrier):
            touched.clear()
        if not isinstance(op, shared_memory.Load | shared_memory.Store):
            continue
        made = op.buffer.owner
        assert isinstance(made, shared_memory.BufferOp)
        writes = isinstance(op, shared_memory.Store)
        for byte in range(made.at, made.at + 4 * made.elements, 4):
            read, written = touched.get(byte, (False, False))
            assert not written and not (read and writes), "no barrier between two accesses"
            if writes:
                owner[byte] = made
            else:
                assert owner[byte] is made, "another buffer lies where this one is read"
        for byte in range(made.at, made.at + 4 * made.elements, 4):
            read, written = touched.get(byte, (False, False))
            touched[byte] = (read or not writes, written or writes)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = parsed(HEAD + Program(rng).block([], 3))
    plan_shared_memory(kernel, SM_90A)
    insert_role_barriers(kernel, SM_90A)
    for _ in range(8):
        check_run(kernel, rng)


def test_the_check_finds_missing_barriers_and_shared_bytes() -> None:
    body = Program(np.random.default_rng(0))
    text = HEAD + (
        "%a: buffer<f32, 8> = shared_memory.buffer() [dtype=f32, elements=8, at=0]\n"
        "%b: buffer<f32, 8> = shared_memory.buffer() [dtype=f32, elements=8, at=AT]\n"
    )
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="no barrier"):
        check_run(parsed(text.replace("AT", "32") + body.put("a") + body.get("a")), rng)
    barrier = 'sync.barrier() [threads=128, id=0, why=""]\n'
    order = body.put("a") + barrier + body.put("b") + barrier + body.get("a")
    check_run(parsed(text.replace("AT", "32") + order), rng)
    with pytest.raises(AssertionError, match="another buffer"):
        check_run(parsed(text.replace("AT", "0") + order), rng)
