"""Atomic operations as blocks use them among each other, and what is refused."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError


@wl.kernel
def tickets(counter: wl.Tensor, drawn: wl.Tensor, each: wl.i32):
    """Every block draws numbers until it has `each`; no number goes out twice."""
    for k in wl.range(each):
        number = wl.atomic_add(counter[0], 1)
        wl.store(drawn[number], wl.program_id(0) * each + k + 1)


@pytest.mark.parametrize(("blocks", "cluster"), [(7, 1), (8, 2), (8, 4)])
def test_every_ticket_once(device, blocks, cluster):
    total = 3 * blocks
    counter, drawn = device.put(np.zeros(2, np.int32)), device.put(np.zeros(total, np.int32))
    tickets.launch(blocks, cluster=cluster)(counter, drawn, 3)
    assert sorted(device.get(drawn).tolist()) == list(range(1, total + 1))
    assert device.get(counter).tolist() == [total, 0]


@wl.kernel
def last_sums(x: wl.Tensor, parts: wl.Tensor, counter: wl.Tensor, y: wl.Tensor, N: wl.const):
    """Blocks publish their parts; the last one to arrive adds them up in order, and resets the
    counter for the next launch."""
    i, blocks = wl.program_id(0), wl.num_programs(0)
    wl.store(parts[i, wl.ds(0, N)], wl.load(x[i, wl.ds(0, N)]) * 0.1)
    before = wl.atomic_add(counter[0], 1, order="acq_rel")
    if before == blocks - 1:
        total = wl.zeros((N,), wl.f32)
        for k in wl.range(blocks):
            total = total + wl.load(parts[k, wl.ds(0, N)])
        wl.store(y[wl.ds(0, N)], total)
        wl.store(counter[0], 0)


def test_the_last_block_sums_in_order(device):
    x = np.random.default_rng(0).standard_normal((60, 300)).astype(np.float32)
    expected = np.zeros(300, np.float32)
    for row in x:
        expected = expected + row * np.float32(0.1)
    given, counter = device.put(x), device.put(np.zeros(1, np.int32))
    for _ in range(5):
        parts, y = device.empty(x.shape, np.float32), device.empty((300,), np.float32)
        last_sums[60](given, parts, counter, y, N=300)
        assert np.array_equal(device.get(y), expected)
        assert device.get(counter).tolist() == [0]


@wl.kernel
def histogram(x: wl.Tensor, bins: wl.Tensor, N: wl.const):
    """Tiles whose elements lie apart, one after the other, and single elements of a role."""
    with wl.roles():
        with wl.role("adds", warps=2, replicas=2) as r:
            for k in wl.range(x.shape[0]):
                at = wl.load(x[k])
                wl.atomic_add(bins[wl.ds(at, N)], 1)
                wl.atomic_max(bins[r + 60], k)
        with wl.role("one", warps=1):
            seen = wl.atomic_add(bins[62], 1)
            wl.atomic_max(bins[63], seen)


def test_roles_and_overlapping_windows(device):
    x = np.random.default_rng(0).integers(0, 40, 30).astype(np.int32)
    bins = device.put(np.zeros(64, np.int32))
    histogram[3](device.put(x), bins, N=17)
    expected = np.zeros(64, np.int32)
    for at in x:
        expected[at : at + 17] += 6
    expected[60:64] = 29, 29, 3, 2
    assert np.array_equal(device.get(bins), expected)


@wl.kernel
def beyond(x: wl.Tensor, old: wl.Tensor):
    wl.store(old[0], wl.atomic_add(x[-1 + wl.program_id(0) * 0], 5))
    wl.store(old[1], wl.atomic_add(x[x.shape[0]], 5))


def test_outside_nothing_happens(device):
    x, old = device.put(np.full(4, 3, np.int32)), device.put(np.full(2, 9, np.int32))
    beyond[1](x, old)
    assert device.get(x).tolist() == [3] * 4 and device.get(old).tolist() == [0, 0]


@wl.kernel
def quiet(x: wl.Tensor, order: wl.const):
    wl.atomic_add(x[wl.ds(0, 8)], 1, order=order)


@pytest.mark.parametrize("order", ["relaxed", "release", "acquire", "acq_rel"])
def test_the_instructions(order):
    text = quiet.launch(1, warps=2).call(np.zeros(8, np.int32), order=order).text("cuda")
    bare = order in ("relaxed", "release")
    assert f"{'red' if bare else 'atom'}.{order}.gpu.global.add.u32" in text
    body = text[text.index("quiet") :]
    meets = body.count("bar_sync<")
    # A release comes after a meeting of all warps; an acquire hands its result on through one.
    assert meets == {"relaxed": 0, "release": 1, "acquire": 1, "acq_rel": 2}[order], body


REFUSED = {
    "float_max": "wl.atomic_max(x[0], 1.0)",
    "half": "wl.atomic_add(h[0], 1.0)",
    "float_cas": "wl.atomic_cas(x[0], 1.0, 2.0)",
    "whole_tensor": "wl.atomic_add(x, 1.0)",
    "order": 'wl.atomic_add(x[0], 1.0, order="seq_cst")',
    "scope": 'wl.atomic_add(x[0], 1.0, scope="cta")',
    "another_shape": "wl.atomic_add(x[wl.ds(0, 4)], wl.zeros(8, wl.f32))",
    "another_dtype": "wl.atomic_add(x[wl.ds(0, 4)], wl.zeros(4, wl.i32))",
    "one_thread": "with wl.one_thread():\n        wl.atomic_add(x[0], 1.0)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, monkeypatch, golden, name):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernel.py"
    path.write_text(
        f"import warploom as wl\n\n\n@wl.kernel\ndef kernel(x: wl.Tensor, h: wl.Tensor):\n"
        f"    {REFUSED[name]}\n"
    )
    held: dict = {"__name__": f"atomics_{name}", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), held)
    with pytest.raises(CompileError) as caught:
        held["kernel"][1](np.zeros(8, np.float32), np.zeros(8, np.float16))
    golden(str(caught.value), name)
