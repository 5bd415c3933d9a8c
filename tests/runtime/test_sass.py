"""Which role an instruction belongs to, and what each role uses: from texts of nvdisasm, and from
kernels that are compiled here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.base.target import SM_90A
from warploom.codegen.emitter import emit
from warploom.runtime import nvrtc, sass
from warploom.runtime.compile import machine_kernel

# Two roles, a wait that the assembler moved behind both (with the line of the other role), and an
# end that both come to.
LINES = """\
k:
\t//## File "/src/k.py", line 1
        /*0000*/                   S2R R4, SR_TID.X ;
        /*0010*/               @P0 BRA `(.L_x_1) ;
\t//## File "/warploom/kernel.cu", line 7 inlined at "/src/k.py", line 5
\t//## File "/src/k.py", line 5
        /*0020*/                   STL.64 [R1], R4 ;
.L_x_3:
        /*0030*/                   LDL R4, [R1] ;
        /*0040*/               @P1 BRA `(.L_x_3) ;
        /*0050*/                   BRA `(.L_x_4) ;
.L_x_1:
\t//## File "/src/k.py", line 1
        /*0060*/                   NOP ;
\t//## File "/src/k.py", line 9
        /*0070*/                   LDG.E.128 R8, [R2] ;
        /*0080*/              @!P0 BRA `(.L_x_2) ;
.L_x_5:
        /*0090*/                   STG.E.128 [R2], R8 ;
.L_x_4:
        /*00a0*/                   EXIT ;
.L_x_2:
\t//## File "/src/k.py", line 5
        /*00b0*/                   SYNCS.PHASECHK P0, [R8] ;
        /*00c0*/                   BRA `(.L_x_5) ;
.L_x_9:
        /*00d0*/                   BRA `(.L_x_9);
"""
RANGES = """\
                                    // |   # 0123456789AB |
        /*0000*/   S2R R4, SR_TID.X ;   // |   1     ^        |
        /*0010*/   @P0 BRA `(.L_x_1) ;  // |   1     :        |
        /*0020*/   STL.64 [R1], R4 ;    // |   2  :  v        |
        /*0030*/   LDL R4, [R1] ;       // |   2  :  ^        |
        /*0040*/   @P1 BRA `(.L_x_3) ;  // |   1  :           |
        /*0050*/   BRA `(.L_x_4) ;      // |   1  :           |
        /*0060*/   NOP ;                // |   2   ::         |
        /*0070*/   LDG.E.128 R8, [R2] ; // |   6   ::    ^^^^ |
        /*0080*/   @!P0 BRA `(.L_x_2) ; // |   6   ::    :::: |
        /*0090*/   STG.E.128 [R2], R8 ; // |   6   vv    vvvv |
        /*00a0*/   EXIT ;               // |                  |
        /*00b0*/   SYNCS P0, [R8] ;     // |   6   ::    :::: |
        /*00c0*/   BRA `(.L_x_5) ;      // |   6   ::    :::: |
"""
ROLES = {
    "store": frozenset({("/src/k.py", 5)}),
    "load": frozenset({("/src/k.py", 9), ("/src/k.py", 10)}),
    "idle": frozenset(),
}


def _columns(text: str) -> str:
    """The same with all columns of registers at one place, as nvdisasm prints them."""
    rows = [line.partition("//") for line in text.splitlines()]
    return "\n".join(f"{head:40}//{tail}" for head, _, tail in rows)


def test_a_role_has_what_its_entry_dominates():
    found = sass.read(LINES, _columns(RANGES))
    names = sass.owners(found, ROLES)
    assert names == ["", "", *["store"] * 4, *["load"] * 4, "", "load", "load", ""]


def test_registers_and_local_memory_by_role():
    uses = sass.by_role(sass.read(LINES, _columns(RANGES)), ROLES)
    assert uses["store"] == sass.Use(5, 8, 4, ("/src/k.py", 5), 4)
    assert uses["load"] == sass.Use(12, 0, 0, None, 6)
    assert uses["idle"] == sass.Use()
    assert uses[""].registers == 5 and uses[""].local_bytes == 0


def test_without_roles_everything_is_the_blocks():
    found = sass.read(LINES, _columns(RANGES))
    uses = sass.by_role(found, {})
    assert set(uses) == {""} and uses[""].registers == 12 and uses[""].local_bytes == 12
    assert sass.marked(LINES, found, {}) == LINES


def test_the_listing_is_marked_where_another_role_begins():
    found = sass.read(LINES, _columns(RANGES))
    marks = [line for line in sass.marked(LINES, found, ROLES).splitlines() if "----" in line]
    assert [mark.strip("/- ") for mark in marks] == [
        "outside of the roles",
        "role store",
        "role load",
        "outside of the roles",
        "role load",
        "outside of the roles",
    ]


def test_nothing_to_read():
    assert sass.read("", "") == []
    assert sass.by_role([], ROLES)["load"] == sass.Use()


@wl.function
def doubled(t):
    return t + t


@wl.kernel
def crowded(x: wl.Tensor, y: wl.Tensor, WIDTH: wl.const):
    with wl.roles():
        with wl.role("few", warps=4, registers=216):
            wl.store(y[wl.ds(0, 128)], doubled(wl.load(x[wl.ds(0, 128)])))
        with wl.role("many", warps=4, registers=24):
            t = wl.load(x[wl.ds(0, 128 * WIDTH)])
            s = wl.sum(doubled(t), 0)
            wl.store(y[wl.ds(128, 128 * WIDTH)], t * s)


def crowd(width: int) -> Any:
    x, y = np.zeros(8192, np.float32), np.zeros(8192, np.float32)
    return crowded.launch(1).call(x, y, WIDTH=width)


def test_a_spill_names_the_role_and_the_line():
    call = crowd(40)
    source = emit(machine_kernel(call.request, SM_90A), SM_90A)
    made = nvrtc.compile_cubin(source, SM_90A)
    (note,) = [note for note in made.notes if note.code == "C003"]
    assert set(note.facts["roles"]) == {"many"} and made.spill_bytes > 0
    text = note.render()
    assert "in role `many`" in text and "role `many`: " in text and "bytes stored" in text
    lines = crowded.__wrapped__.__code__
    assert lines.co_firstlineno + 6 <= note.spans[0].line <= lines.co_firstlineno + 9


def test_a_spill_without_the_disassembler_is_still_reported(monkeypatch):
    monkeypatch.setattr(nvrtc, "_nvdisasm", lambda: None)
    source = emit(machine_kernel(crowd(40).request, SM_90A), SM_90A)
    (note,) = [n for n in nvrtc.compile_cubin(source, SM_90A).notes if n.code == "C003"]
    assert note.spans[0].line == crowded.__wrapped__.__code__.co_firstlineno + 1
    assert note.facts["roles"] == {}


def test_a_role_stays_within_what_it_was_given():
    source = emit(machine_kernel(crowd(2).request, SM_90A), SM_90A)
    uses = sass.by_role(nvrtc.instructions(nvrtc.compile_cubin(source, SM_90A).cubin), source.roles)
    assert 0 < uses["many"].registers <= 24 and 0 < uses["few"].registers <= 216
    assert uses["many"].instructions > 10 and not uses["many"].local_bytes
    text = crowd(2).text("sass")
    assert text.count("// ---- role many ----") == 1 and text.count("// ---- role few ----") == 1


@pytest.mark.parametrize("name", ["few", "many"])
def test_lines_of_a_function_that_both_call_belong_to_none(name):
    source = emit(machine_kernel(crowd(2).request, SM_90A), SM_90A)
    shared = doubled.__wrapped__.__code__.co_firstlineno + 2
    assert source.roles[name]
    assert all(line != shared for _, line in source.roles[name])
