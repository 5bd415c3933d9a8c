"""Kernels from text: written to a file of their own, so that places in reports stay put."""

import importlib.util
import itertools
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warploom.base import dtypes
from warploom.base.errors import CompileError
from warploom.frontend.build import ParamSpec, build
from warploom.frontend.signature import parse_signature
from warploom.ir.kernel import Kernel
from warploom.ir.printer import print_kernel
from warploom.ir.types import Scalar, Tensor, TensorClass
from warploom.ir.verifier import verify_kernel

_NUMBERS = itertools.count()


def tensor(text: str, **more: Any) -> Tensor:
    """A tensor type from `f32 n1`: dtype, and a letter for the stride of each axis."""
    dtype, _, strides = text.partition(" ")
    return Tensor(dtypes.BY_NAME[dtype], len(strides), TensorClass(strides, **more))


class Source:
    """Writes a module, imports it, and builds its kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, text: str) -> ModuleType:
        """A module with this text after `import warploom as wl`."""
        name = f"warploom_test_{next(_NUMBERS)}"
        path = self.folder / "kernel.py"
        path.write_text("import warploom as wl\n\n" + text.lstrip("\n"), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        # The file may have had another text a moment ago.
        linecache.cache.pop(str(path), None)
        spec.loader.exec_module(module)
        return module

    def build(self, text: str, name: str = "kernel", /, **given: Any) -> Kernel:
        """The kernel of a module: tensors are given as `x="f32 n1"`, the rest is constant."""
        return build_function(getattr(self.module(text), name), **given)

    def ir(self, text: str, **given: Any) -> str:
        """The IR of `kernel`, one operation a line."""
        return print_kernel(self.build(text, **given))

    def text_of(self, fn: Callable[..., Any], /, **given: Any) -> str:
        """The IR of a function."""
        return print_kernel(build_function(fn, **given))

    def body(self, text: str, **given: Any) -> str:
        """The IR of a body; its tensors x, y, z and scalars n: i32, s: f32 are there when named."""
        return self.ir(as_kernel(text, given), **given)

    def refused(self, text: str, **given: Any) -> CompileError:
        """The error that a kernel gives."""
        return self.error(self.module(text).kernel, **given)

    def error(self, fn: Callable[..., Any], /, **given: Any) -> CompileError:
        """The error that a function gives."""
        with pytest.raises(CompileError) as caught:
            build_function(fn, **given)
        return caught.value

    def refused_body(self, text: str, **given: Any) -> CompileError:
        """The error that a body gives (see `body`)."""
        return self.refused(as_kernel(text, given), **given)


def as_kernel(text: str, given: dict[str, Any]) -> str:
    """A body as a kernel with the parameters that are given, and the scalars n and s."""
    kinds = [f"{n}: wl.{'Tensor' if is_tensor(v) else 'const'}" for n, v in given.items()]
    lines = [f"    {line}\n" if line else "\n" for line in text.strip("\n").split("\n")]
    return f"def kernel({', '.join([*kinds, 'n: wl.i32', 's: wl.f32'])}):\n{''.join(lines)}"


def is_tensor(value: Any) -> bool:
    """Whether a given value is the text of a tensor type."""
    return isinstance(value, Tensor) or (
        isinstance(value, str) and value.partition(" ")[0] in dtypes.BY_NAME
    )


def build_function(fn: Callable[..., Any], **given: Any) -> Kernel:
    """Build a function, and verify what comes out."""
    params: list[ParamSpec] = []
    constants: dict[str, Any] = {}
    for parameter in parse_signature(fn).parameters:
        value = given.get(parameter.name, parameter.default)
        if parameter.kind == "tensor" and value is not None:
            type = value if isinstance(value, Tensor) else tensor(value)
            params.append(ParamSpec(parameter.name, type))
        elif parameter.kind == "scalar":
            assert parameter.dtype is not None
            params.append(ParamSpec(parameter.name, Scalar(parameter.dtype)))
        else:
            constants[parameter.name] = value
    kernel = build(fn, params, constants)
    verify_kernel(kernel)
    return kernel


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Builds kernels from text. Reports name the file `kernel.py`."""
    monkeypatch.chdir(tmp_path)
    return Source(tmp_path)


@pytest.fixture
def tensor_type() -> Callable[..., Tensor]:
    """Makes a tensor type from a text, with further facts of its class."""
    return tensor
