"""Kernel objects: launches, variants, options, examples, and what mistakes say."""

import mmap
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError, LaunchError
from warploom.runtime import stats, variant

FACTOR = 3


@wl.kernel
def scale(x: wl.Tensor, y: wl.Tensor, n: wl.i32, BM: wl.const, BK: wl.const = 16):
    m = wl.program_id(0) * BM
    for k in wl.range(0, x.shape[1], BK):
        t = wl.load(x[wl.ds(m, BM), wl.ds(k, BK)])
        wl.store(y[wl.ds(m, BM), wl.ds(k, BK)], t * FACTOR)


@scale.example
def _small(make):
    return scale.launch(2).call(make.randn((5, 7)), make.empty((5, 7)), 1, BM=4)


@scale.example("wide")
def _wide(make):
    return scale.launch(2).call(make.randn((5, 70)), make.empty((5, 70)), 1, BM=4)


@wl.kernel
def fill(y: wl.Tensor, v: wl.f32, N: wl.const):
    wl.store(y[wl.ds(wl.program_id(0) * N, N)], wl.zeros((N,), wl.f32) + v)


@wl.kernel
def lazy(x: wl.Tensor, n: wl.i32):
    if wl.program_id(0) < n:
        wl.store(x[wl.ds(wl.program_id(0), 1)], wl.full((1,), 1.0, wl.f32))


def run(x: np.ndarray, **options: Any) -> np.ndarray:
    y = np.full(x.shape, -1).astype(x.dtype)
    rows = -(-x.shape[0] // 4)
    scale.launch(rows, **options)(x, y, 1, BM=4)
    return y


@pytest.fixture(autouse=True)
def _thawed() -> Any:
    yield
    stats.freeze(False)


def variants() -> int:
    return wl.stats().variants.get("scale", 0)


def test_a_launch_with_a_grid_in_brackets() -> None:
    x = np.arange(70, dtype=np.float32).reshape(10, 7)
    y = np.zeros_like(x)
    before = wl.stats()
    scale[3](x, y, 1, BM=4)
    assert np.array_equal(y, 3 * x)
    after = wl.stats()
    assert after.simulated_launches == before.simulated_launches + 1


@pytest.mark.case("C19")
def test_views_of_every_kind_and_the_number_of_variants() -> None:
    base = np.random.default_rng(0).standard_normal((130, 70)).astype(np.float32)
    whole = base[:64, :64].copy()
    run(whole)
    views = {
        "offset base": (base.reshape(-1)[1:][: 64 * 64].reshape(64, 64), 1),
        "gapped": (np.lib.stride_tricks.as_strided(base, (64, 64), (65 * 4, 4)), 0),
        "60 columns": (base[:63, 3:], 1),
        "one row": (whole[5:6], 0),
        "no rows": (whole[:0], 0),
        "transposed": (whole.T, 1),
        "reversed": (whole[::-1], 0),
        "expanded": (np.broadcast_to(whole[0], (9, 64)), 1),
    }
    for name, (view, more) in views.items():
        before = variants()
        assert np.array_equal(run(view), 3 * view), name
        assert variants() - before <= max(more, 1), name
        again = variants()
        assert np.array_equal(run(view), 3 * view), name
        assert variants() == again, name


def test_one_row_and_no_rows_share_the_variant_of_a_matrix() -> None:
    x = np.zeros((8, 64), np.float32)
    run(x)
    before = variants()
    for view in (x[:1], x[:0], x[3:4], x[:5]):
        run(view)
    assert variants() == before


@pytest.mark.case("C22")
@pytest.mark.parametrize("grid", [0, (0,), (1, 0, 1), (0, 1), [4], (4, 1, 1)])
def test_a_grid_without_blocks_is_checked_and_does_nothing(grid: Any) -> None:
    y = np.zeros(16, np.float32)
    fill[grid](y, 2.0, N=4)
    assert (y == (0.0 if 0 in np.atleast_1d(grid) else 2.0)).all()
    with pytest.raises(LaunchError, match="H011"):
        fill[grid](y, 2.0)


@pytest.mark.case("C22")
def test_many_blocks_that_have_nothing_to_do() -> None:
    x = np.zeros(8, np.float32)
    lazy[(1 << 20,)](x, 5)
    assert x.tolist() == [1.0] * 5 + [0.0] * 3


def test_a_changed_global_is_a_new_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((4, 16), np.float32)
    assert run(x)[0, 0] == 3
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5)
    assert run(x)[0, 0] == 5


@pytest.mark.case("C21")
def test_offsets_beyond_32_bits() -> None:
    stride = 2**31 + 16
    # Pages that nobody touches cost nothing.
    memory = np.frombuffer(mmap.mmap(-1, 2 * stride + 64), np.uint8)
    view = np.lib.stride_tricks.as_strided(memory, (3, 16), (stride, 1))
    view[...] = np.arange(48).reshape(3, 16)
    out = np.zeros((3, 16), np.uint8)
    rows_of[3](view, out)
    assert np.array_equal(out, view)
    rows_of[3](view[::-1], out)
    assert np.array_equal(out, view[::-1])
    assert ", wide" in rows_of.launch(3).call(view, out).text("tile")


@wl.kernel
def rows_of(x: wl.Tensor, out: wl.Tensor):
    row = wl.program_id(0)
    wl.store(out[row, wl.ds(0, 16)], wl.load(x[row, wl.ds(0, 16)]))


def test_threads_compile_a_variant_once() -> None:
    x = np.ones((4, 48), np.float16)
    before = wl.stats().compiles
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(run(x))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(results) == 8
    assert all((r == 3).all() for r in results)
    assert wl.stats().compiles == before + 1


def test_frozen_compilation(golden) -> None:
    x = np.ones((4, 16), np.float32)
    run(x)
    wl.freeze()
    run(x)
    with pytest.raises(LaunchError) as caught:
        run(np.ones((4, 16), np.float64).astype(np.int32))
    golden(str(caught.value))


def test_warps_are_a_launch_option() -> None:
    x = np.ones((4, 16), np.float32)
    before = variants()
    assert (run(x, warps=8) == 3).all()
    assert (run(x, warps=1) == 3).all()
    assert (run(x, warps=8) == 3).all()
    assert variants() - before == 2


def test_options_give_another_kernel_with_the_same_examples() -> None:
    other = scale.options(fast_math=True, warps=2)
    assert (other.fast_math, other.warps, other.strict) == (True, 2, False)
    assert scale.warps == 4
    assert other.example_call("wide").kernel is scale
    assert list(other.examples) == ["default", "wide"]


def test_a_bound_launch_sees_new_values_and_keeps_its_arrays() -> None:
    x = np.ones((4, 16), np.float32)
    y = np.zeros_like(x)
    bound = scale[1].bound(x, y, 1, BM=4)
    assert (y == 0).all()
    bound()
    assert (y == 3).all()
    x[...] = 7
    bound()
    assert (y == 21).all()


def test_examples_are_calls() -> None:
    call = scale.example_call()
    assert call.kernel is scale
    assert call.launcher.grid == (2, 1, 1)
    call.run()
    assert np.array_equal(call.args[1], 3 * call.args[0])
    assert call.check(seeds=3).clean
    again = scale.example_call()
    assert np.array_equal(call.args[0], again.args[0])
    assert scale.example_call("wide").args[0].shape == (5, 70)
    assert call.bench(rounds=2) > 0


@pytest.mark.parametrize("level", ["tile", "roles", "machine", "cuda"])
def test_the_text_of_a_call(level: str) -> None:
    assert "scale" in scale.example_call().text(level)


def test_a_debug_kernel_is_checked_at_each_launch() -> None:
    careful = lazy_sum.options(debug=True)
    data = wl.Make().empty((4, 8))
    out = np.zeros(4, np.float32)
    with pytest.raises(wl.CheckError, match="M002"):
        careful[4](data, out)
    careful[4](np.ones((4, 8), np.float32), out)
    assert (out == 8).all()


@wl.kernel
def lazy_sum(x: wl.Tensor, out: wl.Tensor):
    row = wl.program_id(0)
    total = wl.sum(wl.load(x[row, wl.ds(0, 8)]), axis=0)
    wl.store(out[wl.ds(row, 1)], wl.zeros((1,), wl.f32) + total)


class Holder:
    def method(self, x: wl.Tensor):
        pass


MISTAKES: dict[str, Any] = {
    "without a grid": lambda: scale(np.ones(3), np.ones(3)),
    "unknown level": lambda: scale.example_call().text("llvm"),
    "unknown architecture": lambda: scale.example_call().text("cuda", "sm_12"),
    "unknown option": lambda: scale.options(num_warps=4),
    "cluster": lambda: scale.launch(4, cluster=(3, 1, 1)),
    "warps": lambda: scale.launch(4, warps=64),
    "stream": lambda: scale.launch(4, stream="fast"),
    "no example": lambda: fill.example_call(),
    "unknown example": lambda: scale.example_call("ragged"),
    "output not writable": lambda: scale[1](np.ones((4, 4)), np.broadcast_to(1.0, (4, 4)), 1, BM=4),
    "empty graph": lambda: wl.graph(lambda: None),
    "cooperative": lambda: scale.launch(4, cooperative=3),
    "pdl": lambda: scale.launch(4, pdl="yes"),
    "debug": lambda: scale.options(debug="maybe"),
    "no seeds": lambda: scale.example_call().check(seeds=0),
    "seeds of text": lambda: scale.example_call().check(seeds="many"),
    "first seed": lambda: scale.example_call().check(first_seed=-1),
    "no rounds": lambda: scale.example_call().bench(0),
    "repeats": lambda: scale.example_call().bench(1, 2.5),
    "no states": lambda: scale.example_call().explore(0),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        MISTAKES[name]()
    golden(str(caught.value), name)


def refused_at(launch: Any) -> list[str]:
    """The functions of ours between the caller and a report."""
    with pytest.raises(wl.Error) as caught:
        launch()
    files = [(Path(f.path).name, f.name) for f in caught.traceback if "warploom/" in str(f.path)]
    return [f"{file}:{name}" for file, name in files]


def test_a_report_does_not_lead_through_the_compiler() -> None:
    @wl.kernel
    def wrong(x: wl.Tensor):
        wl.store(x[0], wl.exp(x))

    x = np.zeros(4, np.float32)
    assert refused_at(lambda: wrong[1](x)) == ["launch.py:__call__"]
    assert refused_at(lambda: wrong[1](None)) == ["launch.py:__call__"]
    assert refused_at(lambda: wrong[1].bound(x)) == ["launch.py:bound"]
    assert refused_at(lambda: wl.kernel(lambda x: None)) == ["jit.py:kernel", "jit.py:_make"]


def test_what_cannot_be_a_kernel() -> None:
    with pytest.raises(CompileError, match="F002"):
        wl.kernel(lambda x: x)
    with pytest.raises(CompileError, match="F003"):
        wl.kernel(Holder.method)
    with pytest.raises(LaunchError, match="H021"):
        wl.kernel(num_stages=3)


def test_options_that_no_launch_has() -> None:
    with pytest.raises(LaunchError, match=r"H021.*launch option `num_warps`(.|\n)*warps"):
        scale.launch(1, num_warps=4)
    assert scale.launch(1, warps=np.int64(8)).warps == 8
    for warps in (0, 33, True, 4.0, "4"):
        with pytest.raises(LaunchError, match=r"H021.*warps=(.|\n)*help"):
            scale.launch(1, warps=warps)


def test_an_example_that_returns_no_call() -> None:
    other = scale.options()
    other.examples = {"odd": lambda make: None}  # type: ignore[dict-item,return-value]
    with pytest.raises(LaunchError, match="returned no call"):
        other.example_call()


def test_the_first_simulated_launch_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(variant, "_told", False)
    monkeypatch.setattr(variant.driver, "is_likely", lambda: True)
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)
    x = np.ones((4, 16), np.float32)
    run(x)
    run(x)
    assert capsys.readouterr().err.count("runs on the simulator") == 1
    monkeypatch.setattr(variant, "_told", False)
    monkeypatch.setenv("WARPLOOM_QUIET", "1")
    run(x)
    assert capsys.readouterr().err == ""


def test_importing_loads_nothing_and_launching_neither_cuda_nor_torch() -> None:
    script = (
        "import sys, warploom as wl\n"
        "print(sorted(m for m in ('numpy', 'torch', 'cuda') if m in sys.modules))\n"
        "import warploom.kernels.elementwise as e, numpy as np\n"
        "x = np.ones((2, 8), np.float32); y = np.zeros_like(x); e.add(x, x, y)\n"
        "print(y.sum(), sorted(m for m in ('torch', 'cuda') if m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n32.0 []\n"


def test_every_public_name_can_be_loaded() -> None:
    for name in wl.__all__:
        assert getattr(wl, name) is not None
    assert dir(wl) == sorted(wl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        wl.nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'cdiv'; here this is `-\(-a // b\)`"):
        wl.cdiv
