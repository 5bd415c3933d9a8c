"""Matrix products on the matrix unit: A · B with f16 or bf16 operands and f32 sums."""

import os
import sys
from typing import Any

from warploom.kernels import arguments
from warploom.kernels.gemm import config, kernel
from warploom.runtime import argument_class, arrays, driver
from warploom.runtime.arrays import View

OPERANDS = ("f16", "bf16")
_SIMULATED_SMS = 132
_UNIT = 16  # bytes: what the copy engine asks of addresses and strides
_told: list[str] = []


def matmul(
    a: Any,
    b: Any,
    out: Any,
    bias: Any = None,
    activation: Any = None,
    chosen: config.Config | None = None,
) -> None:
    """out[m, n] = activation(Σ_k a[m, k]·b[k, n] + bias[n]).

    a [M, K], b [K, N]: both f16 or both bf16, each contiguous along either axis; out [M, N]: f16,
    bf16 or f32; bias [N]: f16, bf16 or f32. `activation` is a `wl.function` of an f32 tile.
    Products and sums are f32, with one cast at the end; the result is the same from run to run.
    With K = 0 it is activation(bias). `chosen` overrides the choice of `config.py`.

    The copy engine needs addresses and strides of `a` and `b` that are multiples of 16 bytes: other
    arrays take a slow path without the matrix unit, and stderr says so once, with the bytes and
    what to do. Raises ShapeError T201 (sizes, `out` overlapping an operand), T202 (dtypes).
    """
    size = arguments.sizes("matmul", a=(a, "M K"), b=(b, "K N"), out=(out, "M N"), bias=(bias, "N"))
    arguments.dtypes("matmul", OPERANDS, a=a, b=b)
    arguments.dtypes("matmul", arguments.FLOATS, out=out, bias=bias)
    left, right = arguments.dtype_name(a), arguments.dtype_name(b)
    arguments.require(
        left == right, "matmul", f"`a` is {left} and `b` is {right}", hint="cast one of them"
    )
    views = {"a": arrays.read(a, "a"), "b": arrays.read(b, "b"), "out": arrays.read(out, "out")}
    for name in ("a", "b"):
        arguments.require(
            not argument_class.shares_memory(views[name], views["out"]),
            "matmul",
            f"`out` overlaps `{name}`, which other blocks still read",
        )
    if not size["M"] or not size["N"]:
        return
    why = {name: _obstacle(name, view) for name, view in views.items()}
    if why["a"] or why["b"]:
        _tell(why["a"] or why["b"])
        grid = (arguments.ceil_div(size["M"], 32), arguments.ceil_div(size["N"], 64))
        kernel.plain[grid](a, b, out, bias, ACTIVATION=activation)
        return
    shape = _shape(*views.values())
    if chosen is None:
        chosen = config.choose(shape)
    direct = bool(why["out"]) or _fast_axis(views["out"]) == 0
    blocks = min(shape.sms, chosen.tiles(shape.m, shape.n))
    a_t, b_t = shape.a_t, shape.b_t
    if chosen.SWAP and bias is None:
        # outᵀ = bᵀ · aᵀ: the columns of `b` are the rows of the matrix unit.
        a, b, out, direct = b.T, a.T, out.T, True
        turned = shape_of(a, b, out)
        a_t, b_t = turned.a_t, turned.b_t
    # The next product's barriers are made while this one's last tiles are written.
    kernel.gemm.launch(blocks, pdl=True)(
        *(a, b, out, bias),
        **chosen.constants(),
        **{"ACTIVATION": activation, "A_T": a_t, "B_T": b_t, "DIRECT": direct},
    )


def shape_of(a: Any, b: Any, out: Any) -> config.Shape:
    """What the choice of a tile depends on; an H200 stands for the simulator."""
    return _shape(*(arrays.read(x, name) for x, name in ((a, "a"), (b, "b"), (out, "out"))))


def _shape(a: View, b: View, out: View) -> config.Shape:
    on_sim = a.place == arrays.SIM
    return config.Shape(
        *(a.shape[0], b.shape[1], a.shape[1]),
        *(_fast_axis(a) == 0, _fast_axis(b) == 0),
        out.dtype.bytes,
        _SIMULATED_SMS if on_sim else driver.facts(a.device).multiprocessors,
    )


def _strides(view: View) -> tuple[int, ...]:
    return argument_class.canonical_strides(view.shape, view.strides)


def _fast_axis(view: View) -> int:
    """The contiguous axis, or -1."""
    return argument_class.letters(_strides(view)).find("1")


def _obstacle(name: str, view: View) -> str:
    """Why the copy engine cannot move a matrix, and what to do; empty where it can."""
    if 0 in view.shape:
        return ""
    if (past := view.address % _UNIT) != 0:
        return f"`{name}` starts {past} bytes past a multiple of {_UNIT}: pass a copy of it"
    fast = _fast_axis(view)
    strides = _strides(view)
    if fast < 0:
        return f"no axis of `{name}` is contiguous (strides {strides}): pass a copy of it"
    step, other = strides[1 - fast] * view.dtype.bytes, 1 - fast
    if view.shape[other] > 1 and (step % _UNIT or step < 0):
        longer = -(-abs(step) // _UNIT) * _UNIT // view.dtype.bytes
        return (
            f"`{name}` has a stride of {step} bytes along axis {other}, no multiple of {_UNIT}: "
            f"allocate that axis with a stride of {longer} elements and pass a view"
        )
    return ""


def _tell(why: str) -> None:
    """Say once what makes a product slow."""
    if why not in _told and not os.environ.get("WARPLOOM_QUIET"):
        _told.append(why)
        print(f"warploom: matmul without the matrix unit: {why}", file=sys.stderr)
