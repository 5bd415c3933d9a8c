"""Library calls as custom operations of torch: schema, fake, compiled, recorded, refused."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="these tests are about torch")
pytestmark = pytest.mark.torch

import warploom as wl  # noqa: E402
from warploom.base.errors import ShapeError  # noqa: E402
from warploom.interop import operators  # noqa: E402
from warploom.interop import torch as interop  # noqa: E402
from warploom.kernels import activation, gemm, kv, linear, norm, rope  # noqa: E402
from warploom.testing.torch_ops import check_torch_op  # noqa: E402

FAMILIES = (activation, gemm, kv, linear, norm, rope)
OPS = torch.ops.warploom


@pytest.fixture
def place(device) -> str:
    return "cpu" if device.name == "sim" else "cuda"


def randn(place: str, *shape: int, dtype: Any = torch.float16, seed: int = 0) -> Any:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=draw).to(place, dtype)


def arguments(place: str) -> dict[str, tuple[Any, ...]]:
    """One call of every operation that makes a result."""
    x, flat = randn(place, 5, 64), randn(place, 64, dtype=torch.float32)
    return {
        "matmul": (randn(place, 40, 64), randn(place, 72, 64).t()),
        "grouped_matmul": (
            randn(place, 40, 64),
            randn(place, 3, 64, 24),
            torch.tensor([0, 17, 17, 40], dtype=torch.int32, device=place),
        ),
        "linear": (x, randn(place, 24, 64), None, randn(place, 5, 24)),
        "rms_norm": (x, flat, 1e-5),
        "layer_norm": (x, flat, flat, 1e-5),
        "silu_mul": (x, randn(place, 5, 64, seed=1)),
        "gelu": (x, "tanh"),
        "softmax": (x,),
        "rope": (
            randn(place, 5, 2, 16),
            torch.arange(5, dtype=torch.int32, device=place),
            randn(place, 8, dtype=torch.float32).abs(),
        ),
    }


NAMES = sorted(arguments("cpu"))


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_is_its_call(place, name):
    given = arguments(place)[name]
    expected = torch.empty_like(getattr(OPS, name)(*given))
    call = operators.declared[name].call
    names = operators.declared[name].argument_names
    call(**dict(zip(names, given, strict=False)), out=expected)
    assert torch.equal(getattr(OPS, name)(*given), expected)
    needed = sum("=" not in a for a in operators.declared[name].arguments)
    out = torch.empty_like(expected)
    getattr(OPS, f"{name}_out")(*given[:needed], out, *given[needed:])
    assert torch.equal(out, expected)


@pytest.mark.parametrize("name", NAMES)
def test_operations_that_make_a_result(place, name):
    check_torch_op(getattr(OPS, name).default, *arguments(place)[name])


@pytest.mark.parametrize("name", ["matmul", "rms_norm"])
def test_operations_that_take_their_result(place, name):
    given = arguments(place)[name]
    out = torch.zeros_like(getattr(OPS, name)(*given))
    check_torch_op(getattr(OPS, f"{name}_out").default, *given, out)


def test_an_operation_that_changes_its_arguments(place):
    k, v = randn(place, 3, 2, 16), randn(place, 3, 2, 16, seed=1)
    caches = [torch.zeros(8, 2, 16, dtype=torch.float16, device=place) for _ in range(2)]
    at = torch.tensor([4, 0, 7], dtype=torch.int32, device=place)
    check_torch_op(OPS.kv_append.default, k, v, *caches, at)
    OPS.kv_append(k, v, *caches, at)
    assert torch.equal(caches[0][at.long()], k) and torch.equal(caches[1][at.long()], v)


@pytest.mark.parametrize(
    "more",
    [
        {"activation": "silu", "alpha": 0.5},
        {"bias": 72, "residual": (40, 72), "beta": 2.0},
        {"dtype": torch.float32},
        {"batch_invariant": True},
    ],
    ids=lambda more: "-".join(more),
)
def test_everything_that_a_product_may_have(place, more):
    held = dict(more)
    for name in ("bias", "residual"):
        if name in held:
            shape = held[name] if isinstance(held[name], tuple) else (held[name],)
            held[name] = randn(place, *shape, seed=3)
    check_torch_op(OPS.matmul.default, *arguments(place)["matmul"], **held)


@pytest.mark.parametrize("shapes", [((3, 40, 64), (64, 72)), ((40, 64), (3, 64, 72))])
def test_batches(place, shapes):
    check_torch_op(OPS.matmul.default, *(randn(place, *shape) for shape in shapes))


def test_a_model_is_compiled_whole(place):
    """Neighbours of torch's own, a size that changes: no break of the graph, the eager numbers."""

    def block(x, w, up):
        made = OPS.matmul(x + 1, w, activation="gelu")
        return OPS.matmul(made, up, residual=x) * 2

    w, up = randn(place, 64, 96), randn(place, 96, 64, seed=2)
    backend = "aot_eager" if place == "cpu" else "inductor"
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend=backend)
    for rows in (5, 40, 128):
        x = randn(place, rows, 64, seed=rows)
        assert torch.allclose(compiled(x, w, up), block(x, w, up), atol=1e-2, rtol=1e-2)


@wl.kernel
def doubled(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[wl.ds(0, 64)], wl.load(x[wl.ds(0, 64)]) * 2.0)


def test_calls_and_launches_that_are_no_operations_end_a_graph(place):
    """The compiler does not follow them into the runtime."""

    def product(a, b):
        return gemm.matmul(a + 1, b, config=gemm.Config(64, 64, 64, 2, 1)) * 2

    def launched(x):
        y = torch.empty_like(x)
        doubled[1](x + 1, y)
        return y * 3

    backend = "aot_eager" if place == "cpu" else "inductor"
    a, b, x = randn(place, 40, 64), randn(place, 72, 64).t(), randn(place, 64)
    for function, given in ((product, (a, b)), (launched, (x,))):
        compiled = torch.compile(function, backend=backend)
        assert torch.equal(compiled(*given), function(*given))


def test_a_model_is_exported_with_a_size_left_open(place):
    class Model(torch.nn.Module):
        def forward(self, a, b):
            return OPS.matmul(a, b, activation="relu") * 2

    a, b = randn(place, 40, 64), randn(place, 64, 72)
    rows = torch.export.Dim("rows", min=2, max=500)
    made = torch.export.export(Model(), (a, b), dynamic_shapes={"a": {0: rows}, "b": None})
    for m in (2, 130):
        x = randn(place, m, 64, seed=m)
        assert torch.equal(made.module()(x, b), Model()(x, b))


def test_fakes_have_shape_and_dtype_and_refuse_what_the_call_refuses():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        a, b = torch.empty(3, 5, 64, dtype=torch.bfloat16), torch.empty(64, 8, dtype=torch.bfloat16)
        made = OPS.matmul(a, b, dtype=torch.float32)
        assert made.shape == (3, 5, 8) and made.dtype is torch.float32
        assert OPS.matmul(a, b).dtype is torch.bfloat16
        with pytest.raises(ShapeError, match="axis 0 of `b` is 63, and K is 64"):
            OPS.matmul(a, b[:63])


def test_a_gradient_is_refused_and_not_forgotten(place):
    a, b = (randn(place, 16, 16).requires_grad_() for _ in range(2))
    made = OPS.matmul(a, b)
    with pytest.raises(RuntimeError, match="autograd"):
        made.sum().backward()


def test_a_kernel_of_ones_own_becomes_an_operation(place):
    """What a user declares is registered like the library's."""

    @wl.kernel
    def doubled(x: wl.Tensor, out: wl.Tensor, SIZE: wl.const):
        wl.store(out[wl.ds(0, SIZE)], 2.0 * wl.load(x[wl.ds(0, SIZE)]))

    @doubled.example
    def _small(make):
        return doubled.launch(1).call(make.randn(8), make.empty(8), SIZE=8)

    def call(x, out):
        doubled[1](x, out, SIZE=x.shape[0])

    name = f"doubled_{place}"
    made = operators.Operator(name, call, ("Tensor x",), (doubled,), operators.like("x"))
    operators.declare(made)
    check_torch_op(getattr(OPS, name).default, randn(place, 16, dtype=torch.float32))


def test_a_description_that_does_not_fit_its_kernel_is_refused():
    @wl.kernel
    def both(x: wl.Tensor, out: wl.Tensor, SIZE: wl.const):
        wl.store(out[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)]))
        wl.store(x[wl.ds(0, SIZE)], wl.load(x[wl.ds(0, SIZE)]) + 1.0)

    @both.example
    def _small(make):
        return both.launch(1).call(make.randn(8), make.empty(8), SIZE=8)

    made = operators.Operator("both", both, ("Tensor x",), (both,), operators.like("x"))
    with pytest.raises(ValueError, match="its kernels write x beside or instead of `out`"):
        interop.register(made)


def test_schemas_say_what_is_written():
    assert interop.schema(("Tensor a", "Tensor b", "int n=1"), frozenset("b"), "()") == (
        "(Tensor a, Tensor(a!) b, int n=1) -> ()"
    )


def test_the_check_finds_a_fake_that_lies(place):
    @torch.library.custom_op(f"warploom_test::lies_{place}", mutates_args=())
    def lies(x: torch.Tensor) -> torch.Tensor:
        return x.float() + 1

    lies.register_fake(lambda x: torch.empty_like(x, dtype=torch.float64))
    with pytest.raises(Exception, match="Dtypes"):
        check_torch_op(getattr(torch.ops.warploom_test, f"lies_{place}").default, randn(place, 4))


def test_the_check_finds_hidden_writes(place):
    @torch.library.custom_op(f"warploom_test::hides_{place}", mutates_args=())
    def hides(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.clone()

    hides.register_fake(torch.empty_like)
    with pytest.raises(Exception, match="mutat"):
        check_torch_op(getattr(torch.ops.warploom_test, f"hides_{place}").default, randn(place, 4))
