"""The verbs about kernels: run, show, explain, cache, doctor, and how KERNEL is found."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warploom.cli import doctor, explain
from warploom.runtime import driver, nvrtc


def test_run_tells_what_was_written(file: Path, say: Any) -> None:
    code, out, err = say("run", "weave.py:double")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith("double@default: grid 2 × 1 × 1 on sim, ")
    assert second == "  y: f32 20, from 0 to 38, mean 19"


def test_run_gives_json(file: Path, say: Any) -> None:
    code, out, _ = say("run", "weave.py:double", "--json", "-")
    data = json.loads(out)
    assert code == 0
    assert (data["kernel"], data["grid"], data["device"]) == ("double", [2, 1, 1], "sim")
    assert data["written"][0]["max"] == 38


def test_a_checked_run_answers_with_its_exit_code(file: Path, say: Any) -> None:
    assert say("run", "weave.py:double", "--checked", "--seeds", "2")[:2] == (
        0,
        "double: clean (2 seeds)\n",
    )
    code, out, _ = say("run", "weave.py:double@unwritten", "--checked")
    assert code == 1
    assert out.startswith("error[M002]")
    assert "weave.py:8" in out
    code, out, _ = say("run", "weave.py:double@unwritten", "--checked", "--json", "-")
    data = json.loads(out)
    assert (code, data["verdict"], data["example"]) == (1, "findings", "unwritten")
    assert data["findings"][0]["code"] == "M002"


@pytest.mark.parametrize("level", ["tile", "roles", "machine", "cuda", "ptx", "sass"])
def test_show_prints_every_level(file: Path, say: Any, level: str) -> None:
    code, out, err = say("show", "weave.py:double", "--level", level)
    assert (code, err) == (0, "")
    marks = {"tile": "tile.load", "roles": "kernel @double", "machine": "global_memory.load"}
    marks |= {"cuda": "__global__", "ptx": ".entry double", "sass": ".text.double"}
    assert marks[level] in out


def test_show_for_another_architecture(file: Path, say: Any) -> None:
    assert ".target sm_80" in say("show", "weave.py:double", "--level", "ptx", "--arch", "sm_80")[1]


def test_trace_tells_what_roles_did(file: Path, say: Any) -> None:
    (file.parent / "roles.py").write_text(ROLES)
    code, out, err = say("trace", "roles.py:passed", "--device", "sim")
    assert (code, err) == (0, "")
    assert out.startswith("passed, clocks in operations\n\nrole ")
    table = [line.split() for line in out.splitlines()]
    assert [row[2:4] for row in table if row[-1:] == ["roles.py:9"]].count(["load", "0"]) == 2
    data = json.loads(say("trace", "roles.py:passed", "--json", "-", "--events", "3")[1])
    assert len(data["full"]) == 3 and data["rows"][0]["event"] == "begin"
    code, _, err = say("trace", "roles.py:passed", "--blocks", "0")
    assert code == 2 and "blocks=0" in err


WRONG = {
    "no file": "absent.py:double",
    "no kernel in the file": "weave.py:triple",
    "not a kernel": "weave.py:number",
    "which kernel": "weave.py",
    "no module": "absent.module:double",
    "no example": "weave.py:plain",
    "no such example": "weave.py:double@ragged",
    "nonsense": "2+2",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_kernel_that_is_not_found(file: Path, say: Any, golden: Any, name: str) -> None:
    code, out, err = say("show", WRONG[name])
    assert (code, out) == (2, "")
    golden(err.replace(f"{file.parent}/", ""), name)


BROKEN = {
    "leaves at import": ("leaving.py", "import sys\n\nsys.exit(0)\n"),
    "raises at import": ("raising.py", "import warploom as wl\n\nlimit = 1 // 0\n"),
    "no python": ("half.py", "def half(:\n"),
    "another suffix": ("weave.txt", "no code"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_imported(file: Path, say: Any, golden: Any, name: str) -> None:
    other, text = BROKEN[name]
    (file.parent / other).write_text(text)
    code, out, err = say("run", f"{file.parent / other}:half")
    assert (code, out) == (2, "")
    golden(err.replace(f"{file.parent}/", ""), name)


JSON = {
    "run": ("run", "weave.py:double"),
    "checked": ("run", "weave.py:double", "--checked"),
    "explain": ("explain", "tile.reduce"),
    "doctor": ("doctor",),
    "cache": ("cache", "list"),
    "models": ("models", "list"),
    "bench": ("bench", "compile"),
}


@pytest.mark.parametrize("name", JSON)
def test_json_that_cannot_be_written(file: Path, say: Any, name: str) -> None:
    # A file where a folder should be refuses everybody, the superuser too.
    target = file / "out.json"
    code, _, err = say(*JSON[name], "--json", str(target))
    assert code == 2
    assert f"error[H021]: cannot write {target}" in err


def test_a_device_word_is_refused_before_anything_is_measured(file: Path, say: Any) -> None:
    code, out, err = say("bench", "compile", "--device", "tpu")
    assert (code, out) == (2, "")
    assert "there is no device `tpu`" in err and "cold/" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_in_a_circle_are_no_file(file: Path, say: Any) -> None:
    circle = file.with_name("circle.py")
    circle.symlink_to(circle.name)
    code, out, err = say("run", str(circle))
    assert (code, out) == (2, "") and "there is no file" in err and "help:" in err


def test_a_module_is_found_on_the_path(file: Path, say: Any, monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "weave", raising=False)
    assert say("run", "weave:double")[0] == 0
    assert say("show", "warploom.kernels.elementwise.kernel:add")[0] == 0


def test_the_cache_lists_explains_and_clears(file: Path, say: Any) -> None:
    assert say("cache", "list")[1] == ""
    assert say("cache", "explain", "weave.py:double") == (
        1,
        "double@default: not in the cache, and no other variant of it is\n",
        "",
    )
    assert compile_example(file) == 1
    assert say("cache", "explain", "weave.py:double")[1].startswith("double@default: in the cache")
    rows = json.loads(say("cache", "list", "--json", "-")[1])["entries"]
    assert [row["kind"] for row in rows] == ["source", "image"]
    assert rows[0]["kernel"] == "double"
    facts = json.loads(say("cache", "info", "--json", "-")[1])
    assert (facts["entries"], facts["writable"]) == (2, True)
    file.write_text(file.read_text().replace("* 2", "* 3"))
    code, out, _ = say("cache", "explain", "weave.py:double")
    assert code == 1
    assert "the nearest entry is" in out
    assert "source weave.double" in out
    assert "argument" not in out
    assert say("cache", "clear")[1] == "removed 2 entries\n"
    assert say("cache", "list")[1] == ""


def compile_example(file: Path) -> int:
    """Put the example's cubin into the cache; returns the number of compilations."""
    from warploom.base import target
    from warploom.cli.kernel_name import find
    from warploom.runtime import compile as compiler
    from warploom.runtime.stats import counters

    call = find(f"{file}:double").call("sim")
    before = counters.compiles
    compiler.gpu_image(call.kernel.request(call.arguments, 4), target.DEFAULT)
    return counters.compiles - before


def test_explain_a_code(say: Any) -> None:
    code, out, _ = say("explain", "H006")
    assert code == 0
    assert out.startswith("H006: output overlaps itself\n(host and launch; wl.LaunchError)\n")
    assert json.loads(say("explain", "H006", "--json", "-")[1])["title"] == "output overlaps itself"


@pytest.mark.parametrize("word", ["F023", "T004", "L010", "P012", "B010", "M002", "D001", "C007"])
def test_explain_a_code_of_each_kind(say: Any, golden: Any, monkeypatch: Any, word: str) -> None:
    monkeypatch.setattr(explain, "_ERRORS", Path("/nowhere/errors.md"))  # as it is when installed
    code, out, err = say("explain", word)
    assert (code, err) == (0, "")
    golden(out, f"explain {word}")


def test_explain_a_code_shows_a_report_where_the_pages_are(say: Any) -> None:
    code, out, _ = say("explain", "H006")
    assert code == 0
    assert "\nan example:\n\nerror[H006]: " in out and "### " not in out and "```" not in out


def test_explain_an_operation_shows_declaration_and_rules_together(say: Any) -> None:
    code, out, _ = say("explain", "sync.barrier")
    assert code == 0
    for part in ("class Barrier(Op)", "simulator (warploom/sim/rules/sync.py", "CUDA (warploom/"):
        assert part in out
    data = json.loads(say("explain", "global_memory.load", "--json", "-")[1])
    assert data["sources"]["simulator"]["place"].startswith("warploom/sim/rules/")
    assert "machine" in data["stages"]


def test_explain_a_kernel(file: Path, say: Any) -> None:
    code, out, _ = say("explain", "weave.py:double")
    assert code == 0
    assert "line    8  global_memory.load: " in out
    data = json.loads(say("explain", "weave.py:double", "--json", "-")[1])
    assert data["written"] == ["y"]
    assert {a["line"] for a in data["accesses"]} == {8}


ROLES = """
import warploom as wl

@wl.kernel
def passed(x: wl.Tensor, y: wl.Tensor, N: wl.const = 64):
    ring = wl.pipe(2, slots=[wl.shared((N, N), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, x.shape[0], N):
                with ring.put() as held:
                    wl.copy_async(x[wl.ds(i, N), wl.ds(0, N)], held)
        with wl.role("use", warps=4, replicas=2, registers=200) as r:
            for i in wl.range(0, x.shape[0], N):
                with ring.get() as held:
                    wl.store(y[r, wl.ds(i, N), wl.ds(0, N)], held.load())

@passed.example
def small(make):
    x, y = make.randn((128, 64), wl.bf16), make.empty((2, 128, 64), wl.bf16)
    return passed.launch(1).call(x, y)
"""


def test_explain_a_kernel_shows_what_its_roles_and_buffers_take(file: Path, say: Any) -> None:
    (file.parent / "roles.py").write_text(ROLES)
    code, out, err = say("explain", "roles.py:passed")
    assert (code, err) == (0, "")
    table = [line.split() for line in out.splitlines()]
    assert "registers: 168 a thread at entry, 64,512 in the block; the roles take 56,320" in out
    head = ["role", "warps", "threads", "registers", "in", "all", "used", "spilled"]
    first = table[table.index(head) + 1]
    assert first[:8] == ["use", "2", "x", "4", "256", "200", "given", "51,200"]
    assert ["idle", "3", "96", "40", "solved", "3,840", "0", "0"] in table
    assert "shared memory: 16,416 bytes of 232,448" in out
    assert ["0", "16,384", "ring_0", "8,192", "bf16", "6"] in table
    data = json.loads(say("explain", "roles.py:passed", "--json", "-")[1])
    roles = {role["name"]: role for role in data["registers"]["roles"]}
    assert 0 < roles["load"]["used"] <= 40 < roles["use"]["registers"]
    assert not any(role["local_bytes"] for role in roles.values())
    assert [part["bytes"] for part in data["shared_memory"]] == [16384, 16, 16]


def test_explain_a_kernel_where_no_compiler_is_installed(
    file: Path, say: Any, monkeypatch: Any
) -> None:
    (file.parent / "roles.py").write_text(ROLES)
    monkeypatch.setattr(nvrtc, "_nvdisasm", lambda: None)
    code, out, _ = say("explain", "roles.py:passed")
    assert code == 0
    assert "(the disassembler nvdisasm is not installed: pip install nvidia-cuda-nvdisasm)" in out
    assert "given" in out
    code, out, _ = say("explain", "weave.py:double")
    assert code == 0 and "used, 0 bytes spilled" in out


@pytest.mark.parametrize("word", ["wl.exp", "exp", "wl.exp()"])
def test_explain_a_function_of_the_language(say: Any, word: str) -> None:
    code, out, _ = say("explain", word)
    assert code == 0
    assert out.startswith("wl.exp(t)\n\ne to the power of each element.")
    assert "Bound: 2 ulp" in out


@pytest.mark.parametrize("word", ["R999", "index.lan", "shuffle_xor", ""])
def test_explain_what_does_not_exist(say: Any, golden: Any, word: str) -> None:
    code, out, err = say("explain", *([word] if word else []))
    assert (code, out) == (2, "")
    golden(err, word or "nothing")


def test_coverage_has_no_hole(say: Any) -> None:
    code, out, _ = say("explain", "--coverage", "--json", "-")
    data = json.loads(out)
    assert data["holes"] == []
    assert code == 0
    assert len(data["operations"]) > 40


def test_a_hole_is_an_answer(monkeypatch: pytest.MonkeyPatch, say: Any) -> None:
    monkeypatch.setattr(explain.emits, "rule_of", lambda op: None)
    code, out, _ = say("explain", "--coverage")
    assert code == 1
    assert "hole: sync.barrier: no cuda" in out


def test_doctor_on_this_machine(file: Path, say: Any) -> None:
    code, out, err = say("doctor")
    assert (code, err) == (0, "")
    for word in ("python ", "base ", "cu13 ", "nvrtc ", "gpu", "simulator  ready", "cache "):
        assert word in out
    facts = json.loads(say("doctor", "--json", "-")[1])
    assert facts["packages"]["base"]["numpy"]
    assert facts["cache"]["writable"]


def pretend(monkeypatch: pytest.MonkeyPatch, cuda: tuple[int, int], nvrtc: str) -> None:
    """A machine with a GPU, a driver for a CUDA version, and an NVRTC."""
    device = driver.DeviceFacts("NVIDIA H200", (9, 0), 132, 150 * 10**9, 232448)
    replaced = {"problem": None, "driver_version": cuda, "device_count": 1}
    for name, value in replaced.items():
        monkeypatch.setattr(doctor.driver, name, lambda value=value: value)
    monkeypatch.setattr(doctor.driver, "facts", lambda index: device)
    monkeypatch.setattr(doctor, "nvrtc", SimpleNamespace(installed_version=lambda: nvrtc))


@pytest.mark.parametrize(
    ("cuda", "nvrtc", "code", "word"),
    [
        ((13, 0), "13.0.88", 0, "gpu:0      NVIDIA H200, 150.0 GB, compiles for sm_90a"),
        ((13, 0), "none", 0, "advice: pip install 'warploom[cu13]' fits this driver"),
        ((12, 4), "none", 0, "advice: pip install 'warploom[cu12]' fits this driver"),
        ((12, 9), "13.0.88", 1, "fault: NVRTC 13.0.88 is newer than the driver (CUDA 12.9)"),
        ((13, 1), "13.0.88", 0, "driver     CUDA 13.1"),
    ],
)
def test_doctor_compares_driver_and_compiler(
    file: Path,
    say: Any,
    monkeypatch: pytest.MonkeyPatch,
    cuda: tuple[int, int],
    nvrtc: str,
    code: int,
    word: str,
) -> None:
    pretend(monkeypatch, cuda, nvrtc)
    answer = say("doctor")
    assert answer[0] == code
    assert word in answer[1]
