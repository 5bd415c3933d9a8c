"""Torch tensors as arguments. Torch is imported by the test, never by the runtime."""

import subprocess
import sys

import numpy as np
import pytest

from warploom.base.errors import LaunchError
from warploom.runtime import arrays, memory

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="these tests are about torch")


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]
    + ["float8_e4m3fn", "float8_e5m2"],
)
def test_a_cpu_tensor_is_seen_in_place(name: str) -> None:
    base = torch.arange(24).to(getattr(torch, name)).reshape(4, 6)
    tensor = base[1:, ::2].T
    view = arrays.read(tensor, "x")
    assert view.shape == (3, 3)
    assert view.strides == (2, 6)
    assert view.address == tensor.data_ptr()
    assert view.place == "sim"
    assert view.writable
    assert view.host is not None
    assert np.array_equal(view.host.astype(np.float64), tensor.to(torch.float64).numpy())
    view.host[0, 0] = 1
    assert base[1, 0].to(torch.float64) == 1


def test_bf16_goes_to_numpy() -> None:
    values = memory.to_numpy(torch.tensor([1.5, -2.0], dtype=torch.bfloat16))
    assert values.dtype.name == "bfloat16"
    assert values.astype(np.float32).tolist() == [1.5, -2.0]


MISTAKES = {
    "requires grad": lambda: torch.zeros(3, requires_grad=True),
    "complex": lambda: torch.zeros(3, dtype=torch.complex64),
    "rank 0": lambda: torch.tensor(1.0),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.zeros(3, device="meta"),
    "negated": lambda: torch.zeros(3, dtype=torch.complex64).conj().imag,
    "quantised": lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        arrays.read(MISTAKES[name](), "x")
    golden(str(caught.value), name)


def test_under_no_grad_a_parameter_is_an_array() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        assert arrays.read(parameter, "x").shape == (3,)


def test_the_runtime_does_not_import_torch() -> None:
    script = (
        "import sys, numpy, warploom as wl\n"
        "from warploom.runtime import arrays, jit, memory\n"
        "arrays.read(numpy.zeros(3), 'x')\n"
        "print([m for m in ('torch', 'cuda', 'cupy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
