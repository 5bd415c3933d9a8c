"""Random programs with roles: what is drawn, what runs, and what is told of one that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warploom.cli.__main__ import main
from warploom.testing.fuzz import chain, product, runner, sources, tiles
from warploom.testing.fuzz.chain import Chain, Link, Sink
from warploom.testing.fuzz.chain_text import text_of


def of(family: str, first: int, count: int) -> list[int]:
    """The first seeds of a family."""
    found = (n for n in range(first, first + 40 * count) if runner.family_of(n) == family)
    return [next(found) for _ in range(count)]


def failed(seeds: list[int], device: str = "sim") -> list[str]:
    """What is wrong with the kernels of these seeds."""
    programs = [(seed, runner.program_of(seed)) for seed in seeds]
    found = [(program, runner.tried(program, device, seed)) for seed, program in programs]
    return [f"{why}\n{program.text()}" for program, why in found if why]


@pytest.mark.parametrize("family", ["chain", "product"])
@pytest.mark.parametrize("part", range(2))
def test_random_programs(family: str, part: int):
    assert not failed(of(family, 100_000 + 1000 * part, 6))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200_000, 200_500, 50))
def test_many_random_programs(first: int):
    found = runner.run(first, 50, levels=(2,), seconds=50)
    assert found.total and not found.failures, found.failures[0].why + found.failures[0].text


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_a_gpu_gives_the_same(first: int):
    found = runner.run(first, 10, device="gpu:0")
    assert not found.failures, found.failures[0].why + found.failures[0].text


def test_a_seed_gives_the_same_program_each_time():
    for seed in range(30):
        one, other = runner.program_of(seed), runner.program_of(seed)
        assert one.text() == other.text() and one.level == runner.level_of(seed)
    assert len({runner.program_of(seed).text() for seed in range(30)}) == 30


def test_everything_is_drawn():
    chains = [chain.drawn(seed) for seed in range(600)]
    links = [link for c in chains for link in c.links]
    sinks = [sink for link in links for sink in link.sinks]
    assert {c.fill for c in chains} == set(chain.FILLS)
    assert {c.dtype for c in chains} == set(chain.DTYPES)
    assert {c.form for c in chains} == set(chain.FORMS)
    assert {k.stages for k in links} == {1, 2, 3, 4}
    assert {s.take for s in sinks} == set(chain.TAKES)
    assert {s.writes for s in sinks} == {"", "store", "engine"}
    assert {len(c.links) for c in chains} == {1, 2, 3}
    for told in (
        [k.one and not k.turns for k in links],
        [k.turns for k in links],
        [k.channel for k in links],
        [c.shared for c in chains],
        [c.tiles == 0 or c.steps == 0 for c in chains],
        [s.replicas == 3 for s in sinks],
        [s.behind == 2 for s in sinks],
    ):
        assert sum(told) >= 5
    matrices = [product.drawn(seed) for seed in range(300)]
    counts = Counter((m.dtype, m.turned, m.out) for m in matrices)
    assert len(counts) == 3 * len(product.DTYPES) + 6
    for name in ("one", "turns", "registers", "rectified", "behind"):
        assert sum(bool(getattr(m, name)) for m in matrices) >= 10
    assert sum(m.k == 0 for m in matrices) and sum(m.cluster == 2 for m in matrices)


def test_kernels_of_each_level_are_found_by_their_seeds():
    found = runner.run(7, 0)
    assert found.total == 0 and not found.failures
    only = runner.run(0, 3, levels=(2,))
    assert only.ran == Counter(chain=2, product=1)
    assert runner.run(0, 5, seconds=0).total == 0


def test_several_processes_run_the_same_kernels():
    found = runner.run(3, 6, processes=2)
    assert not found.failures and not found.lost
    assert found.ran == Counter(runner.family_of(seed) for seed in range(3, 9))
    assert runner.run(0, 4, seconds=0, processes=2).total == 0


def test_a_kernel_behind_one_that_broke_the_gpu_is_not_run(monkeypatch: pytest.MonkeyPatch, capsys):
    class Breaks:
        level, family = 1, "tiles"

        def why(self, device: str, seed: int) -> str:
            broken.append(seed)
            return "the GPU is gone"

        def text(self) -> str:
            return "its text"

    broken: list[int] = []
    monkeypatch.setattr(runner, "program_of", lambda seed: Breaks())
    monkeypatch.setattr(runner, "_usable", lambda device: not broken)
    monkeypatch.setattr("warploom.cli.fuzz.places.parse", lambda words: "gpu:0")
    assert main(["fuzz", "--seed", "5", "--count", "4", "--device", "gpu"]) == 1
    assert broken == [5]
    out = capsys.readouterr().out
    assert "1 kernels (1 tiles) on gpu:0: 1 difference from NumPy" in out
    assert "3 were not run: a kernel before had broken the GPU's context" in out


# ---- what fails --------------------------------------------------------------------------------

LARGE = Chain(
    links=(
        Link(stages=2, relay_behind=1, sinks=(Sink(replicas=2),)),
        Link(stages=2, one=True, turns=True, sinks=(Sink(replicas=2, behind=1, writes="engine"),)),
    ),
    fill="copy",
    tiles=2,
    steps=2,
    blocks=2,
    dtype="f32",
)


def broken(made: Any) -> str:
    """The text of a chain whose first relay computes something else than NumPy does."""
    return text_of(made).replace("tile * 5 + 1)", "tile * 5 + 2)")


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> sources.Source:
    """A large program that fails."""
    monkeypatch.setitem(sources.FAMILIES, "chain", (lambda seed: replace(LARGE, seed=seed), broken))
    return sources.Source("chain", LARGE)


def test_a_failure_is_made_small(wrong: sources.Source):
    why = runner.tried(wrong, "sim", 0)
    assert "`y` differs in" in why
    least, told = runner.shrunk(wrong, why, "sim", 0)
    assert isinstance(least, sources.Source) and "`y` differs in" in told
    made = least.made
    # Two pipes, or nobody would hand on; one item; nothing else.
    assert len(made.links) == 2 and (made.tiles, made.steps) in ((1, 1), (2, 0))
    assert made.blocks == 1 and made.fill == "threads" and made.dtype == "i32"
    assert [len(link.sinks) for link in made.links] == [0, 1]
    assert all(link.stages == 1 and not link.one for link in made.links)
    (sink,) = made.links[1].sinks
    assert sink == Sink()


def test_a_failure_is_a_file_that_runs(wrong: sources.Source, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(runner, "_TRIES", 2)
    seed = of("chain", 0, 1)[0]
    words = ["fuzz", "--seed", str(seed), "--count", "1"]
    report = tmp_path / "found.json"
    assert main([*words, "--keep", str(tmp_path), "--json", str(report)]) == 1
    out = capsys.readouterr().out
    assert f"seed {seed}, chain: `y` differs in" in out
    assert out.endswith("1 kernels (1 chain) on sim: 1 difference from NumPy\n")
    (failure,) = json.loads(report.read_text())["failures"]
    path = tmp_path / f"chain_{seed}.py"
    assert path.read_text() == failure["text"] and failure["text"] in out
    command = [sys.executable, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "y False" in printed.stdout


def test_an_exception_is_a_failure_and_not_the_end(monkeypatch: pytest.MonkeyPatch):
    def raises(made: Any) -> str:
        return text_of(made).replace("LAUNCHER =", "raise KeyError('here')\nLAUNCHER =")

    monkeypatch.setitem(sources.FAMILIES, "chain", (chain.drawn, raises))
    found = runner.run(of("chain", 0, 1)[0], 3)
    assert found.total == 3
    assert next(f.why for f in found.failures if f.family == "chain") == "KeyError: 'here'"


def test_a_tile_kernel_is_a_file_that_runs_too(tmp_path: Path):
    program = tiles.Tiles(6)
    path = tmp_path / "kernel.py"
    path.write_text(program.text())
    command = [sys.executable, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert printed.stdout == "equal\n"


def test_a_tile_kernel_that_differs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiles.tile_reference, "run", lambda kernel, grid, args: None)
    assert "differs in" in tiles.Tiles(6).why("sim", 0)


@pytest.mark.slow
def test_smaller_programs_are_programs():
    """Whatever is left out of one that runs, the rest runs as well."""
    for family, seeds in (("chain", of("chain", 0, 3)), ("product", of("product", 0, 1))):
        for seed in seeds:
            program = sources.Source.of(family, seed)
            for less in program.smaller():
                assert not runner.tried(less, "sim", seed), less.text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--count", "-1"], "count from 0"),
        (["--seed", "-1"], "count from 0"),
        (["--device", "tpu"], "no device `tpu`"),
    ],
)
def test_what_cannot_be_asked_for(words, text, capsys):
    assert main(["fuzz", *words]) == 2
    assert text in capsys.readouterr().err


def test_the_verdict(capsys):
    assert main(["fuzz", "--seed", "0", "--count", "4", "--level", "1"]) == 0
    assert capsys.readouterr().out == "4 kernels (4 tiles) on sim: no difference from NumPy\n"
    assert main(["fuzz", "--count", "2", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1 and data["ran"] == {"chain": 1, "tiles": 1} and not data["failures"]
