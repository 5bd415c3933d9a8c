"""Matrix products on the matrix unit: A · B with operands of 16 or 8 bits and f32 sums."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from warploom.base.errors import error
from warploom.interop.operators import Operator, Result, declare
from warploom.kernels import activation as activations
from warploom.kernels import arguments
from warploom.kernels.gemm import kernel, operands
from warploom.kernels.gemm.config import Config, Shape, choose
from warploom.kernels.gemm.grouped import grouped_matmul
from warploom.kernels.gemm.split import kernel as split_kernel
from warploom.runtime import arrays, memory, workspace
from warploom.runtime.arrays import View

__all__ = ["Config", "Shape", "choose", "grouped_matmul", "matmul", "shape_of"]

# Products of 8-bit floats that the matrix unit adds up by itself: one step of the kernel, and what
# costs a result of 16 bits less than a tenth of its rounding.
STEP, PROMOTE_16 = 128, 1024


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    bias: Any = None,
    activation: str | Callable[..., Any] | None = None,
    residual: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    scale_a: Any = None,
    scale_b: Any = None,
    promote: int | None = None,
    dtype: Any = None,
    config: Config | Mapping[str, Any] | None = None,
    deterministic: bool = True,
    batch_invariant: bool = False,
) -> Any:
    """out[m, n] = activation(alpha·scale_a[m]·scale_b[n]·Σ_k a[m, k]·b[k, n] + bias[n]) +
    beta·residual[m, n].

    a [M, K], b [K, N]: both f16 or both bf16, each contiguous along either axis; or each f8e4m3 or
    f8e5m2, contiguous along K. out [M, N], bias [N] and residual [M, N] of any strides: f16, bf16
    or f32, each its own. A batch has one more axis in front, [B, M, K] · [B, K, N] = [B, M, N]; an
    operand, bias or residual without it, or with B = 1 or stride 0 there in an operand, belongs to
    every product of the batch.

    `scale_a`, `scale_b`: a number, or an array in f32 with one element for the whole operand, or
    with one for each row of `a` ([M] or [M, 1]) or column of `b` ([N] or [1, N]). The matrix unit
    keeps about 14 bits while it adds up 8-bit floats: after each `promote` products along K its sum
    is added to f32 registers, by default after 128, or 1024 for a result of 16 bits; 0 means never,
    which is faster and further off.

    Returns `out`. Without one a new array is made by the library that `a` comes from, of `dtype` (a
    NumPy or Warploom type; by default that of `a`, for 8-bit floats bf16); where it is given it may
    be `residual`.
    `activation`: "relu", "silu", "gelu", "gelu_tanh" or a `wl.function` of an f32 tile.

    Products and sums are f32, and so is all that follows, with one cast at the end. The result is
    the same from run to run: `deterministic=False` is accepted and changes nothing. With
    `batch_invariant` the bits of a row do not depend on M either. With K = 0 the sums are 0.
    `config` (a `Config` or a row of `configs/`) overrides the choice of a tile.

    The copy engine needs addresses and strides of `a` and `b` that are multiples of 16 bytes: other
    arrays take a slow path without the matrix unit, and stderr says so once, with the bytes and
    what to do. Raises ShapeError T201 (sizes, `out` overlapping an operand), T202 (dtypes),
    LaunchError H021 (an unknown word, a `config` that is none).
    """
    given = {"a": a, "b": b, "out": out, "bias": bias, "residual": residual}
    views = {name: arrays.read(x, name) for name, x in given.items() if _counts(name, x)}
    alpha, beta = (arguments.number("matmul", *x) for x in (("alpha", alpha), ("beta", beta)))
    shape = operands.checked(views)
    if out is None:
        element = operands.result_of(views["a"].dtype)
        element = element if dtype is None else operands.result_dtype(dtype)
        out = memory.empty_like(a, shape, element)
        views["out"] = arrays.read(out, "out")
    elif dtype is not None:
        operands.check_result("matmul", views["out"], dtype)
    activation = activations.named("matmul", activation)
    for name, scale, extent in (("scale_a", scale_a, shape[-2]), ("scale_b", scale_b, shape[-1])):
        factor, view = operands.scaled(name, scale, extent)
        alpha *= factor
        if view is not None:
            views[name] = view
    operands.check_overlaps(views)
    columns = _promoted(views, promote)
    if 0 not in shape:
        operands.fold(views)
        wanted = _shape(views["a"], views["b"], views["out"], columns)
        scales = {"alpha": _scale(alpha), "beta": None if residual is None else _scale(beta)}
        slow = operands.obstacle("a", views["a"]) or operands.obstacle("b", views["b"])
        slow = slow or operands.order_obstacle(views["a"], views["b"])
        if not slow and batch_invariant:
            slow = operands.row_obstacle(views["a"])
        if slow:
            operands.tell(slow)
            _plain(views, scales, activation)
        else:
            chosen = _configured(config, wanted, batch_invariant)
            if config is None and (activation or _reads_more(views)):
                chosen = chosen.sliced()
            _fast(views, wanted, chosen, scales, activation)
    return out


def _counts(name: str, array: Any) -> bool:
    """Whether an argument is there, or has to be."""
    return array is not None or name in ("a", "b")


def _scale(factor: float) -> float | None:
    return None if factor == 1.0 else factor


def _promoted(views: Mapping[str, View], promote: int | None) -> int:
    """Products that the matrix unit adds up by itself, 0 for all: only sums of 8-bit floats need
    it."""
    if promote is None:
        promote = STEP if views["out"].dtype.bits > 16 else PROMOTE_16
    if type(promote) is not int or promote < 0 or promote % STEP:
        raise error(
            "H021",
            f"matmul: promote={promote!r}",
            hint=f"a multiple of {STEP}, or 0 to leave all sums to the matrix unit",
        )
    return promote if views["a"].dtype.is_f8 else 0


def _configured(
    config: Config | Mapping[str, Any] | None, shape: Shape, batch_invariant: bool
) -> Config:
    if config is None:
        return choose(shape, batch_invariant)
    chosen = Config.given("matmul", config)
    arguments.require(
        shape.promote % chosen.BK == 0,
        "matmul",
        f"`config` has BK = {chosen.BK}, and sums are promoted after {shape.promote} products",
        hint=f"BK divides {shape.promote}; or pass another `promote`",
    )
    return chosen


def _reads_more(views: Mapping[str, View]) -> bool:
    """Whether an epilogue has more than sums and one factor in registers, or writes from them."""
    factors = [views[name] for name in ("scale_a", "scale_b") if name in views]
    each = any(factor.strides[0] != 0 for factor in factors)
    return each or "bias" in views or "residual" in views or operands.needs_registers(views)


def _plain(views: Mapping[str, View], scales: Mapping[str, Any], activation: Any) -> None:
    """Without the matrix unit."""
    *batch, m, n = views["out"].shape
    grid = (arguments.ceil_div(m, 32) * prod(batch), arguments.ceil_div(n, 64))
    kernel.plain[grid](*_tensors(views), **scales, **_scales_of(views), ACTIVATION=activation)


def _fast(
    views: dict[str, View],
    shape: Shape,
    chosen: Config,
    scales: Mapping[str, Any],
    activation: Any,
) -> None:
    """On the matrix unit, by tiles of the product or of its transpose."""
    if chosen.SWAP:
        arguments.require(
            shape.m > 1,
            "matmul",
            "a tile of the transposed product for one row of `a`",
            "a column of one element has no axis that the copy engine can take",
            hint="give a `config` with SWAP=False",
        )
        # outᵀ = bᵀ · aᵀ: the columns of `b` are the rows of the matrix unit.
        turned = {"a": views["b"].turned, "b": views["a"].turned, "out": views["out"].turned}
        if "residual" in views:
            turned["residual"] = views["residual"].turned
        names = {"scale_a": "scale_b", "scale_b": "scale_a"}
        turned |= {name: views[other] for name, other in names.items() if other in views}
        views = {name: v for name, v in views.items() if name not in names} | turned
    scales = {**scales, **_scales_of(views)}
    constants = {
        **chosen.constants(),
        "ACTIVATION": activation,
        "A_T": operands.along_rows(views["a"]),
        "B_T": operands.along_rows(views["b"]),
        "ROW_BIAS": chosen.SWAP,
        "DIRECT": chosen.SWAP or operands.needs_registers(views),
        "PROMOTE": shape.promote,
    }
    if shares := chosen.shares(shape):
        _split(views, chosen, shares, chosen.tiles(shape.m, shape.n), scales, constants)
    else:
        launcher = kernel.gemm.launch(chosen.grid(shape), cluster=chosen.CLUSTER, pdl=chosen.PDL)
        launcher(*_tensors(views), **scales, **constants)


def _split(
    views: Mapping[str, View],
    chosen: Config,
    blocks: int,
    tiles: int,
    scales: Mapping[str, Any],
    constants: dict[str, Any],
) -> None:
    """Deal the steps of all tiles to so many blocks."""
    orders = [constants.pop(name) for name in ("PINGPONG", "STAGGER")]
    arguments.require(
        not any(orders) and chosen.CLUSTER == (1, 1),
        "matmul",
        "a `config` with SPLIT besides PINGPONG, STAGGER or CLUSTER",
        hint="give one of them",
    )
    parts = 2 * blocks, chosen.BM, chosen.BN
    held = workspace.for_launch(views["a"], parts, tiles * chosen.MATH)
    launcher = split_kernel.split_gemm.launch(blocks, pdl=chosen.PDL)
    launcher(*_tensors(views), *held, **scales, **constants)


def _scales_of(views: Mapping[str, View]) -> dict[str, View | None]:
    return {name: views.get(name) for name in ("scale_a", "scale_b")}


def _tensors(views: Mapping[str, View]) -> tuple[View | None, ...]:
    """The tensors of both kernels, in their order."""
    return tuple(views.get(name) for name in ("a", "b", "out", "bias", "residual"))


def shape_of(a: Any, b: Any, out: Any, promote: int | None = None) -> Shape:
    """What the choice of a tile depends on; an H200 stands for the simulator."""
    views = {name: arrays.read(x, name) for name, x in (("a", a), ("b", b), ("out", out))}
    return _shape(views["a"], views["b"], views["out"], _promoted(views, promote))


def _shape(a: View, b: View, out: View, promote: int) -> Shape:
    return Shape(
        *(a.shape[-2], b.shape[-1], a.shape[-1]),
        *(operands.along_rows(a), operands.along_rows(b)),
        out.dtype.bytes,
        arguments.multiprocessors(a),
        out.shape[0] if len(out.shape) == 3 else 1,
        a.dtype.bytes,
        promote,
    )


def _result(given: Mapping[str, Any]) -> Result:
    """Shape and element type of a product without `out`."""
    names = ("a", "b", "bias", "residual")
    shape = operands.checked({name: given[name] for name in names if name in given})
    dtype = given.get("dtype")
    element = operands.result_of(given["a"].dtype)
    return shape, element if dtype is None else operands.result_dtype(dtype)


declare(
    Operator(
        "matmul",
        matmul,
        (
            *("Tensor a", "Tensor b", "Tensor? bias=None", "str? activation=None"),
            *("Tensor? residual=None", "float alpha=1.0", "float beta=1.0"),
            *("Tensor? scale_a=None", "Tensor? scale_b=None", "int? promote=None"),
            *("ScalarType? dtype=None", "bool batch_invariant=False"),
        ),
        (kernel.gemm, kernel.plain, split_kernel.split_gemm),
        _result,
        {"c": "out"},
        ("parts", "counts"),
    )
)
