"""CUDA C++ text to cubin, PTX and SASS. Needs no driver and no GPU.

With `driver.py` the only module that imports `cuda`, and that at the first compilation. NVRTC is
called through cuda.bindings: one compilation gives cubin and PTX, and cuda.core would cost another
0.2 s of import. Knows neither kernels nor the cache.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import error, error_of, report
from warploom.base.target import Target
from warploom.codegen.emitter import CudaSource
from warploom.runtime import sass

# An absolute name: NVRTC puts the current directory in front of others, and it lands in the cubin.
_FILE = "/warploom/kernel.cu"
_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_EXACT = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
_EXTRA = "pip install 'warploom[cu13]' (driver 580 or later) or 'warploom[cu12]' (older drivers)"

_ADVICE = {
    "C7508": "setmaxnreg is ignored, so the register budgets of the roles do not hold",
    "C7510": "wgmma instructions run one after the other",
    "C7514": "wgmma instructions run one after the other",
    "C7517": "the assembler put in waits for wgmma that the kernel does not have",
    "C7519": "the assembler put in waits for wgmma that the kernel does not have",
    "C7602": "a wgmma needs more registers than the block can give a thread",
}


@dataclass(frozen=True, slots=True)
class Cubin:
    """A compiled kernel and what ptxas said about it.

    `registers` a thread, `spill_bytes` stored and loaded again, `stack_bytes` of local memory a
    thread, `shared` bytes of static shared memory. `notes` are warnings with a source line: spills,
    and remarks that mean lost speed or changed meaning.
    """

    cubin: bytes
    ptx: str
    log: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared: int
    notes: tuple[Report, ...]


def compile_cubin(
    source: CudaSource, target: Target, *, strict: bool = False, line_info: bool = True
) -> Cubin:
    """Compile one kernel for a target; raises CompileError (C001, C002).

    `strict`: spills and notes are errors (C003, C004) instead of `notes` of the result.
    """
    bindings = _bindings()
    program = _Program(bindings, source.text)
    ok = program.compile(_options(source, f"sm_{target.arch[3:]}", line_info))
    log = program.log()
    if not ok:
        raise error_of(_refusals(bindings, source, target, log))
    cubin = program.bytes_of("CUBIN")
    ptx = program.bytes_of("PTX").rstrip(b"\0").decode()
    registers = _number(r"Used (\d+) registers", log)
    spills = _number(r"(\d+) bytes spill stores", log) + _number(r"(\d+) bytes spill loads", log)
    stack = _number(r"(\d+) bytes stack frame", log)
    notes = _notes(source, log, cubin, registers, spills)
    if strict and notes:
        raise error_of([_as_error(n) for n in notes])
    shared = _number(r"(\d+) bytes smem", log)
    return Cubin(cubin, ptx, log, registers, spills, stack, shared, notes)


def compile_ptx(source: CudaSource, target: Target) -> str:
    """The PTX of one kernel; raises CompileError (C001, C002)."""
    bindings = _bindings()
    program = _Program(bindings, source.text)
    if not program.compile(_options(source, f"compute_{target.arch[3:]}", True)):
        raise error_of(_refusals(bindings, source, target, program.log()))
    return program.bytes_of("PTX").rstrip(b"\0").decode()


def listing(cubin: bytes, source: CudaSource) -> str:
    """The SASS of a cubin for people, the roles marked; raises CompileError (C002)."""
    text = disassemble(cubin)
    return sass.marked(text, instructions(cubin), source.roles) if source.roles else text


def instructions(cubin: bytes) -> list[sass.Instruction]:
    """The instructions of a cubin; raises CompileError (C002) where nvdisasm is not installed."""
    return sass.read(disassemble(cubin, *sass.LINES), disassemble(cubin, *sass.RANGES))


def can_disassemble() -> bool:
    """Whether the wheel nvidia-cuda-nvdisasm is installed."""
    return _nvdisasm() is not None


def disassemble(cubin: bytes, *options: str) -> str:
    """The SASS of a cubin, through the wheel nvidia-cuda-nvdisasm; raises CompileError (C002)."""
    tool = _nvdisasm()
    if tool is None:
        raise error(
            "C002",
            "the disassembler nvdisasm is not installed",
            hint="pip install nvidia-cuda-nvdisasm",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [str(tool), *(options or sass.PLAIN), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise error("C001", "nvdisasm refused a cubin", notes=done.stderr.strip().splitlines()[:5])
    return done.stdout


def installed_version() -> str:
    """Version of the installed NVRTC package, or "none". Imports nothing of CUDA."""
    for package in _PACKAGES:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "none"


# ---- NVRTC ---------------------------------------------------------------------------------------


def _bindings() -> Any:
    """cuda.bindings.nvrtc with its library loaded."""
    try:
        bindings = importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as missing:
        raise error(
            "C002", "the CUDA compiler NVRTC is not installed", notes=[str(missing)], hint=_EXTRA
        ) from None
    try:
        bindings.nvrtcVersion()
    except Exception as failure:
        # The loader's exceptions have no common base: whatever it says, the library is not usable.
        notes = [line for line in str(failure).splitlines() if line.strip()][:3]
        raise error(
            "C002", "the library of NVRTC cannot be loaded", notes=notes, hint=_EXTRA
        ) from None
    return bindings


class _Program:
    """One NVRTC program; released when it goes."""

    def __init__(self, bindings: Any, text: str) -> None:
        self._bindings = bindings
        status, handle = bindings.nvrtcCreateProgram(text.encode(), _FILE.encode(), 0, [], [])
        self._check(status)
        self._handle = handle

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            self._bindings.nvrtcDestroyProgram(handle)

    def compile(self, options: tuple[str, ...]) -> bool:
        """Whether NVRTC accepted the text."""
        encoded = [o.encode() for o in options]
        (status,) = self._bindings.nvrtcCompileProgram(self._handle, len(encoded), encoded)
        refused = self._bindings.nvrtcResult.NVRTC_ERROR_COMPILATION
        if status != refused:
            self._check(status)
        return status != refused

    def log(self) -> str:
        """What compiler and assembler wrote."""
        return self.bytes_of("ProgramLog").rstrip(b"\0 \n").decode(errors="replace")

    def bytes_of(self, what: str) -> bytes:
        """One product: ProgramLog, CUBIN or PTX."""
        status, size = getattr(self._bindings, f"nvrtcGet{what}Size")(self._handle)
        self._check(status)
        held = bytearray(size)
        (status,) = getattr(self._bindings, f"nvrtcGet{what}")(self._handle, held)
        self._check(status)
        return bytes(held)

    def _check(self, status: Any) -> None:
        if int(status) != 0:
            raise error("C001", f"NVRTC failed: {status.name}")


def _options(source: CudaSource, arch: str, line_info: bool) -> tuple[str, ...]:
    numerics = ("--use_fast_math",) if source.fast_math else _EXACT
    assembler = ("--ptxas-options=-v",) if arch.startswith("sm_") else ()
    lines = ("--generate-line-info",) if line_info else ()
    return (f"--gpu-architecture={arch}", "--std=c++17", *numerics, *lines, *assembler)


# ---- what the compiler says ----------------------------------------------------------------------


def _number(pattern: str, log: str) -> int:
    found = re.search(pattern, log)
    return int(found.group(1)) if found else 0


def _notes(
    source: CudaSource, log: str, cubin: bytes, registers: int, spills: int
) -> tuple[Report, ...]:
    """Spills as warnings where they begin, remarks of ptxas as warnings at the kernel."""
    out = []
    if spills:
        out.append(_spilled(source, cubin, registers, spills))
    for found in re.finditer(r"\((C7\d\d\d)\) (.*)", log):
        note, text = found.groups()
        meaning = _ADVICE.get(note, "the assembler made a remark")
        out.append(
            report(
                "C004",
                f"{meaning} (ptxas {note})",
                source.loc,
                notes=[text.strip()],
                severity="warning",
                ptxas=note,
            )
        )
    return tuple(out)


def _spilled(source: CudaSource, cubin: bytes, registers: int, spills: int) -> Report:
    """The report of spills; with nvdisasm it names the roles, and the first line that spills."""
    notes = [f"{registers} registers a thread at entry, {source.threads} threads a block"]
    uses = sass.by_role(instructions(cubin), source.roles) if can_disassemble() else {}
    spilling = {name: use for name, use in uses.items() if use.local_bytes}
    for name, use in spilling.items():
        who = f"role `{name}`" if name else "outside of the roles" if source.roles else "the block"
        notes.append(f"{who}: {use.stored} bytes stored, {use.loaded} bytes loaded again")
    worst, use = max(spilling.items(), key=lambda item: item[1].local_bytes, default=("", None))
    place = Span.at(source.loc)
    if use is not None and use.place is not None and use.place[0] != _FILE:
        place = Span(*use.place, role=worst)
    return report(
        "C003",
        f"kernel `{source.entry}` spills {spills} bytes of registers to local memory",
        place,
        notes=notes,
        hint="use smaller tiles, more warps, or more registers for the role",
        severity="warning",
        bytes=spills,
        roles={name: use.local_bytes for name, use in spilling.items()},
    )


def _as_error(note: Report) -> Report:
    return Report(note.code, note.message, note.spans, note.notes, note.hint, facts=note.facts)


def _refusals(bindings: Any, source: CudaSource, target: Target, log: str) -> list[Report]:
    """Errors of the compiler (they name Python lines) or of the assembler (they name PTX lines)."""
    out = []
    for file, line, text in re.findall(
        r"^(\S.*?)\((\d+)\): (?:catastrophic )?error: (.*)", log, re.M
    ):
        span = Span(file, int(line)) if file != _FILE else Span.at(source.loc)
        out.append(_refusal(source, text, span))
    if not out:
        places = _ptx_places(bindings, source, target)
        for line, text in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", log):
            span = places(int(line)) or Span.at(source.loc)
            out.append(_refusal(source, text, span))
    if not out:
        first = log.strip().splitlines()[:1]
        out.append(_refusal(source, first[0] if first else "no message", Span.at(source.loc)))
    return out


def _refusal(source: CudaSource, text: str, span: Span) -> Report:
    return report(
        "C001",
        f"the CUDA compiler refused the text of `{source.entry}`: {text.strip()}",
        span,
        hint="this is a fault of Warploom; `warploom show KERNEL --level cuda` prints the text",
    )


def _ptx_places(bindings: Any, source: CudaSource, target: Target) -> Any:
    """A function from a line of the PTX to the source place that it comes from, or None."""
    program = _Program(bindings, source.text)
    if not program.compile(_options(source, f"compute_{target.arch[3:]}", True)):
        return lambda line: None
    lines = program.bytes_of("PTX").rstrip(b"\0").decode().splitlines()
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "(.*?)"', "\n".join(lines), re.M))

    def place(number: int) -> Span | None:
        for line in reversed(lines[:number]):
            found = re.match(r"\s*\.loc\s+(\d+) (\d+) ", line)
            # Helpers of the prelude have no source line: go on to what called them.
            if found and files.get(found.group(1), _FILE) != _FILE:
                return Span(files[found.group(1)], int(found.group(2)))
        return None

    return place


def _nvdisasm() -> Path | None:
    """The program of the wheel nvidia-cuda-nvdisasm, or None."""
    name = "nvdisasm.exe" if sys.platform == "win32" else "nvdisasm"
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(folder).glob(f"*/bin/{name}")):
            return found
    return None
