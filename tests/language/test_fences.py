"""Ordinary accesses to shared memory beside asynchronous ones: on every path of the PTX a fence
between the two proxies stands between what threads did and a unit that goes on with it."""

import re

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

bf16 = ml_dtypes.bfloat16


@wl.kernel
def to_the_matrix_unit(a: wl.Tensor, c: wl.Tensor, n: wl.i32):
    """(a) Registers to shared memory to an operand. (c) The only fence of a loop would stand in it:
    with n = 0 the product behind the loop reads what was stored before."""
    tile = wl.shared((64, 64), wl.bf16)
    stored_and_multiplied(a, c, n, tile)


@wl.kernel
def in_a_role(a: wl.Tensor, c: wl.Tensor, n: wl.i32):
    """The same, by one of two roles."""
    tile = wl.shared((64, 64), wl.bf16)
    with wl.roles():
        with wl.role("idle", warps=1):
            pass
        with wl.role("all", warps=4):
            stored_and_multiplied(a, c, n, tile)


@wl.function
def stored_and_multiplied(a, c, n, tile):
    tile.store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
    acc = wl.zeros((64, 64), wl.f32)
    for _ in wl.range(n):
        t = wl.dot_async(tile, tile.T, acc).wait()
        acc = t
        tile.store(tile.load() + 1.0)
    acc = wl.dot_async(tile, tile.T, acc)
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


@wl.kernel
def to_the_copy_engine(x: wl.Tensor, y: wl.Tensor, n: wl.i32, LEVEL: wl.const):
    """(b) Registers to shared memory to a tensor, by hand and by a pipe; (c) with n = 0 nothing but
    the copy behind the loop follows the first store."""
    tile = wl.shared((64, 32), wl.f32)
    out = wl.pipe(2, slots=[wl.shared((64, 32), wl.f32)], to=wl.copy_engine)
    with wl.roles(), wl.role("write", warps=4):
        t = wl.load(x[wl.ds(0, 64), wl.ds(0, 32)])
        if LEVEL == 2:
            for k in wl.range(n + 1):
                with out.put() as slot:
                    slot.store(t + k.cast(wl.f32))
                    wl.copy_async(slot, y[wl.ds(k * 64, 64), wl.ds(0, 32)])
        else:
            tile.store(t)
            for k in wl.range(n):
                with wl.one_thread():
                    wl.copy_async(tile, y[wl.ds(k * 64, 64), wl.ds(0, 32)])
                    wl.copy_commit()
                    wl.copy_wait(reads=True)
                tile.store(tile.load() + 1.0)
            with wl.one_thread():
                wl.copy_async(tile, y[wl.ds(n * 64, 64), wl.ds(0, 32)])
                wl.copy_commit()
                wl.copy_wait()


@wl.kernel
def refilled(x: wl.Tensor, y: wl.Tensor, n: wl.i32, LEVEL: wl.const):
    """(d) A copy fills a buffer anew that ordinary loads have just read: by one role, or through a
    ring of one slot."""
    tile, full = wl.shared((64, 32), wl.f32), wl.barrier()
    ring = wl.pipe(1, slots=[wl.shared((64, 32), wl.f32)])
    with wl.roles():
        if LEVEL == 2:
            with wl.role("load", warps=1):
                for k in wl.range(n):
                    with ring.put() as slot:
                        wl.copy_async(x[wl.ds(k * 64, 64), wl.ds(0, 32)], slot)
            with wl.role("write", warps=4):
                for k in wl.range(n):
                    with ring.get() as slot:
                        wl.store(y[wl.ds(k * 64, 64), wl.ds(0, 32)], slot.load() * 2.0)
        else:
            with wl.role("both", warps=4):
                for k in wl.range(n):
                    with wl.one_thread():
                        full.expect(64 * 32 * 4)
                        wl.copy_async(x[wl.ds(k * 64, 64), wl.ds(0, 32)], tile, barrier=full)
                    full.wait(k % 2)
                    wl.store(y[wl.ds(k * 64, 64), wl.ds(0, 32)], tile.load() * 2.0)


@pytest.mark.case("C11")
@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_operands_from_registers(device, n, roles):
    a = np.random.default_rng(n).integers(-3, 4, (64, 64))
    c = device.put(np.full((64, 64), -1, np.float32))
    kernel = in_a_role if roles else to_the_matrix_unit
    kernel[1](device.put(a.astype(bf16)), c, n)
    expected = sum((a + k) @ (a + k).T for k in range(n + 1))
    assert np.array_equal(device.get(c), expected.astype(np.float32))


@pytest.mark.case("C11")
@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_copies_from_registers(device, n, level):
    x = np.random.default_rng(n).integers(-99, 99, (64, 32)).astype(np.float32)
    y = device.put(np.full(((n + 1) * 64, 32), -1, np.float32))
    to_the_copy_engine[1](device.put(x), y, n, level)
    assert np.array_equal(device.get(y), np.concatenate([x + k for k in range(n + 1)]))


@pytest.mark.case("C11")
@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_buffer_that_was_read_is_filled_anew(device, n, level):
    x = np.random.default_rng(n).integers(-99, 99, (n * 64, 32)).astype(np.float32)
    y = device.put(np.full(x.shape, -1, np.float32))
    refilled[1](device.put(x), y, n, level)
    assert np.array_equal(device.get(y), 2 * x)


# ---- every path of the PTX ---------------------------------------------------------------------

_LABEL = re.compile(r"(^|[;{}\s])(\$?\w+):(?!:)")
_JUMP = re.compile(r"^(@!?%?\w+\s+)?bra(?:\.uni)?\s+(\$?\w+)$")


def program_of(ptx: str) -> tuple[list[str], dict[str, list[int]]]:
    """The instructions in order, and the places of labels (inline asm uses a name often)."""
    body = re.sub(r"//.*|(?m:^\s*\.(loc|file|section|pragma)\b.*$)", "", ptx[ptx.index(".entry") :])
    words: list[str] = []
    labels: dict[str, list[int]] = {}
    for part in re.split(r"[;{}]", _LABEL.sub(r"\1;:\2;", body)):
        text = " ".join(part.split())
        if text.startswith(":"):
            labels.setdefault(text[1:], []).append(len(words))
        elif text:
            words.append(text)
    return words, labels


def unfenced(ptx: str, generic: str, unit: str) -> list[str]:
    """Instructions of a unit that some path reaches from a generic access without a fence."""
    words, labels = program_of(ptx)
    open_at: set[tuple[int, bool]] = set()
    todo, found = [(0, False)], []
    while todo:
        at, dirty = todo.pop()
        if at >= len(words) or (at, dirty) in open_at:
            continue
        open_at.add((at, dirty))
        word = words[at]
        plain = re.sub(r"^@!?%?\w+\s+", "", word)
        if plain.startswith("fence.proxy.async"):
            dirty = False
        elif plain.startswith(generic):
            dirty = True
        elif plain.startswith(unit) and dirty:
            found.append(word)
        jump = _JUMP.match(word)
        if jump is not None:
            places = labels[jump[2]]
            before = [place for place in places if place <= at]
            todo.append((max(before) if len(places) > 1 and before else places[0], dirty))
            if jump[1] is None:
                continue
        if plain.startswith("ret"):
            continue
        todo.append((at + 1, dirty))
    return found


def ptx_of(kernel, *args) -> str:
    return kernel.launch(1).call(*args).text("ptx")


A, C = np.zeros((64, 64), bf16), np.zeros((64, 64), np.float32)
X, Y = np.zeros((64, 32), np.float32), np.zeros((128, 32), np.float32)
STORES = {
    "operand": (to_the_matrix_unit, (A, C, 1), "st.shared", "wgmma.mma_async"),
    "operand in a role": (in_a_role, (A, C, 1), "st.shared", "wgmma.mma_async"),
    "copy": (to_the_copy_engine, (X, Y, 1, 3), "st.shared", "cp.async.bulk.tensor"),
    "pipe": (to_the_copy_engine, (X, Y, 1, 2), "st.shared", "cp.async.bulk.tensor"),
    "refill": (refilled, (Y, Y.copy(), 2, 3), "ld.shared", "cp.async.bulk.tensor"),
    # The consumer fences before it says so: its arrival is where the copy may follow.
    "ring": (refilled, (Y, Y.copy(), 2, 2), "ld.shared", "mbarrier.arrive.shared"),
}


@pytest.mark.case("C11")
@pytest.mark.parametrize("name", STORES)
def test_a_fence_on_every_path(name):
    kernel, args, generic, unit = STORES[name]
    ptx = ptx_of(kernel, *args)
    words = [re.sub(r"^@!?%?\w+\s+", "", w) for w in program_of(ptx)[0]]
    assert any(w.startswith(generic) for w in words) and any(w.startswith(unit) for w in words)
    assert unfenced(ptx, generic, unit) == []
    # The same text without its fences is found: the walk sees what it looks for.
    without = re.sub(r"fence\.proxy\.async[^;]*;", ";", ptx)
    assert unfenced(without, generic, unit)
