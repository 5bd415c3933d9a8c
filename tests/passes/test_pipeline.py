"""The whole way down: order of the passes, what the environment asks for, who broke the IR."""

import re
from pathlib import Path

import pytest

from tests.ir.kernels import Body, tensor
from warploom.base.dtypes import f32
from warploom.base.target import SM_90A, Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Stage
from warploom.ir.ops import registers, tile
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import VerifyError, verify_kernel
from warploom.passes import pipeline
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.assign_storage import assign_storage
from warploom.passes.insert_role_barriers import insert_role_barriers
from warploom.passes.insert_trace import insert_trace
from warploom.passes.insert_watch import insert_watch
from warploom.passes.lower_tiles import lower_tiles
from warploom.passes.pipeline import PIPELINE, lower
from warploom.passes.plan_shared_memory import plan_shared_memory


def transpose_and_add() -> Kernel:
    b = Body(tensor(), tensor(name="y"))
    t = b.load(b.params[0], (0, 32), (0, 32))
    both = b.binary("add", t, b.emit(tile.Permute(value=t, order=(1, 0))))
    b.store(b.params[1], both, (0, 32), (0, 32))
    return b.kernel()


def test_each_pass_takes_text_and_gives_text() -> None:
    """Printing and parsing between any two passes changes nothing."""
    direct, by_text = transpose_and_add(), transpose_and_add()
    for _, step in PIPELINE:
        step(direct, SM_90A)
        by_text = parse_kernel(print_kernel(by_text))
        step(by_text, SM_90A)
        verify_kernel(by_text)
        assert print_kernel(by_text) == print_kernel(direct), step.__name__


def test_stages_never_go_back() -> None:
    stages = [stage.value for stage, _ in PIPELINE]
    assert stages == sorted(stages)


def test_the_order_that_passes_need() -> None:
    steps = [step for _, step in PIPELINE]
    order = [assign_layouts, lower_tiles, plan_shared_memory, insert_role_barriers, assign_storage]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)
    # What these put in changes nothing else of a kernel.
    assert steps[-3:] == [assign_storage, insert_trace, insert_watch]


def test_lowering_may_stop_at_a_stage() -> None:
    kernel = transpose_and_add()
    lower(kernel, SM_90A, Stage.TILE)
    assert kernel.stage is Stage.TILE
    assert "tile.convert" in print_kernel(kernel)
    lower(kernel, SM_90A)
    assert kernel.stage is Stage.MACHINE


def test_the_pass_that_broke_the_ir_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_something(kernel: Kernel, target: Target) -> None:
        kernel.body.ops.reverse()

    monkeypatch.setenv("WARPLOOM_VERIFY", "1")
    broken = (*PIPELINE[:3], (Stage.TILE, break_something), *PIPELINE[3:])
    monkeypatch.setattr(pipeline, "PIPELINE", broken)
    with pytest.raises(VerifyError, match=r"after break_something: .*\nkernel @k"):
        lower(transpose_and_add(), SM_90A)


@pytest.mark.parametrize("setting", ["", "0"])
def test_without_the_variable_the_end_is_verified(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    def break_something(kernel: Kernel, target: Target) -> None:
        kernel.body.ops.pop()

    monkeypatch.setenv("WARPLOOM_VERIFY", setting)
    lower(transpose_and_add(), SM_90A)
    monkeypatch.setattr(pipeline, "PIPELINE", (*PIPELINE, (Stage.MACHINE, break_something)))
    with pytest.raises(VerifyError, match="after the pipeline"):
        lower(transpose_and_add(), SM_90A)


def test_texts_after_each_pass_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPLOOM_DUMP", str(tmp_path / "texts"))
    lower(transpose_and_add(), SM_90A)
    names = sorted(path.name for path in (tmp_path / "texts").iterdir())
    assert names == [f"k.{n:02d}_{step.__name__}.ir" for n, (_, step) in enumerate(PIPELINE)]
    last = (tmp_path / "texts" / names[-1]).read_text(encoding="utf-8")
    assert parse_kernel(last).stage is Stage.MACHINE


def test_lowering_twice_from_equal_kernels_gives_equal_texts() -> None:
    one, two = transpose_and_add(), transpose_and_add()
    lower(one, SM_90A)
    lower(two, SM_90A)
    assert print_kernel(one) == print_kernel(two)


def test_merging_and_hoisting_leave_little_to_a_loop() -> None:
    """What a trip of a plain copy loop computes: addresses of this trip, bounds, the copy."""
    b = Body(tensor(), tensor(name="y"))
    n = b.build.const(1024)
    with b.loop(b.build.const(0), n, b.build.const(128)) as loop:
        window = ((0, 4), (loop.index, 128))
        b.store(b.params[1], b.load(b.params[0], *window), *window)
    kernel = b.kernel()
    lower(kernel, SM_90A)
    text = print_kernel(kernel)
    inside = re.findall(r"^    .*?= ([\w.]+)\(", text[text.index("control.for") :], re.M)
    assert "index.lane" not in inside and "index.digit" not in inside
    assert "scalar.stride" not in inside and "scalar.dim" not in inside
    assert len(inside) <= 16, inside


def test_one_shape_of_registers_is_one_map() -> None:
    b = Body(tensor(), tensor(name="y"))
    t = b.load(b.params[0], (0, 32), (0, 128))
    for kind in ("exp", "neg", "abs"):
        t = b.emit(tile.Unary(value=t, kind=kind))
    b.store(b.params[1], t, (0, 32), (0, 128))
    kernel = b.kernel()
    lower(kernel, SM_90A)
    maps = [op for op in kernel.body.ops if isinstance(op, registers.Map)]
    floats = [
        op
        for made in maps
        for op in made.body.ops[:-1]
        if op.result.type.dtype == f32  # type: ignore[union-attr]
    ]
    assert len(floats) == 3
