"""A kernel that moves its tile with the copy engine, from the call to the device: the same numbers
and the same refusals on both."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import LaunchError
from warploom.base.target import SM_90A
from warploom.runtime import compile as compiler


@wl.kernel
def through(x: wl.Tensor, y: wl.Tensor):
    """y[0:64, 0:64] = x[4:68, 16:80], by way of shared memory and back by the copy engine."""
    held = wl.shared((64, 64), x.dtype, swizzle=128)
    ready = wl.barrier()
    with wl.one_thread():
        ready.expect(8192)
        wl.copy_async(x[wl.ds(4, 64), wl.ds(16, 64)], held, barrier=ready)
    ready.wait(0)
    with wl.one_thread():
        wl.copy_async(held, y[wl.ds(0, 64), wl.ds(0, 64)])
        wl.copy_commit()
        wl.copy_wait()


def numbers(rows: int, columns: int) -> np.ndarray:
    values = np.arange(rows * columns) % 251
    return values.reshape(rows, columns).astype(ml_dtypes.bfloat16)


SHAPES = [(72, 96), (68, 80), (40, 88), (4, 16), (5, 24)]


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What lies outside `x` is zero, and nothing is written outside `y`."""
    out = y.copy()
    window = np.zeros((64, 64), x.dtype)
    part = x[4:68, 16:80]
    window[: part.shape[0], : part.shape[1]] = part
    out[:64, :64] = window[: y.shape[0], : y.shape[1]]
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("out", [(64, 64), (66, 72), (33, 40)])
def test_a_box_on_the_simulator(shape: tuple[int, int], out: tuple[int, int]) -> None:
    x, y = numbers(*shape), np.full(out, 3, ml_dtypes.bfloat16)
    want = expected(x, y)
    through[1](x, y)
    assert np.array_equal(y, want)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("out", [(64, 64), (66, 72), (33, 40)])
def test_a_box_on_the_gpu(shape: tuple[int, int], out: tuple[int, int]) -> None:
    x, y = numbers(*shape), np.full(out, 3, ml_dtypes.bfloat16)
    there = wl.to_device(y)
    through[1](wl.to_device(x), there)
    assert np.array_equal(wl.to_numpy(there), expected(x, y))


@pytest.mark.gpu
def test_a_bound_launch_and_a_view_on_the_gpu() -> None:
    """Descriptors belong to addresses: two inputs in turn, one of them a view."""
    x, other = wl.to_device(numbers(72, 96)), wl.to_device(numbers(72, 96) + 1)
    y = wl.to_device(np.zeros((64, 64), ml_dtypes.bfloat16))
    launches = [through[1].bound(a, y) for a in (x, other)]
    for launch, a in zip(launches * 2, (x, other) * 2, strict=True):
        launch()
        got = wl.to_numpy(y)
        assert np.array_equal(got, expected(wl.to_numpy(a), got))


@pytest.mark.case("C18")
def test_both_tensors_are_refused_by_name() -> None:
    good, bad = numbers(72, 96), numbers(72, 95)
    for name, pair in (("x", (bad, good)), ("y", (good, bad))):
        for launch in (through[1], through[1].bound, through[1].check):
            with pytest.raises(LaunchError, match=rf"tensor {name}: stride 190 bytes") as caught:
                launch(*pair)
            assert caught.value.code == "H029"


def test_an_image_keeps_its_maps_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE", str(tmp_path))
    arguments = through[1].call(numbers(72, 96), numbers(64, 64)).arguments
    request = through.request(arguments, 4)
    first, second = (compiler.gpu_image(request, SM_90A) for _ in range(2))
    assert first == second and first.layout.maps == ("0:1,0:64x64:128", "1:1,0:64x64:128")
