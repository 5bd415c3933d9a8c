"""Checked mode: unwritten memory, bounds and alignment as findings; the same bits as plain mode."""

import gc

import numpy as np
import pytest

import warploom as wl
from tests.sim.programs import program_of
from warploom.sim import shadow
from warploom.sim.arguments import TensorArg
from warploom.sim.shadow import mark_unwritten, mark_written


def unwritten(shape, dtype=np.float32):
    array = np.empty(shape, dtype)
    mark_unwritten(array)
    return array


def check(call, grid, *args, seed=0):
    return program_of(call).run((grid,), args, checked=True, seed=seed).findings


def messages(findings):
    return [(f.code, f.spans[0].label, *f.notes[:1]) for f in findings]


@wl.kernel
def copy(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    wl.store(y[i, wl.ds(0, SIZE)], wl.load(x[i, wl.ds(0, SIZE)]))


def test_unwritten_memory_that_reaches_an_output():
    x, y = unwritten((3, 8)), np.zeros((3, 8), np.float32)
    assert np.isnan(x).all()
    x[:2] = 1
    known = shadow._unwritten[id(x)][1]
    known[: 2 * 8 * 4] = 1  # as a kernel that wrote the first two rows would
    (found,) = check(copy.launch(3).call(x, y, SIZE=8), 3, x, y)
    assert found.code == "M002"
    assert found.spans[0].label == "is stored here"
    assert found.notes == ("block (2, 0, 0), element [2, 0] of `x`",)
    assert found.facts == {"block": 2, "tensor": "x"}
    mark_written(x)
    assert check(copy.launch(3).call(x, y, SIZE=8), 3, x, y) == []


def test_kernels_mark_what_they_write():
    x, y, z = np.ones((3, 8), np.float32), unwritten((3, 8)), np.zeros((3, 8), np.float32)
    plain = program_of(copy.launch(2).call(x, y, SIZE=8))
    plain.run((2,), (x, y))
    assert messages(check(copy.launch(3).call(y, z, SIZE=8), 3, y, z)) == [
        ("M002", "is stored here", "block (2, 0, 0), element [2, 0] of `x`")
    ]
    plain.run((3,), (x, y))
    assert check(copy.launch(3).call(y, z, SIZE=8), 3, y, z) == []
    assert id(y) not in shadow._unwritten, "a shadow without holes goes away"


def test_views_share_the_shadow_of_their_memory():
    memory = unwritten(64)
    x, z = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    y = memory[32:].reshape(4, 8)[::-1]
    program_of(copy.launch(1).call(x, y, SIZE=8)).run((1,), (x, y))
    whole = memory.reshape(8, 8)
    found = check(copy.launch(4).call(whole[4:], z, SIZE=8), 4, whole[4:], z)
    assert messages(found) == [("M002", "is stored here", "block (0, 0, 0), element [0, 0] of `x`")]
    assert check(copy.launch(1).call(whole[7:], z, SIZE=8), 1, whole[7:], z) == []


def test_the_registry_keeps_nothing_alive():
    before = len(shadow._unwritten)
    x = unwritten(10)
    assert len(shadow._unwritten) == before + 1
    del x
    gc.collect()
    assert len(shadow._unwritten) == before


@wl.kernel
def careful(x: wl.Tensor, y: wl.Tensor, n: wl.i32, SIZE: wl.const):
    i = wl.arange(SIZE)
    t = wl.load(x[wl.ds(0, SIZE)])
    t = wl.where(i < n, t, 0)
    wl.store(y[wl.ds(0, 1)], wl.sum(t, 0)[None])


def test_unwritten_values_that_are_not_chosen_do_no_harm():
    x, y = unwritten(100), np.zeros(1, np.float32)
    x[:30] = 1
    shadow._unwritten[id(x)][1][:120] = 1
    call = careful.launch(1).call(x, y, 30, SIZE=100)
    assert check(call, 1, x, y, 30) == []
    assert y[0] == 30
    found = check(call, 1, x, y, 31)
    assert messages(found) == [("M002", "is stored here", "block (0, 0, 0), element [30] of `x`")]


@wl.kernel
def steered(n: wl.Tensor, at: wl.Tensor, x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    acc = wl.zeros((SIZE,), wl.f32)
    for _k in wl.range(0, wl.load(n[0])):
        acc = acc + 1.0
    if wl.load(n[1]) > 0:
        acc = acc + wl.gather(x, (wl.load(at[wl.ds(0, SIZE)]),))
    wl.store(y[wl.ds(wl.load(n[2]), SIZE)], acc)


@pytest.mark.parametrize(
    ("hole", "use"),
    [
        (0, "bounds this loop"),
        (1, "decides this branch"),
        (2, "is used as an address"),
        ("at", "is used as an address"),
    ],
)
def test_unwritten_values_that_steer(hole, use):
    n, at = unwritten(3, np.int32), unwritten(4, np.int32)
    x, y = np.arange(10, dtype=np.float32), np.zeros(16, np.float32)
    n[:], at[:] = 1, 2
    state = shadow._unwritten[id(n)][1]
    state[:] = 1
    if hole == "at":
        shadow._unwritten[id(at)][1][:8] = 1
    else:
        mark_written(at)
        state[hole * 4] = 0  # one byte is enough
    found = check(steered.launch(1).call(n, at, x, y, SIZE=4), 1, n, at, x, y)
    assert use in [f.spans[0].label for f in found]
    name = "`at`, element [2]" if hole == "at" else f"element [{hole}] of `n`"
    assert name.replace("`at`, element [2]", "element [2] of `at`") in found[0].notes[0]


def test_an_unwritten_index_that_points_nowhere():
    """Whatever lies in that memory on a GPU decides whether the tensor or the filler is read."""

    @wl.kernel
    def pick(x: wl.Tensor, at: wl.Tensor, y: wl.Tensor, N: wl.const):
        index = wl.load(at[wl.ds(0, N)])
        wl.store(y[wl.ds(0, N)], wl.gather(x, (index,), wl.arange(N) < 3))

    x, y, at = np.ones(8, np.float32), np.zeros(5, np.float32), unwritten(5, np.int32)
    (found,) = check(pick.launch(1).call(x, at, y, N=5), 1, x, at, y)
    assert (found.code, found.spans[0].label) == ("M002", "is stored here")
    assert found.notes[0].endswith("element [0] of `at`")
    shadow._unwritten[id(at)][1][: 3 * 4] = 1
    assert check(pick.launch(1).call(x, at, y, N=5), 1, x, at, y) == [], "the rest is masked"


def test_an_unwritten_place_of_a_store_that_lies_outside():
    @wl.kernel
    def put(at: wl.Tensor, y: wl.Tensor):
        i = wl.load(at[0])
        wl.store(y[wl.ds(i, 1)], 1.0)

    at, y = unwritten(1, np.int32), np.zeros(5, np.float32)
    (found, *_) = check(put.launch(1).call(at, y), 1, at, y)
    assert (found.code, found.spans[0].label) == ("M002", "is used as an address")


def test_through_registers_and_shared_memory():
    """A reduction over several warps carries an unwritten value through shared memory."""

    @wl.kernel
    def total(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
        i = wl.program_id(0)
        wl.store(y[wl.ds(i, 1)], wl.sum(wl.load(x[i, wl.ds(0, SIZE)]), 0)[None])

    x, y = unwritten((3, 3000)), np.zeros(3, np.float32)
    state = shadow._unwritten[id(x)][1]
    state[:] = 1
    x[:] = 1
    call = total.launch(3).call(x, y, SIZE=3000)
    assert "shared_memory.load" in call.text("machine")
    state[4 * (3000 + 2999)] = 0
    found = check(call, 3, x, y)
    assert messages(found) == [
        ("M002", "is stored here", "block (1, 0, 0), element [1, 2999] of `x`")
    ]
    mark_written(x)
    assert check(call, 3, x, y) == []


def test_parts_of_a_batch_keep_their_shadows():
    @wl.kernel
    def some(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
        i = wl.program_id(0)
        t = wl.load(x[i, wl.ds(0, SIZE)])
        if i % 2 == 0:
            t = wl.zeros((SIZE,), wl.f32)
        for _ in wl.range(0, i):
            t = t + 1.0
        wl.store(y[i, wl.ds(0, SIZE)], t)

    x, y = unwritten((4, 8)), np.zeros((4, 8), np.float32)
    x[:] = 0
    state = shadow._unwritten[id(x)][1].reshape(4, 8, 4)
    state[1] = state[3] = 1
    call = some.launch(4).call(x, y, SIZE=8)
    assert check(call, 4, x, y) == [], "the even rows are read and thrown away"
    state[3, 5] = 0
    assert messages(check(call, 4, x, y)) == [
        ("M002", "is stored here", "block (3, 0, 0), element [3, 5] of `x`")
    ]


# ---- addresses ---------------------------------------------------------------------------------


@wl.kernel
def unguarded(at: wl.Tensor, x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    t = wl.gather(x, (wl.load(at[wl.ds(0, SIZE)]),))
    wl.store(y[wl.ds(0, SIZE)], t)


def broken_program(call):
    """The program of a kernel whose predicates a pass has lost."""
    from tests.sim.programs import lowered
    from warploom.ir.kernel import walk
    from warploom.ir.ops import global_memory
    from warploom.sim.program import prepare

    kernel = lowered(call)
    for op in walk(kernel.body):
        if isinstance(op, global_memory.Load) and op.tensor.name == "x":
            op.predicate = None
    return prepare(kernel)


def test_out_of_bounds():
    at = np.array([1, 2, 7, 3], np.int32)
    x, y = np.arange(8, dtype=np.float32)[:5], np.zeros(4, np.float32)
    program = broken_program(unguarded.launch(1).call(at, x, y, SIZE=4))
    with pytest.raises(wl.CheckError) as caught:
        program.run((1,), (at, x, y))
    (report,) = caught.value.reports
    assert report.code == "M001"
    assert report.facts == {"block": 0, "tensor": "x", "element": 7}
    assert report.notes[0] == "block (0, 0, 0), offset 7 in elements from the first one"
    found = program.run((1,), (at, x, y), checked=True).findings
    assert [f.facts["element"] for f in found] == [7]
    assert y.tolist() == [1, 2, 0, 3], "checked mode goes on with zero"


def test_the_guarded_kernel_is_clean():
    at = np.array([1, 2, 7, -3], np.int32)
    x, y = np.arange(5, dtype=np.float32), np.zeros(4, np.float32)
    call = unguarded.launch(1).call(at, x, y, SIZE=4)
    assert check(call, 1, at, x, y) == []
    assert y.tolist() == [1, 2, 0, 0]


def test_misaligned_vectors():
    """A program compiled for aligned rows is given an array that is not."""
    x, y = np.zeros((3, 64), np.float32), np.zeros((3, 64), np.float32)
    call = copy.launch(3).call(x, y, SIZE=64)
    assert "vec=2" in call.text("machine")
    program = program_of(call)
    memory = np.zeros(3 * 64 + 1, np.float32)
    start = memory.__array_interface__["data"][0] // 4 % 2
    shifted = memory[(5 - start) % 2 :][: 2 * 64].reshape(2, 64)
    with pytest.raises(wl.CheckError) as caught:
        program.run((2,), (shifted, y))
    (report,) = caught.value.reports
    assert report.code == "M003"
    assert "8 bytes starts 4 bytes after a multiple of its width" in report.notes[0]
    assert program.run((2,), (shifted, y), checked=True).findings[0].code == "M003"


def test_read_only_outputs():
    x, y = np.ones((2, 8), np.float32), np.zeros((2, 8), np.float32)
    program = program_of(copy.launch(2).call(x, y, SIZE=8))
    y.flags.writeable = False
    with pytest.raises(wl.CheckError, match="read-only"):
        program.run((2,), (x, TensorArg(y)))
    assert [f.code for f in program.run((2,), (x, y), checked=True).findings] == ["M005"]


# ---- plain and checked -------------------------------------------------------------------------


@wl.kernel
def everything(x: wl.Tensor, lengths: wl.Tensor, y: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    n = wl.load(lengths[i])
    acc = wl.zeros((SIZE,), wl.f32)
    for k in wl.range(0, n):
        row = wl.load(x[(i + k) % x.shape[0], wl.ds(k, SIZE)], other=-1)
        acc = wl.fma(row, row, acc)
        if k % 2 == 1:
            acc = wl.maximum(acc, wl.exp(row * 0.1))
    top = wl.max(acc, 0)
    place = wl.argmax(acc, 0)
    half = wl.cat((acc[0 : SIZE // 2], acc[SIZE // 2 : SIZE] / (top + 1)), 0)
    wl.store(y[i, wl.ds(0, SIZE)], half.cast(wl.bf16))
    wl.store(z[wl.ds(i, 1)], (place + n)[None])


def test_both_modes_give_the_same_bits():
    import ml_dtypes

    rng = np.random.default_rng(4)
    x = rng.standard_normal((7, 300)).astype(np.float32)
    lengths = np.array([3, 0, 5, 1, 9, 9, 2], np.int32)
    outputs = []
    for checked in (False, True):
        y, z = np.zeros((7, 260), ml_dtypes.bfloat16), np.zeros(7, np.int32)
        call = everything.launch(7).call(x, lengths, y, z, SIZE=260)
        result = program_of(call).run((7,), (x, lengths, y, z), checked=checked, seed=checked)
        assert result.findings == []
        outputs.append((y.tobytes(), z.tobytes()))
    assert outputs[0] == outputs[1]


def test_findings_are_not_repeated_and_have_an_end():
    x, y = unwritten((50, 8)), np.zeros((50, 8), np.float32)
    assert len(check(copy.launch(50).call(x, y, SIZE=8), 50, x, y)) == 1
