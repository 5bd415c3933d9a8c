"""Reports that no other golden shows: faults of running kernels, refused library calls, budgets.

The kernels stand in a file of their own in an empty folder, so that texts name no other path.
"""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.ir.kernel import walk
from warploom.ir.ops import global_memory
from warploom.kernels import linear, norm
from warploom.runtime.compile import machine_kernel, targets
from warploom.sim.program import TensorArg, prepare
from warploom.testing.golden import Golden

SOURCE = """\
import warploom as wl


@wl.kernel
def pick(at: wl.Tensor, x: wl.Tensor, y: wl.Tensor, N: wl.const):
    t = wl.gather(x, (wl.load(at[wl.ds(0, N)]),))
    wl.store(y[wl.ds(0, N)], t)


@wl.kernel
def copy(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    row = wl.program_id(0)
    wl.store(y[row, wl.ds(0, N)], wl.load(x[row, wl.ds(0, N)]))


@wl.kernel
def guarded(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    t = wl.load(x[wl.ds(0, N)])
    assert t >= 0.0, "sqrt needs numbers that are not negative"
    wl.store(y[wl.ds(0, N)], wl.sqrt(t))


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    rows = wl.load(x[wl.ds(0, N), wl.ds(0, N)])
    wl.store(y[wl.ds(0, N), wl.ds(0, N)], rows + rows.T)


@wl.kernel
def staged(x: wl.Tensor, y: wl.Tensor, STAGES: wl.const):
    ring = wl.pipe(STAGES, slots=[wl.shared((128, 64), x.dtype), wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            with ring.put() as (a, b):
                wl.copy_async(x[wl.ds(0, 128), wl.ds(0, 64)], a)
                wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], b)
        with wl.role("use", warps=4):
            with ring.get() as (a, b):
                wl.store(y[wl.ds(0, 128), wl.ds(0, 64)], a.load())
"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = tmp_path / "faulty.py"
    path.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("faulty", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lowered(call: Any) -> Any:
    """The machine IR of a call, to be broken as a faulty pass would break it."""
    request = call.kernel.request(call.arguments, call.launcher.warps)
    return machine_kernel(request, targets.DEFAULT)


def refused(kind: type[wl.Error], golden: Golden, run: Any) -> None:
    with pytest.raises(kind) as caught:
        run()
    golden(str(caught.value))


def test_unwritten_memory(faulty: ModuleType, golden: Golden) -> None:
    make = wl.Make()
    found = faulty.copy.launch(3).check(make.empty((3, 5)), make.empty((3, 5)), N=5)
    golden(found.text())


def test_a_failed_assertion(faulty: ModuleType, golden: Golden) -> None:
    x, y = np.array([4, 9, -1, 16], np.float32), np.zeros(4, np.float32)
    refused(wl.CheckError, golden, lambda: faulty.guarded[1](x, y, N=4))


def test_an_access_whose_predicate_a_pass_lost(faulty: ModuleType, golden: Golden) -> None:
    at, x, y = np.array([1, 2, 7, 3], np.int32), np.ones(5, np.float32), np.zeros(4, np.float32)
    kernel = lowered(faulty.pick.launch(1).call(at, x, y, N=4))
    for op in walk(kernel.body):
        if isinstance(op, global_memory.Load) and op.tensor.name == "x":
            op.predicate = None
    refused(wl.CheckError, golden, lambda: prepare(kernel).run((1,), (at, x, y)))


def test_a_misaligned_access(faulty: ModuleType, golden: Golden) -> None:
    x, y = np.zeros((3, 64), np.float32), np.zeros((3, 64), np.float32)
    program = prepare(lowered(faulty.copy.launch(3).call(x, y, N=64)))
    memory = np.zeros(3 * 64 + 1, np.float32)
    odd = (memory.__array_interface__["data"][0] // 4 + 1) % 2
    shifted = memory[odd : odd + 2 * 64].reshape(2, 64)
    refused(wl.CheckError, golden, lambda: program.run((2,), (shifted, y)))


def test_a_store_to_read_only_memory(faulty: ModuleType, golden: Golden) -> None:
    x, y = np.ones((2, 8), np.float32), np.zeros((2, 8), np.float32)
    program = prepare(lowered(faulty.copy.launch(2).call(x, y, N=8)))
    y.flags.writeable = False
    refused(wl.CheckError, golden, lambda: program.run((2,), (x, TensorArg(y))))


def test_too_much_shared_memory(faulty: ModuleType, golden: Golden) -> None:
    x, y = np.zeros((256, 256), np.float32), np.zeros((256, 256), np.float32)
    refused(wl.CompileError, golden, lambda: faulty.turned.launch(1, warps=8)(x, y, N=256))


def test_too_many_stages(faulty: ModuleType, golden: Golden) -> None:
    x, y = np.zeros((128, 64), np.float16), np.zeros((128, 64), np.float16)
    refused(wl.CompileError, golden, lambda: faulty.staged.launch(1)(x, y, STAGES=10))
    faulty.staged.launch(1)(x + 1, y, STAGES=9)
    assert (y == 1).all()


def test_shapes_of_a_library_call(golden: Golden) -> None:
    x, w, out = (np.zeros(s, np.float32) for s in ((2, 96), (40, 80), (2, 40)))
    refused(wl.ShapeError, golden, lambda: linear.linear(x, w, out))


def test_dtypes_of_a_library_call(golden: Golden) -> None:
    x, weight = np.zeros((2, 8), np.int32), np.ones(8, np.float32)
    refused(wl.ShapeError, golden, lambda: norm.rms_norm(x, weight, np.zeros((2, 8)), 1e-5))
