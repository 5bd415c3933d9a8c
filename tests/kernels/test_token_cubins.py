"""The token kernel for the shapes of real models compiles with few registers and hardly a spill."""

import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.test_token_plan import SHAPES
from warploom.base.target import SM_90A
from warploom.codegen.emitter import emit
from warploom.kernels import token
from warploom.runtime import budget, nvrtc, sass
from warploom.runtime.compile import machine_kernel

# Heads of 80 columns spill (docs/token_kernel.md); the rest does not.
NAMES = [name for name in SHAPES if name not in ("small", "pythia-2.8b")]
# Bytes that ptxas may spill where registers are scarce (docs/token_kernel.md); elsewhere none.
SPILLED = {
    ("llama-3.1-8b", 1): 88,
    ("llama-3.1-8b", 8): 248,
    ("qwen3-8b", 1): 152,
    ("qwen3-8b", 8): 256,
    ("pythia-6.9b", 1): 144,
    ("pythia-6.9b", 8): 144,
}
CASES = [
    pytest.param(name, columns, marks=() if name == "llama-3.1-8b" and columns == 8 else slow)
    for slow in (pytest.mark.slow,)
    for name in NAMES
    for columns in (1, 8)
]


def blank(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array whose memory is never touched: only its class matters."""
    count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, count * size), dtype, count).reshape(shape)


def biases(shape: token.Shape) -> dict[str, np.ndarray]:
    """Those of every matrix and norm."""
    rows = {
        "qkv_bias": (shape.layers, shape.query + 2 * shape.key),
        "out_bias": (shape.layers, shape.hidden),
        "up_bias": (shape.layers, shape.feed_forward),
        "down_bias": (shape.layers, shape.hidden),
        "norm_biases": (2 * shape.layers + 1, shape.hidden),
    }
    return {name: blank(size, np.float32) for name, size in rows.items()}


def request_of(shape: token.Shape, columns: int, context: int = 1024, page: int = 16) -> Any:
    """A launch on the blocks of an H200."""
    plan, bf16 = token.make(shape, 132), ml_dtypes.bfloat16
    cache = (shape.layers, columns * context // page, page, shape.kv_heads, shape.head_dim)
    weights = token.Weights(
        packed=blank((plan.total_steps, plan.step_elements), bf16),
        embedding=blank((shape.vocabulary, shape.hidden), bf16),
        norms=blank((2 * shape.layers + 1, shape.hidden), np.float32),
        frequencies=blank((shape.rotary_dim // 2,), np.float32),
        **({} if shape.gated else biases(shape)),
    )
    held = token.Cache(
        blank(cache, bf16), blank(cache, bf16), blank((columns, context // page), np.int32)
    )
    given = token.Columns(*(blank((columns,), np.int32) for _ in range(3)))
    work = token.Workspace.make(plan, columns, context, blank)
    scale = shape.head_dim**-0.5
    return token.call(plan, weights, held, given, work, eps=1e-5, scale=scale).request


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_real_shapes(name: str, columns: int) -> None:
    lowered = machine_kernel(request_of(SHAPES[name], columns), SM_90A)
    source = emit(lowered, SM_90A)
    made = nvrtc.compile_cubin(source, SM_90A)
    most = SPILLED.get((name, columns), 0)
    notes = [note for note in made.notes if note.code != "C003" or note.facts["bytes"] > most]
    assert not notes, "\n".join(note.render() for note in notes)
    assert lowered.shared_bytes <= SM_90A.shared_per_block
    uses = sass.by_role(nvrtc.instructions(made.cubin), source.roles)
    for role in budget.roles(lowered, SM_90A, {}, uses):
        assert role.used is not None and role.used <= role.registers, role
