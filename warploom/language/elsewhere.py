"""What the words of Triton, CUDA, NumPy and torch are here, for the reports of absent names."""

from __future__ import annotations

_NO_THREADS = "`wl.thread_id()`, a tile; `wl.program_id(axis)` says which block it is"
_NO_BARRIER = "nothing: the compiler puts barriers where threads exchange data"
_PRODUCT = (
    "`wl.sum(a[:, :, None] * b[None, :, :], axis=1)` of tiles, "
    "`wl.dot_async` of shared tiles in a role"
)
_IN_PLACE = "done by sub-tiles, `t[:, None]` and `t.T`; tiles keep their elements in place"
_WINDOW = "a window: `x[wl.ds(start, SIZE)]`; what lies outside the tensor reads as zero"

# Attributes of the package: `wl.NAME` is here …
OF_PACKAGE = {
    "float16": "`wl.f16`",
    "half": "`wl.f16`",
    "bfloat16": "`wl.bf16`",
    "float32": "`wl.f32`",
    "float": "`wl.f32`",
    "float64": "`wl.f64`",
    **{name: "`wl.f8e4m3`" for name in ("float8e4nv", "float8_e4m3fn", "float8e4m3", "e4m3")},
    **{name: "`wl.f8e5m2`" for name in ("float8e5", "float8_e5m2", "float8e5m2", "e5m2")},
    "double": "`wl.f64`",
    **{f"int{n}": f"`wl.i{n}`" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"`wl.u{n}`" for n in (8, 16, 32, 64)},
    "int": "`wl.i32`",
    "int1": "`wl.boolean`",
    "bool": "`wl.boolean`",
    "bool_": "`wl.boolean`",
    "jit": "`@wl.kernel`, or `@wl.function` for what kernels call",
    "constexpr": "`wl.const`",
    "cdiv": "`-(-a // b)`",
    "autotune": "a loop of your own: each value of a `wl.const` parameter is a variant",
    "static_range": "`wl.unroll(n)`",
    "static_assert": "`assert`",
    "static_print": "`print`",
    "printf": "`print`",
    "thread_idx": _NO_THREADS,
    "threadIdx": _NO_THREADS,
    "blockIdx": "`wl.program_id(axis)`",
    "setmaxnreg": '`wl.role("math", warps=4, registers=232)`',
    "threadfence": '`wl.fence("gpu")`',
    "syncwarp": "`wl.warp_sync()`",
    "block_id": "`wl.program_id(axis)`",
    "gridDim": "`wl.num_programs(axis)`",
    "syncthreads": _NO_BARRIER,
    "debug_barrier": _NO_BARRIER,
    "atomic_xchg": "`wl.atomic_exchange(x[i], value)`",
    "atomicAdd": "`wl.atomic_add(x[i], value)`",
    "atomicCAS": "`wl.atomic_cas(x[i], expected, value)`",
    "dot": _PRODUCT,
    "matmul": _PRODUCT,
    "make_block_ptr": _WINDOW,
    "make_tensor_descriptor": _WINDOW,
    "multiple_of": "nothing: alignment is taken from the arguments",
    "max_contiguous": "nothing: alignment is taken from the arguments",
    "cast": "`t.cast(dtype)`",
    "zeros_like": "`wl.zeros(t.shape, t.dtype)`",
    "full_like": "`wl.full(t.shape, value, t.dtype)`",
    "ones": "`wl.full(shape, 1, dtype)`",
    "empty": "`wl.zeros(shape, dtype)`: a tile has values from the start",
    "reshape": _IN_PLACE,
    "view": _IN_PLACE,
    "expand_dims": "`t[:, None]`",
    "trans": "`t.T`",
    "transpose": "`t.T`",
    "permute": "`t.T`",
    "hstack": "`wl.cat((a, b), axis)`",
    "concatenate": "`wl.cat((a, b), axis)`",
    "concat": "`wl.cat((a, b), axis)`",
    "mean": "`wl.sum(t, axis) / N`",
    "sigmoid": "`1 / (1 + wl.exp(-t))`",
    "softmax": "`e = wl.exp(t - wl.max(t, axis))`, then `e / wl.sum(e, axis)`",
    "clamp": "`wl.minimum(wl.maximum(t, low), high)`",
    "clip": "`wl.minimum(wl.maximum(t, low), high)`",
    "fmax": "`wl.maximum(a, b)`",
    "fmin": "`wl.minimum(a, b)`",
    "absolute": "`wl.abs(t)`",
    "rint": "`wl.round(t)`",
    "trunc": "`wl.where(t < 0, wl.ceil(t), wl.floor(t))`",
    "pow": "`wl.exp2(y * wl.log2(x))` for x > 0",
    "sqrt_rn": "`wl.sqrt(t)`",
    "div_rn": "`a / b`",
    "inf": '`float("inf")`',
    "nan": '`float("nan")`',
}

# Attributes of tiles, scalars and tensors.
OF_VALUE = {
    "to": "`t.cast(dtype)`",
    "astype": "`t.cast(dtype)`",
    "type": "`t.cast(dtype)`",
    "float": "`t.cast(wl.f32)`",
    "half": "`t.cast(wl.f16)`",
    "bfloat16": "`t.cast(wl.bf16)`",
    "ndim": "`len(t.shape)`, or `x.rank` of a tensor",
    "dim": "`len(t.shape)`, or `x.rank` of a tensor",
    "size": "the product of `t.shape`; `x.shape[axis]` is one extent",
    "numel": "the product of `t.shape`; `x.shape[axis]` is one extent",
    "transpose": "`t.T`",
    "trans": "`t.T`",
    "t": "`t.T`",
    "permute": "`t.T`",
    "item": "`wl.scalar(t)`",
    "strides": "`x.stride(axis)`",
    "load": "`wl.load(x[…])`",
    "store": "`wl.store(x[…], t)`",
    "reshape": _IN_PLACE,
    "view": _IN_PLACE,
    "mean": OF_PACKAGE["mean"],
    "clamp": OF_PACKAGE["clamp"],
    "clip": OF_PACKAGE["clip"],
    "sigmoid": OF_PACKAGE["sigmoid"],
    "softmax": OF_PACKAGE["softmax"],
}

# Parameters of functions of the language.
OF_CALL = {
    "dim": "`axis=`",
    "keepdim": "`keepdims=True`",
    "keep_dims": "`keepdims=True`",
    "fill_value": "`value=`",
}
