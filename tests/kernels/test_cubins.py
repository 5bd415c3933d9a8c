"""Every example of the library and of examples/ compiles to a cubin without a driver.

No spill and no note of ptxas on any target; the instructions of the PTX are those that the machine
operations declare; registers and shared memory equal tests/golden/cubins.json, which
`pytest --update-golden` rewrites entry by entry.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import kernels
from warploom.base.errors import CompileError
from warploom.base.target import SM_80, SM_89, SM_90A, Target
from warploom.codegen.declared import counted, declared
from warploom.codegen.emitter import CudaSource, emit
from warploom.ir.kernel import walk
from warploom.passes.place_roles import IDLE
from warploom.runtime import budget, nvrtc, sass
from warploom.runtime.compile import machine_kernel
from warploom.runtime.examples import Make
from warploom.runtime.jit import Kernel
from warploom.runtime.memory import element_type

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "cubins.json"


def _library() -> dict[str, Any]:
    found = {}
    for info in pkgutil.walk_packages(kernels.__path__, "warploom.kernels."):
        if info.name.endswith(".kernel"):
            family = info.name.split(".")[-2]
            found[family] = importlib.import_module(info.name)
    return found


def _modules() -> dict[str, Any]:
    found = _library()
    folder = ROOT / "examples"
    for path in sorted([*folder.glob("*.py"), *folder.glob("gemm/*.py")]):
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[path.stem] = module
    return found


@cache
def examples() -> dict[str, tuple[Kernel, str]]:
    """Every (kernel, example) by its name in the golden."""
    found = {}
    for family, module in _modules().items():
        for name, kernel in sorted(vars(module).items()):
            if isinstance(kernel, Kernel):
                for example in kernel.examples:
                    found[f"{family}.{name}@{example}"] = (kernel, example)
    return found


class Blank(Make):
    """Arrays of the right dtype and shape, without data: only their classes matter here."""

    def _blank(self, shape: Any, dtype: Any = np.float32) -> np.ndarray:
        return np.zeros(shape, element_type(dtype).numpy)

    randn = zeros = ones = empty = _blank

    def uniform(self, shape: Any, low: float, high: float, dtype: Any = np.float32) -> Any:
        return self._blank(shape, dtype)

    def integers(self, low: int, high: int, shape: Any, dtype: Any = np.int32) -> Any:
        return self._blank(shape, dtype)


def build(name: str, target: Target) -> tuple[Any, nvrtc.Cubin, CudaSource]:
    """The machine kernel of an example, its cubin and the text between them."""
    kernel, example = examples()[name]
    lowered = machine_kernel(kernel.examples[example](Blank()).request, target)
    source = emit(lowered, target)
    return lowered, nvrtc.compile_cubin(source, target), source


def loads_ahead(cubin: bytes) -> list[str]:
    """Loads of global memory in front of the wait for the launch before (griddepcontrol.wait)."""
    text = nvrtc.disassemble(cubin, *sass.PLAIN)
    ahead, waits, _ = text.partition("ACQBULK")
    assert waits
    return [line.strip() for line in ahead.splitlines() if re.search(r"\bLDG", line)]


def registered(name: str, figures: dict[str, Any], update: bool) -> None:
    """Compare with the golden entry, or rewrite it; several workers share the file."""
    with (GOLDEN.parent / "cubins.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        held = json.loads(file.read() or "{}")
        if not update:
            assert held.get(name) == figures, f"{name}: pytest --update-golden accepts it"
            return
        held = {key: held[key] for key in held if key in examples()} | {name: figures}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(dict(sorted(held.items())), indent=1) + "\n")


@pytest.mark.parametrize("name", examples())
def test_cubin(name: str, request: pytest.FixtureRequest) -> None:
    """On sm_90a: no note, no spill, declared instructions, the registers of the golden."""
    lowered, made, source = build(name, SM_90A)
    assert not made.notes, "\n".join(note.render() for note in made.notes)
    assert counted(made.ptx) == declared(lowered)
    if lowered.dependent:
        assert not loads_ahead(made.cubin), "read before the launch before has ended"
    figures: dict[str, Any] = {"registers": made.registers, "shared": lowered.shared_bytes}
    if source.roles:
        uses = sass.by_role(nvrtc.instructions(made.cubin), source.roles)
        figures["roles"] = roles = {name: uses[name].registers for name in source.roles}
        assert all(uses[name].instructions > 10 for name in roles if name != IDLE)
        budgets = budget.roles(lowered, SM_90A, {}, uses)
        assert all(roles[role.name] <= role.registers for role in budgets)
    registered(name, figures, bool(request.config.getoption("--update-golden")))


@pytest.mark.parametrize("target", [SM_80, SM_89], ids=str)
@pytest.mark.parametrize("name", examples())
def test_other_architectures(name: str, target: Target) -> None:
    """Level 1 compiles for sm_80 and later, without a spill; roles and copies are refused there."""
    whole, _, _ = build(name, SM_90A)
    if not all(target.has(op.SINCE) for op in walk(whole.body)):
        with pytest.raises(CompileError, match=f"needs? sm_90.*compiled for {target}"):
            build(name, target)
        return
    lowered, made, _ = build(name, target)
    assert not made.notes, "\n".join(note.render() for note in made.notes)
    wanted = declared(lowered)
    del wanted["elect"]  # the one thread is told by its number there
    assert counted(made.ptx) == wanted


def test_the_golden_names_what_exists() -> None:
    """A kernel that is gone leaves no figures behind."""
    assert set(json.loads(GOLDEN.read_text())) == set(examples())


def test_every_kernel_of_the_library_has_an_example() -> None:
    """A kernel without one would not be compiled here."""
    bare = [
        f"{family}.{name}"
        for family, module in _library().items()
        for name, kernel in vars(module).items()
        if isinstance(kernel, Kernel) and not kernel.examples
    ]
    assert bare == []


EMIT = """
import hashlib
from warploom.base.target import SM_90A
from warploom.codegen.emitter import emit
from warploom.kernels.attention.kernel import decode_merge
from warploom.runtime.compile import machine_kernel
kernel = machine_kernel(decode_merge.example_call().request, SM_90A)
print(hashlib.sha256(emit(kernel, SM_90A).text.encode()).hexdigest())
"""


def test_the_text_is_the_same_in_every_process() -> None:
    """Neither hash seeds nor addresses reach the CUDA text, whose hash is a key of the cache."""
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", EMIT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
