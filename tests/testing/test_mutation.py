"""The mutator: its edits, what becomes of mutants, the report; and the score over pipelines."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from tests.hazards.test_hazards import FIXED, kernel_of
from tests.kernels.test_examples import STEPS, load
from warploom.cli.__main__ import main
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import REGISTRY, Stage
from warploom.ir.ops import mbarrier, remote, sync, wgmma
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
from warploom.kernels.gemm.kernel import gemm
from warploom.testing.mutation import edits, library, run
from warploom.testing.mutation.edits import EDITS, LEFT_OUT
from warploom.testing.mutation.mutants import altered, altered_around, mutants_of
from warploom.testing.mutation.report import text
from warploom.testing.mutation.score import CAUGHT, EQUIVALENT, SURVIVED, UNREACHED, Score, scored
from warploom.testing.mutation.trials import Trial
from warploom.testing.mutation.weaker import Less, Weaker

HAZARDS = Path(__file__).parents[1] / "hazards"


def trial(name: str) -> Trial:
    """A launch of the library's list, by name."""
    (found,) = (i for i in library.instances() if i.name == name)
    return Trial(name, found.call())


def dense(steps: int) -> Trial:
    """One tile of a product in so many steps."""
    a, b = np.ones((64, 16 * steps), np.float16), np.ones((16 * steps, 16), np.float16)
    tiles = {"BM": 64, "BN": 16, "BK": 16, "EN": 16, "STAGES": 2, "MATH": 1, "B_T": False}
    out = np.zeros((64, 16), np.float32)
    return Trial(f"{steps} steps", gemm.launch(1).call(a, b, out, **tiles))


def verdicts(score: Score, *states: str) -> list[tuple[str, str]]:
    return [(v.mutant.edit.name, v.mutant.text) for v in score.of(*states)]


# ---- edits -------------------------------------------------------------------------------------


def test_every_synchronisation_of_the_machine_has_an_edit_or_a_reason():
    ops = [op for op in REGISTRY.values() if Stage.MACHINE in op.STAGES]
    bare = [op for op in ops if edits.synchronises(op) and not edits.covers(op)]
    assert [op.OPCODE for op in bare if not edits.left_out(op)] == []
    reasons = {op.OPCODE for op in bare} | {op.FAMILY for op in bare}
    assert set(LEFT_OUT) <= reasons


def test_every_edit_has_a_name_of_its_own():
    names = [edit.name for edit in EDITS]
    assert len(names) == len(set(names))


def hazards(*names: str) -> list[Kernel]:
    """The machine IR of right kernels of the hazard suite."""
    paths = [p for p in FIXED if any(name in p.as_posix() for name in names)]
    return [Trial(p.stem, kernel_of(p).example_call()).kernel for p in paths]


@pytest.fixture(scope="module")
def kernels() -> list[Kernel]:
    """Kernels that have every operation at which an edit can be made, between them."""
    names = ("pingpong/5", "cluster/5", "split/3x2")
    more = hazards("named/one_way", "flags/one_buffer", "cluster/local_empties", "exit/store")
    more += hazards("flags/answers_first", "flagged/one_buffer")
    return [*(trial(name).kernel for name in names), *more]


def test_an_edit_changes_a_copy_that_stays_a_kernel(kernels: list[Kernel]):
    made: set[str] = set()
    for kernel in kernels:
        before = print_kernel(kernel)
        for mutant in mutants_of(kernel):
            copy = mutant.of(kernel)
            verify_kernel(copy)
            assert print_kernel(copy) != before, mutant
            assert mutant.text and mutant.span.line > 0
            made.add(mutant.edit.name)
        assert print_kernel(kernel) == before
    assert made == {edit.name for edit in EDITS}


def mutant(kernel: Kernel, edit: str, kind: type, number: int = 0):
    """The mutant of an edit at operation `number` of a kind."""
    ops = list(walk(kernel.body))
    found = [m for m in mutants_of(kernel) if m.edit.name == edit and type(ops[m.number]) is kind]
    return found[number]


def test_what_an_edit_does_to_numbers_and_order(kernels: list[Kernel]):
    kernel = kernels[0]
    told = {m.edit.name: m.text for m in mutants_of(kernel)}
    assert told["bytes-half"] == "1,280 bytes instead of 2,560" or "1,280" in told["bytes-half"]
    assert told["bytes-16"] == "bytes 2,544 instead of 2,560"
    assert told["next-slot"] == "the next of 2 slots"
    assert told["flip-parity"] == "parity xor 1"
    first = mutant(kernel, "count+1", mbarrier.Init)
    assert first.text == "arrivals 2 instead of 1"
    made = [op for op in walk(first.of(kernel).body) if isinstance(op, mbarrier.Init)]
    assert made[0].arrivals == 2


def test_an_early_release_moves_ahead_of_what_it_hands_over(kernels: list[Kernel]):
    kernel = kernels[0]
    early = mutant(kernel, "early-release", mbarrier.Arrive)
    assert early.text == "ahead of `wgmma.wait_group`"

    def order(k: Kernel) -> list[type]:
        kinds = (wgmma.WaitGroup, wgmma.Commit, mbarrier.Arrive)
        return [type(op) for op in walk(k.body) if isinstance(op, kinds)]

    was, now = order(kernel), order(early.of(kernel))
    assert was[:3] == [wgmma.Commit, wgmma.WaitGroup, mbarrier.Arrive]
    assert now[:3] == [wgmma.Commit, mbarrier.Arrive, wgmma.WaitGroup]


def test_two_edits_of_one_kernel(kernels: list[Kernel]):
    kernel = kernels[0]
    waits = [m for m in mutants_of(kernel) if m.edit.name == "drop-wait"]
    both = altered(kernel, waits[0], waits[1])
    count = len(list(walk(kernel.body)))
    assert len(list(walk(both.body))) == count - 2


# ---- what becomes of mutants -------------------------------------------------------------------


def test_a_pipeline_that_is_gone_round_shows_all():
    score = scored([trial("one/5")])
    assert (score.caught, score.of(SURVIVED, UNREACHED)) == (score.counted, [])
    assert score.counted > 55 and score.share == 1.0
    assert {"U101", "U104", "R101", "M012", "M013", "M015", "M016", "D001"} <= {
        v.code for v in score.of(CAUGHT)
    }


def test_an_equivalent_mutant_names_the_other_edge():
    score = scored([trial("one/5")])
    same = score.of(EQUIVALENT)
    assert {v.mutant.edit.name for v in same} == {"drop-wait", "in-flight+1"}
    for verdict in same:
        assert verdict.mutant.text.startswith(("without `wgmma.wait_group`", "pending 1"))
        assert verdict.other is not None
        assert verdict.other.label == "without `wgmma.drain`"
        assert verdict.shown == "M014"


@pytest.fixture(scope="module")
def reduced() -> Trial:
    return trial("all-reduce/3")


def weakened(trial: Trial, kind: type, less: Less, *mutants) -> set[str]:
    """Codes of what is found where the operations of a kind do less."""
    numbers = [i for i, op in enumerate(walk(trial.kernel.body)) if isinstance(op, kind)]
    kernel, ops = altered_around(trial.kernel, numbers, *mutants)
    return {f.code for f in trial.run(kernel, first=False, weaker=Weaker(ops, less)).findings}


def test_a_wait_that_keeps_to_itself_what_it_learns(reduced: Trial):
    """The rounds go on as they were, and their data race."""
    assert weakened(reduced, mbarrier.Wait, Less.HEARS) == {"R101", "M031"}
    dropped = mutant(reduced.kernel, "drop-wait", mbarrier.Wait).of(reduced.kernel)
    assert "U101" in {f.code for f in reduced.run(dropped, first=False).findings}


def test_sends_that_tell_of_the_first_warp_only(reduced: Trial):
    """Each warp's store says what it has read itself; so the barrier before is not needed."""
    meeting = mutant(reduced.kernel, "drop-barrier", sync.Barrier)
    assert "all warps, then one thread" in meeting.text
    assert not reduced.run(meeting.of(reduced.kernel)).code
    assert weakened(reduced, remote.SendGroups, Less.TELLS) == set()
    assert weakened(reduced, remote.SendGroups, Less.TELLS, meeting) == {"R101"}


def test_what_stands_in_for_a_barrier_of_a_collective(reduced: Trial):
    score = scored([reduced])
    (same,) = score.of(EQUIVALENT)
    assert "all warps, then one thread" in same.mutant.text
    assert same.other is not None
    assert same.other.label == "where `remote.send_groups` tells of the first warp only"
    assert score.of(SURVIVED) == []


def test_a_wait_that_does_not_reach_the_peers_is_found(reduced: Trial):
    """What they send comes at the scope of the cluster."""
    narrow = mutant(reduced.kernel, "narrow-scope", mbarrier.Wait)
    assert narrow.text == "scope block instead of cluster"
    assert reduced.run(narrow.of(reduced.kernel)).code == "R101"


def test_slots_that_nobody_reads_are_only_renamed():
    made = trial("exchange-beside/25")
    ops = list(walk(made.kernel.body))
    others = [m for m in mutants_of(made.kernel) if m.edit.name == "next-slot"]
    told = {edits.renamed(made.kernel, "next-slot", ops[m.number]) for m in others}
    assert told == {"slots of `ring` are only renamed: nothing else touches them", ""}
    full = trial("one/5").kernel
    assert all(
        edits.renamed(full, "next-slot", list(walk(full.body))[m.number]) == ""
        for m in mutants_of(full)
        if m.edit.name == "next-slot"
    )


def test_making_a_barrier_that_nobody_comes_to_is_not_counted():
    """A single exchange uses one of the two slots of its ring."""
    made = trial("histogram@default")
    numbers = [m.number for m in mutants_of(made.kernel) if m.edit.name == "count+1"]
    assert [n in made.reached for n in numbers] == [True, False]


def test_a_launch_too_short_lets_mutants_through():
    """Two steps in a ring of two: no slot is filled twice, and no tile follows the first."""
    short, long = dense(2), dense(5)
    assert short.kernel is long.kernel
    score = scored([short])
    survived = verdicts(score, SURVIVED)
    assert ("drop-wait", "without `mbarrier.wait`") in survived
    assert score.share < 0.8 < scored([short, long]).share


def test_what_is_not_executed_is_not_counted():
    """A single step with nothing held behind: the release inside the loop is never reached."""
    score = scored([trial("one/1")])
    assert ("drop-arrive", "without `mbarrier.arrive`") in verdicts(score, UNREACHED)
    reached = [v for v in score.verdicts if v.status != UNREACHED]
    assert score.counted == len(reached) - len(score.of(EQUIVALENT))


@wl.kernel
def polls(x: wl.Tensor, y: wl.Tensor):
    """Counts until a copy has come."""
    tile, full = wl.shared((64, 64), x.dtype), wl.barrier(1)
    with wl.one_thread():
        full.expect(64 * 64 * 4)
        wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile, full)
    tries = 0
    while not full.test(0):
        tries = tries + 1
    wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.load())


def test_a_mutant_without_an_end_is_stopped():
    x = np.ones((64, 64), np.float32)
    score = scored([Trial("polls", polls.launch(1).call(x, np.zeros_like(x)))])
    assert not score.alarms
    (endless,) = [v for v in score.verdicts if v.mutant.edit.name == "bytes-double"]
    assert (endless.status, endless.code) == (CAUGHT, "steps")


def test_a_fault_of_the_simulator_is_no_verdict(monkeypatch: pytest.MonkeyPatch):
    made = trial("one/5")
    chosen = [m for m in mutants_of(made.kernel) if m.edit.name == "drop-expect"]
    broken = [replace(m, edit=replace(m.edit, change=_spoil)) for m in chosen]
    monkeypatch.setattr("warploom.testing.mutation.score.mutants_of", lambda kernel: broken)
    (verdict,) = scored([made]).verdicts
    assert verdict.status == SURVIVED
    assert verdict.note.startswith("the simulator failed in one/5: ")


def _spoil(place: edits.Place) -> str:
    place.op.barrier = place.kernel.params[0]
    return "spoilt"


def test_a_kernel_with_findings_has_no_mutants():
    score = scored([Trial("x", kernel_of(HAZARDS / "race/late_wait_broken.py").example_call())])
    assert score.verdicts == []
    assert {report.code for _, report in score.alarms} >= {"R101"}


def test_no_time_means_no_verdict():
    score = scored([trial("one/5")], until=time.monotonic() - 1)
    assert score.verdicts == []
    assert score.left > 60


def test_a_sample_is_drawn_by_its_seed():
    one, two, other = (scored([trial("one/5")], sample=(5, seed)) for seed in (1, 1, 2))
    assert len(one.verdicts) == 5
    assert verdicts(one, CAUGHT, SURVIVED) == verdicts(two, CAUGHT, SURVIVED)
    numbers = [[v.mutant.number for v in s.verdicts] for s in (one, other)]
    assert numbers[0] != numbers[1]


def test_every_run_meets_the_arguments_as_they_were():
    """Counters too: what a mutant leaves there would stop the next one."""
    made = trial("split/3x2")
    scored([made], sample=(6, 0))
    outcome = made.run(made.kernel, first=False)
    assert (outcome.code, outcome.failure, outcome.same) == ("", "", True)


@wl.kernel
def met(x: wl.Tensor, y: wl.Tensor):
    here = wl.program_id(0)
    wl.store(y[here], wl.load(x[here]) + 1)
    wl.grid_sync()
    wl.store(x[here], wl.load(y[wl.num_programs(0) - 1 - here]))


def test_what_launches_keep_for_each_other_is_not_touched():
    """Launches hand on the counter of wl.grid_sync: mutants have one of their own."""
    x, y = np.arange(3, dtype=np.int32), np.zeros(3, np.int32)
    launcher = met.launch(3, cooperative=True)
    score = scored([Trial("met", launcher.call(x, y))])
    assert not score.alarms
    assert score.caught > 3
    x[:] = range(3)
    launcher(x, y)
    assert x.tolist() == [3, 2, 1]


# ---- the report --------------------------------------------------------------------------------


def test_text(golden):
    score = scored([trial("one/2")])
    golden(text(score))
    assert "\033[" in text(score, ansi=True)


def test_a_line_for_each_kernel():
    score = scored([trial("one/2"), trial("top-k/4")], sample=(8, 3))
    found = score.by_kernel()
    assert set(found) == {"gemm", "top_k"}
    assert all(sum(states.values()) == 8 for states in found.values())
    assert sum(states[CAUGHT] for states in found.values()) == score.caught
    (line,) = (each for each in text(score).splitlines() if each.startswith("top_k "))
    assert f"{found['top_k'][CAUGHT]} of " in line


def test_json():
    score = scored([trial("one/2")])
    data = json.loads(json.dumps(score.json()))
    assert data["caught"] + data["survived"] == data["counted"]
    assert {"edit", "span", "status", "caught_by", "other_edge"} <= set(data["mutants"][0])
    assert {m["status"] for m in data["mutants"]} <= {CAUGHT, SURVIVED, EQUIVALENT, UNREACHED}
    same = next(m for m in data["mutants"] if m["status"] == EQUIVALENT)
    assert same["other_edge"]["line"] > 0


RING = f"{HAZARDS / 'race/late_wait_fixed.py'}:ring"


def test_command_line(capsys: pytest.CaptureFixture[str]):
    assert main(["check", RING, "--mutate"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "28 of 28 mutants caught (100.0%) in 1 launch"
    assert main(["check", RING, "--mutate", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["verdict"], data["score"], len(data["mutants"])) == (
        *(1, "clean", 1.0),
        28,
    )


def test_a_test_without_teeth_is_told(capsys: pytest.CaptureFixture[str]):
    example = str(STEPS[3])
    assert main(["check", example, "--mutate"]) == 1
    out = capsys.readouterr().out
    assert "survived:\n" in out and "help: a launch finds more" in out
    assert main(["check", example, "--mutate", "--score", "0.5"]) == 0


def test_a_kernel_with_findings_fails_under_mutation_too(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(HAZARDS / "race/late_wait_broken.py"), "--mutate"]) == 1
    assert "found without any edit\nrace[R101]" in capsys.readouterr().out


def test_a_kernel_without_actors_has_no_mutants(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "warploom.kernels.norm.kernel", "--mutate"]) == 0
    out = capsys.readouterr().out
    assert "no mutants: blocks of layer_norm, rms_norm have nothing that runs at" in out
    assert "0 of 0 mutants caught" in out


@pytest.mark.parametrize(
    "words",
    [
        ["--mutate"],
        ["x.py:k", "--library"],
        ["x.py:k", "--families", "gemm"],
        ["--library", "--families", "gem"],
        ["--library", "--mutate", "--families", "norms"],
        [RING, "--mutate", "--schedule", "late"],
        [RING, "--mutate", "--score", "1.5"],
        [RING, "--mutate", "--seeds", "0"],
    ],
)
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["check", *words]) == 2
    assert "H021" in capsys.readouterr().err


def test_the_library_checked(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "--library", "--families", "norm,rope", "--seeds", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "rms_norm@_row: clean (1 schedules)" in out or len(out) >= 4
    assert all(": clean (1 schedules)" in line for line in out)


# ---- one schedule decides ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one/5", "pingpong/3", "cluster/3"])
def test_mutants_get_one_verdict_on_every_schedule(name: str):
    """What is silent on one schedule is silent on all; what is found, is found on all."""
    (found,) = (i for i in library.instances() if i.name == name)
    trials = [Trial(name, found.call(), first_seed=seed) for seed in range(6)]
    for made in mutants_of(trials[0].kernel)[::3]:
        codes = [t.run(made.of(t.kernel)).code for t in trials]
        assert len({bool(code) for code in codes}) == 1, (made, codes)


# ---- the score ---------------------------------------------------------------------------------

LEAST = 0.98


@pytest.mark.slow
def test_a_sample_of_the_library():
    """A few mutants of each pipelined kernel; all of them are `soak`."""
    score = run.library_score(sample=(12, 7), seconds=120.0)
    assert not score.alarms
    assert score.counted > 100
    assert score.share >= LEAST, text(score)


def test_families_are_shared_by_processes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "families", lambda: ["histogram", "norm"])
    told: list[str] = []
    found = run.selftest_score(sample=(5, 1), tell=told.append, processes=2)
    (name,) = found["kernels"]
    assert name == "histogram"
    assert sum(found["kernels"][name].values()) == 5
    assert found["counted"] == found["kernels"][name]["caught"] + len(found["survived"])
    assert found["sampled"][name]["tried"] == 5 < found["sampled"][name]["of"]
    assert {line.split(":")[0] for line in told} == {"histogram", "norm"}


@pytest.mark.soak
def test_the_library():
    result = run.selftest_score()
    assert (result["false_alarms"], result["not_tried"]) == (0, 0)
    assert result["counted"] > 700
    assert result["caught"] >= LEAST * result["counted"], result["survived"]


def _longer(path: Path) -> list[Trial]:
    """The GEMM of a step of the examples on small tiles, around the stages of its ring."""
    kernel = next(v for v in vars(load(path)).values() if isinstance(v, wl.Kernel))
    cluster = (2, 1, 1) if path.stem in ("v5_cluster", "v6_pingpong") else None
    halves = ("v3_two_consumers", "v4_persistent", "v5_cluster")
    rows = 128 if path.stem in halves else 64
    tiles = {"BM": rows, "BN": 16, "BK": 16, "STAGES": 2}
    persistent = path.stem in ("v4_persistent", "v5_cluster", "v6_pingpong")
    grid = (cluster[0] if cluster else 1) if persistent else (1, 1)
    trials = []
    for steps in library.steps_around(2)[:-1]:
        a, b = np.ones((5 * rows, 16 * steps), np.float16), np.ones((16, 16 * steps), np.float16)
        c = np.zeros((5 * rows if persistent else rows, 16), np.float16)
        given = (a if persistent else a[:rows].copy(), b, c)
        call = kernel.launch(grid, cluster=cluster).call(*given, **tiles)
        trials.append(Trial(f"{path.stem}/{steps}", call))
    return trials


@pytest.mark.slow
@pytest.mark.parametrize("path", STEPS[1:], ids=lambda p: p.stem)
def test_the_steps_of_the_gemm(path: Path):
    """Those of one tile a block hand back what nobody fills again, and the ring of step 1 lets all
    warps meet behind a product: both are order that these launches do not need."""
    score = scored(_longer(path), sample=(40, 3))
    assert not score.alarms
    assert {v.mutant.edit.name for v in score.of(SURVIVED)} <= {
        *("drop-barrier", "drop-arrive", "early-release", "next-stage"),
    }
    assert score.share >= 0.9, text(score)


def test_the_list_has_every_kernel_of_the_library():
    """Those of which no launch is written by their examples."""
    listed = {i.call().kernel.name for i in library.instances() if i.altered}
    assert listed == {kernel.name for _, kernel in library.library_kernels()}
    names = [i.name for i in library.instances("norm")]
    assert names == ["rms_norm@default", "layer_norm@default"]


def test_what_runs_alone_has_no_mutants():
    score = run.library_score("norm")
    assert (score.plain, score.counted) == (["rms_norm", "layer_norm"], 0)
