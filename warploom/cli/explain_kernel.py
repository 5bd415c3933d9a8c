"""`warploom explain KERNEL`: what the compiler made of a kernel, as its example's arguments compile
it: registers by role, shared memory, accesses, synchronisation. Needs no GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from warploom.base.errors import CompileError
from warploom.base.table import aligned
from warploom.base.target import Target
from warploom.cli import kernel_name
from warploom.codegen.emitter import emit
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Effect, Op
from warploom.passes.pipeline import lower
from warploom.passes.place_roles import entry_registers
from warploom.runtime import budget, nvrtc, sass
from warploom.runtime.arrays import SIM
from warploom.runtime.compile import target_named, targets, tile_kernel


def explain(word: str, arch: str) -> tuple[dict[str, Any], list[str]]:
    """Facts and text about the kernel that a word of the command line names."""
    found = kernel_name.find(word)
    call = found.call(SIM)
    target = target_named(arch) if arch else targets.DEFAULT
    kernel = tile_kernel(call.request)
    asked = budget.asked_registers(kernel)
    lower(kernel, target)
    built, uses, missing = _assembled(kernel, target)
    ops = list(walk(kernel.body))
    data: dict[str, Any] = {
        "kernel": kernel.name,
        "target": target.arch,
        "warps": kernel.warps,
        "cluster": list(kernel.cluster),
        "arguments": [{"name": p.name, "type": str(p.type)} for p in kernel.params],
        "written": [kernel.params[i].name for i in kernel.written],
        "registers": {
            "entry": entry_registers(kernel.threads, target),
            "assembled": built.registers if built else None,
            "spilled_bytes": built.spill_bytes if built else None,
            "roles": [asdict(role) for role in budget.roles(kernel, target, asked, uses)],
        },
        "shared_bytes": kernel.shared_bytes,
        "shared_memory": [asdict(part) for part in budget.shared_memory(kernel)],
        "accesses": [_access(op) for op in ops if "vec" in op.attributes()],
        "synchronisation": [
            {"line": op.loc.line, "operation": op.OPCODE, "why": op.attributes().get("why", "")}
            for op in ops
            if Effect.SYNC in op.EFFECTS
        ],
        "operations": dict(Counter(op.OPCODE for op in ops)),
    }
    head = (
        f"{found.title} for {target.arch}: {kernel.warps} warps, {kernel.threads} threads a block"
    )
    if kernel.cluster != (1, 1, 1):
        head += f", clusters of {' x '.join(map(str, kernel.cluster))} blocks"
    lines = [head, *(f"  {a['name']}: {a['type']}" for a in data["arguments"])]
    lines += ["", *_registers(data["registers"], kernel, missing)]
    lines += ["", *_shared(data, target)]
    lines += ["", *_operations(data)]
    return data, lines


def _assembled(
    kernel: Kernel, target: Target
) -> tuple[nvrtc.Cubin | None, Mapping[str, sass.Use] | None, str]:
    """The cubin and what its roles use, or why they cannot be had here."""
    source = emit(kernel, target)
    try:
        built = nvrtc.compile_cubin(source, target)
        uses = sass.by_role(nvrtc.instructions(built.cubin), source.roles) if source.roles else None
    except CompileError as failure:
        if failure.code != "C002":
            raise
        report = failure.reports[0]
        return None, None, f"{report.message}: {report.hint}"
    return built, uses, ""


def _registers(facts: dict[str, Any], kernel: Kernel, missing: str) -> list[str]:
    """Registers a thread, as a table of the roles where there are some."""
    used = f"{facts['assembled']} used" if facts["assembled"] is not None else "not assembled"
    if not facts["roles"]:
        spilled = facts["spilled_bytes"]
        more = f", {spilled} bytes spilled" if spilled is not None else ""
        return [f"registers a thread: {used}{more}", *_note(missing)]
    rows: list[tuple[object, ...]] = [
        ("role", "warps", "threads", "registers", "", "in all", "used", "spilled")
    ]
    for role in facts["roles"]:
        warps = f"{role['replicas']} x {role['warps']}" if role["replicas"] > 1 else role["warps"]
        threads = 32 * role["warps"] * role["replicas"]
        shown = ["-" if role[key] is None else role[key] for key in ("used", "local_bytes")]
        given = "given" if role["given"] else "solved"
        total = f"{threads * role['registers']:,}"
        rows.append((role["name"], warps, threads, role["registers"], given, total, *shown))
    entry = facts["entry"]
    total = sum(32 * r["warps"] * r["replicas"] * r["registers"] for r in facts["roles"])
    pool = entry * kernel.threads
    return [
        f"registers: {entry} a thread at entry, {pool:,} in the block; the roles take {total:,}",
        *("  " + line for line in aligned(rows, "lrrrlrrr")),
        *_note(missing),
    ]


def _note(missing: str) -> list[str]:
    return [f"  ({missing})"] if missing else []


def _shared(data: dict[str, Any], target: Target) -> list[str]:
    """The plan of shared memory."""
    limit = target.shared_per_block
    if not data["shared_memory"]:
        return ["shared memory: none"]
    rows: list[tuple[object, ...]] = [("from", "bytes", "buffer", "elements", "", "line")]
    for part in data["shared_memory"]:
        count = f"{part['elements']:,}"
        name = part["name"] or "exchange"
        where = f"{part['at']:,}", f"{part['bytes']:,}"
        rows.append((*where, name, count, part["dtype"], part["line"]))
    head = f"shared memory: {data['shared_bytes']:,} bytes of {limit:,}"
    return [head, *("  " + line for line in aligned(rows, "rrlrlr"))]


def _operations(data: dict[str, Any]) -> list[str]:
    accesses = (f"{a['operation']}: {a['bytes']} bytes at a time" for a in data["accesses"])
    waits = (f"{s['operation']}: {s['why']}".rstrip(": ") for s in data["synchronisation"])
    lines = ["accesses" if data["accesses"] else "accesses: none"]
    lines += _runs(data["accesses"], accesses)
    lines += ["", "synchronisation" if data["synchronisation"] else "synchronisation: none"]
    lines += _runs(data["synchronisation"], waits)
    lines += ["", "operations"]
    lines += [f"  {n:>4}  {name}" for name, n in sorted(data["operations"].items())]
    return lines


def _runs(rows: Iterable[dict[str, Any]], texts: Iterable[str]) -> list[str]:
    """A line for each run of equal entries of one source line."""
    lines = []
    for text, same in groupby(
        f"line {r['line']:>4}  {t}" for r, t in zip(rows, texts, strict=True)
    ):
        count = len(list(same))
        lines.append(f"  {text}" + (f" ({count} times)" if count > 1 else ""))
    return lines


def _access(op: Op) -> dict[str, Any]:
    vec = op.attributes()["vec"]
    value = op.results[0] if op.results else getattr(op, "value", None)
    dtype = getattr(getattr(value, "type", None), "dtype", None)
    size = vec * dtype.bytes if dtype is not None else vec
    return {"line": op.loc.line, "operation": op.OPCODE, "vec": vec, "bytes": size}
