"""The one place where front end, passes and back ends meet: from a request to a program or a cubin.

Everything here is done without a driver. Whether a compiled variant exists already is asked on disk
here and in memory by `jit`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warploom.base import target as targets
from warploom.base.diagnostics import Report, wants_colour
from warploom.base.errors import error
from warploom.base.target import Target
from warploom.codegen.emitter import CudaSource, emit
from warploom.frontend import build as front_end
from warploom.frontend.capture import source_key_parts
from warploom.frontend.stops import Stop
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Loc, Op, Stage
from warploom.ir.ops.flagged import Take
from warploom.ir.ops.flags import Poll
from warploom.ir.printer import print_kernel
from warploom.ir.types import Scalar, Tensor
from warploom.passes.pipeline import lower
from warploom.runtime import cache, nvrtc
from warploom.runtime.packing import Layout, layout_of
from warploom.runtime.source_digest import compiler_digest
from warploom.runtime.stats import counters
from warploom.sim import program as simulator

LEVELS = ("tile", "roles", "machine", "cuda", "ptx", "sass")
ENTRY, _CUBIN, _CUDA = "entry.json", "kernel.cubin", "kernel.cu"


@dataclass(frozen=True, slots=True)
class Request:
    """What a variant is compiled from. `types`: name and IR type of each run-time parameter."""

    function: Callable[..., Any]
    name: str
    types: tuple[tuple[str, Tensor | Scalar], ...]
    constants: Mapping[str, Any]
    warps: int
    cluster: tuple[int, int, int]
    fast_math: bool
    strict: bool
    stops: tuple[Stop, ...] = ()  # of the simulator
    trace: int = 0  # events that each role notes
    watched: bool = False  # waits give up and are told of
    delays: int = -1  # seed of random delays, in what is watched

    def classes(self) -> str:
        """The classes and constants of the variant, in one line."""
        parts = [f"{name}: {type_}" for name, type_ in self.types]
        parts += [f"{name}={value!r}" for name, value in self.constants.items()]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Image:
    """A compiled variant for a GPU. `written`: indices of the parameters that it stores to;
    `dependent`: it may be launched with pdl; `together`: its blocks wait for each other; `kept`:
    what its launches hand on, as `Kept` prints it."""

    cubin: bytes
    entry: str
    threads: int
    shared_bytes: int
    written: tuple[int, ...]
    layout: Layout
    dependent: bool
    together: bool
    kept: tuple[str, ...] = ()


def waits_on_grid(kernel: Kernel) -> bool:
    """Whether blocks of a launch wait for each other."""
    return _wait_on_grid(kernel) is not None


def _wait_on_grid(kernel: Kernel) -> Op | None:
    return next((op for op in walk(kernel.body) if isinstance(op, Poll | Take)), None)


def place_of_wait(request: Request) -> Loc | None:
    """Where blocks first wait for each other in the source, for a report."""
    found = _wait_on_grid(machine_kernel(request, targets.DEFAULT))
    return None if found is None else found.loc


def tile_kernel(request: Request) -> Kernel:
    """The kernel as the front end builds it."""
    specs = [front_end.ParamSpec(name, type_) for name, type_ in request.types]
    kernel = front_end.build(
        request.function,
        specs,
        request.constants,
        warps=request.warps,
        cluster=request.cluster,
        fast_math=request.fast_math,
        stops=request.stops,
    )
    kernel.trace, kernel.watched, kernel.delays = request.trace, request.watched, request.delays
    return kernel


def machine_kernel(request: Request, target: Target) -> Kernel:
    """The kernel as both devices run it."""
    kernel = tile_kernel(request)
    lower(kernel, target)
    return kernel


def sim_program(request: Request) -> tuple[Kernel, simulator.Program]:
    """The kernel prepared for the simulator, which executes what the default target would run."""
    kernel = machine_kernel(request, targets.DEFAULT)
    counters.compiles += 1
    return kernel, simulator.prepare(kernel)


def key_fields(request: Request, target: Target) -> dict[str, str]:
    """Everything that decides the code of a variant, by name: the source key is its hash."""
    fields = {
        name: _short(text) for name, text in source_key_parts(request.function, request.constants)
    }
    fields["kernel"] = request.name
    for name, type_ in request.types:
        fields[f"argument {name}"] = str(type_)
    fields["warps"] = str(request.warps)
    fields["cluster"] = str(request.cluster)
    fields["fast_math"] = str(request.fast_math)
    fields["strict"] = str(request.strict)
    fields["trace"] = str(request.trace)
    fields["watched"] = f"{request.watched}, delays {request.delays}"
    fields["target"] = target.arch
    fields["nvrtc"] = nvrtc.installed_version()
    fields["warploom"] = compiler_digest()[:16]
    return fields


def source_key(fields: Mapping[str, str]) -> str:
    """The hash of the fields."""
    return hashlib.sha256(json.dumps(sorted(fields.items())).encode()).hexdigest()


def _short(text: str) -> str:
    """A text, or its hash where it is long: entries stay small, and differences can be named."""
    if len(text) <= 80:
        return text
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"


_disk: cache.DiskCache | None = None
_disk_lock = threading.Lock()


def disk() -> cache.DiskCache:
    """The disk cache of this process."""
    global _disk
    root = cache.folder()
    with _disk_lock:
        if _disk is None or _disk.folder != root:
            _disk = cache.DiskCache(root)
        return _disk


def gpu_image(request: Request, target: Target) -> Image:
    """The cubin of a variant, from the disk where it is there; raises CompileError."""
    fields = key_fields(request, target)
    key = source_key(fields)
    store = disk()
    found = _from_disk(store, key)
    if found is not None:
        counters.cache_hits += 1
        return found
    kernel = machine_kernel(request, target)
    source = emit(kernel, target)
    _dump(kernel.name, source)
    counters.compiles += 1
    image_key = _image_key(source, fields, target)
    held = store.load(cache.IMAGE, image_key)
    if held is None or _CUBIN not in held:
        built = nvrtc.compile_cubin(source, target, strict=request.strict and not request.watched)
        # What is put in to watch may spill; that says nothing of the kernel.
        _show(n for n in built.notes if not (request.watched and n.code == "C003"))
        held = {_CUBIN: built.cubin, _CUDA: source.text.encode()}
        store.store(cache.IMAGE, image_key, held)
    layout = layout_of(kernel)
    image = Image(
        held[_CUBIN],
        source.entry,
        source.threads,
        source.shared_bytes,
        kernel.written,
        layout,
        kernel.dependent,
        waits_on_grid(kernel),
        tuple(map(str, kernel.kept)),
    )
    meta = {k: v for k, v in asdict(image).items() if k != "cubin"}
    entry = {"image": image_key, "meta": meta, "fields": fields}
    store.store(cache.SOURCE, key, {ENTRY: json.dumps(entry).encode()})
    return image


def _dump(name: str, source: CudaSource) -> None:
    """WARPLOOM_DUMP=FOLDER keeps the CUDA text beside the IR that the pipeline leaves there."""
    if folder := os.environ.get("WARPLOOM_DUMP"):
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.cu").write_text(source.text, encoding="utf-8")


def _show(notes: Iterable[Report]) -> None:
    """Print warnings of the assembler; WARPLOOM_QUIET silences them."""
    if not os.environ.get("WARPLOOM_QUIET"):
        for note in notes:
            print(note.render(wants_colour(sys.stderr)), file=sys.stderr)


def _image_key(source: CudaSource, fields: Mapping[str, str], target: Target) -> str:
    """The second key: the text that NVRTC gets, which machine IR alone decides, and its options."""
    digest = hashlib.sha256()
    for part in (target.arch, fields["nvrtc"], fields["fast_math"], fields["strict"], source.text):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _from_disk(store: cache.DiskCache, key: str) -> Image | None:
    entry = store.load(cache.SOURCE, key)
    if entry is None:
        return None
    try:
        described = json.loads(entry[ENTRY])
        meta = described["meta"]
        held = store.load(cache.IMAGE, described["image"])
        if held is None:
            return None
        parameters = tuple(
            p if isinstance(p, str) else tuple(p) for p in meta["layout"]["parameters"]
        )
        layout = Layout(meta["layout"]["format"], parameters, tuple(meta["layout"]["maps"]))
        return Image(
            held[_CUBIN],
            meta["entry"],
            meta["threads"],
            meta["shared_bytes"],
            tuple(meta["written"]),
            layout,
            meta["dependent"],
            meta["together"],
            tuple(meta["kept"]),
        )
    except (KeyError, ValueError, TypeError):
        # Written by a version that named things differently under an equal key: cannot happen
        # unless a file was edited by hand, and then it is built again.
        return None


def target_named(arch: str) -> Target:
    """The target of a name such as sm_80; raises LaunchError H021."""
    found = targets.TARGETS.get(arch)
    if found is None:
        hint = f"targets: {', '.join(targets.TARGETS)}"
        raise error("H021", f"there is no target `{arch}`", hint=hint)
    return found


def text(request: Request, level: str, target: Target) -> str:
    """The kernel at a level of `LEVELS`, for people."""
    kernel = tile_kernel(request)
    if level == "tile":
        return print_kernel(kernel)
    if level == "roles":
        lower(kernel, target, until=Stage.ROLES)
        return print_kernel(kernel)
    lower(kernel, target)
    if level == "machine":
        return print_kernel(kernel)
    source = emit(kernel, target)
    if level == "cuda":
        return source.readable
    if level == "ptx":
        return nvrtc.compile_ptx(source, target)
    return nvrtc.listing(nvrtc.compile_cubin(source, target).cubin, source)
