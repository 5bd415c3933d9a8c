"""Compiling without a driver: what ptxas says becomes reports, what is missing becomes an error."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError
from warploom.base.target import SM_80, SM_90A, TARGETS
from warploom.codegen.emitter import CudaSource, emit
from warploom.ir.op import Loc
from warploom.runtime import nvrtc
from warploom.runtime.compile import machine_kernel

PLACE = Loc("/src/kernel.py", 8)
COPY = """\
extern "C" __global__ void __launch_bounds__(128) copy(float* y, const float* x) {
#line 9 "/src/kernel.py"
  y[threadIdx.x] = x[threadIdx.x];
}
"""


def source(text: str, entry: str = "copy", **more) -> CudaSource:
    return CudaSource(text, entry, 128, 0, loc=PLACE, **more)


def spilling() -> CudaSource:
    """200 values alive at once in 64 registers."""
    return source("""\
extern "C" __global__ void __launch_bounds__(1024) spill(float* x) {
  float a[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) a[i] = x[i * 32 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i) x[i * 17 % 200 * 32 + threadIdx.x] = a[i] * a[i * 7 % 200];
}
""")


@pytest.mark.parametrize("arch", TARGETS)
def test_a_cubin_for_each_target(arch):
    made = nvrtc.compile_cubin(source(COPY), TARGETS[arch])
    assert made.cubin[:4] == b"\x7fELF"
    assert 0 < made.registers <= 32 and made.spill_bytes == 0 and made.notes == ()
    assert f".target {arch}" in made.ptx


def test_a_small_kernel_compiles_quickly():
    nvrtc.compile_cubin(source(COPY), SM_90A)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        nvrtc.compile_cubin(source(COPY), SM_90A)
        times.append(time.perf_counter() - start)
    assert min(times) <= 0.3  # 0.05 on an idle machine


def test_source_lines_reach_the_ptx():
    ptx = nvrtc.compile_ptx(source(COPY), SM_90A)
    assert '"/src/kernel.py"' in ptx


def test_a_cubin_does_not_depend_on_the_folder(tmp_path, monkeypatch):
    first = nvrtc.compile_cubin(source(COPY), SM_90A).cubin
    monkeypatch.chdir(tmp_path)
    assert nvrtc.compile_cubin(source(COPY), SM_90A).cubin == first


def test_nothing_is_contracted_unless_fast_math():
    text = (
        'extern "C" __global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; x[4] = x[5] / x[6]; }'
    )
    exact = nvrtc.compile_ptx(source(text, "k"), SM_90A)
    fast = nvrtc.compile_ptx(source(text, "k", fast_math=True), SM_90A)
    assert "fma.rn" not in exact and "div.rn.f32" in exact and ".ftz" not in exact
    assert "fma.rn.ftz" in fast and "div.approx" in fast


def test_a_spill_is_a_warning_with_a_line():
    made = nvrtc.compile_cubin(spilling(), SM_90A)
    (note,) = made.notes
    assert made.spill_bytes > 0 and note.facts["bytes"] == made.spill_bytes
    assert (note.code, note.severity, note.spans[0].line) == ("C003", "warning", 8)


@wl.kernel
def greedy(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    """One role holds two tiles of 64 registers a thread and has 40; the other one needs few."""
    with wl.roles():
        with wl.role("small", warps=4, registers=24):
            wl.store(y[0, wl.ds(0, 128)], wl.zeros((128,), wl.f32))
        with wl.role("hold", warps=4, registers=40):
            a = wl.load(x[0, wl.ds(0, 64), wl.ds(0, 128)])
            b = wl.load(x[1, wl.ds(0, 64), wl.ds(0, 128)])
            for _ in wl.range(n):
                a, b = wl.fma(a, b, a), wl.fma(b, b, a)
            wl.store(y[1, wl.ds(0, 128)], wl.sum(a, 0) + wl.sum(b, 0))


@pytest.mark.skipif(not nvrtc.can_disassemble(), reason="roles are told apart in the SASS")
def test_a_spill_is_reported_by_role():
    x, y = np.zeros((2, 64, 128), np.float32), np.zeros((2, 128), np.float32)
    lowered = machine_kernel(greedy.launch(1).call(x, y, 3).request, SM_90A)
    (note,) = nvrtc.compile_cubin(emit(lowered, SM_90A), SM_90A).notes
    spilled = note.facts["roles"]
    assert spilled["hold"] > 1000 > 100 > spilled.get("small", 0)
    assert note.spans[0].role == "hold" and note.spans[0].file == __file__
    assert any(line.startswith("role `hold`: ") for line in note.notes)


def test_a_spill_is_an_error_where_strict():
    with pytest.raises(CompileError, match=r"error\[C003\].*spills \d+ bytes"):
        nvrtc.compile_cubin(spilling(), SM_90A, strict=True)


def test_a_note_of_ptxas_is_a_warning(golden):
    text = (
        'extern "C" __global__ void k(float* x) {\n'
        '  asm volatile("setmaxnreg.inc.sync.aligned.u32 200;"); x[0] = 1;\n}'
    )
    (note,) = nvrtc.compile_cubin(source(text, "k"), SM_90A).notes
    assert (note.code, note.facts["ptxas"]) == ("C004", "C7508")
    golden(note.render())


def test_an_error_of_the_compiler_names_the_python_line(golden):
    broken = source(COPY.replace("x[threadIdx.x];", "z;"))
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_cubin(broken, SM_90A)
    assert caught.value.code == "C001" and caught.value.reports[0].spans[0].line == 9
    golden(str(caught.value))


def test_an_error_of_the_assembler_names_the_python_line(golden):
    text = COPY.replace("y[threadIdx.x] =", 'asm volatile("no.such;"); y[threadIdx.x] =')
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_cubin(source(text), SM_90A)
    assert {r.spans[0].line for r in caught.value.reports} == {9}
    golden(str(caught.value))


def test_sass():
    sass = nvrtc.disassemble(nvrtc.compile_cubin(source(COPY), SM_80).cubin)
    assert "copy" in sass and "EXIT" in sass


def test_sass_of_something_else():
    with pytest.raises(CompileError, match="nvdisasm refused"):
        nvrtc.disassemble(b"no cubin")


def test_sass_without_the_tool(monkeypatch, golden):
    monkeypatch.setattr(nvrtc, "_nvdisasm", lambda: None)
    with pytest.raises(CompileError) as caught:
        nvrtc.disassemble(b"")
    golden(str(caught.value))


def test_without_the_bindings(monkeypatch, golden):
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_cubin(source(COPY), SM_90A)
    golden(str(caught.value))


def test_without_the_library(monkeypatch):
    class Bindings:
        @staticmethod
        def nvrtcVersion():
            raise RuntimeError("libnvrtc.so.13 not found")

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", Bindings)
    with pytest.raises(CompileError, match=r"C002.*cannot be loaded[\s\S]*libnvrtc.so.13"):
        nvrtc.compile_ptx(source(COPY), SM_90A)


def test_the_package_is_the_library():
    _, major, minor = importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion()
    assert nvrtc.installed_version().startswith(f"{major}.{minor}")


def test_importing_loads_no_cuda():
    code = "import sys, warploom.runtime.nvrtc as n; n.installed_version(); "
    code += "print([m for m in sys.modules if m.split('.')[0] == 'cuda'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
