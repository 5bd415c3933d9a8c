"""`breakpoint()` in a kernel: stops, names, steps, memory; results do not change."""

import io

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from tests.sim.programs import program_of
from warploom.sim.prompt import Prompt


@wl.kernel
def stops(x: wl.Tensor, y: wl.Tensor, n: wl.i32, SIZE: wl.const):
    i = wl.program_id(0)
    t = wl.load(x[i, wl.ds(0, SIZE)])
    short = t.cast(wl.bf16)
    breakpoint()
    t = t + n.cast(wl.f32)
    s = wl.sum(t, 0)
    wl.store(y[i, wl.ds(0, SIZE)], t - s + short.cast(wl.f32))


@pytest.fixture
def talk(monkeypatch, capsys):
    """Launch with commands on standard input; what the prompt said after each."""

    def talk_with(*commands, checked=False):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(commands) + "\n"))
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        y = np.zeros((2, 6), np.float32)
        call = stops.launch(2).call(x, y, 5, SIZE=6)
        if checked:
            assert call.check().clean
        else:
            call.run()
        t = x + 5
        assert np.array_equal(y, t - t.sum(1, keepdims=True) + x)
        return capsys.readouterr().out.split("(warploom) ")

    return talk_with


@pytest.mark.parametrize("checked", [False, True])
def test_names_and_memory(talk, checked):
    commands = ["p t", "p short", "p n", "p SIZE", "p nothing", "names", "memory x"]
    said = talk(*commands, checked=checked)
    assert said[0].endswith("test_prompt.py:19, block (0, 0, 0): breakpoint()\n")
    assert said[1] == "t = [0. 1. 2. 3. 4. 5.] (f32 (6,))\n"
    assert said[2] == "short = [0. 1. 2. 3. 4. 5.] (bf16 (6,))\n"
    assert said[3] == "n = 5 (i32)\n"
    assert said[4] == "SIZE = 6\n"
    assert "no value has the name 'nothing'" in said[5]
    assert said[6] == "i n short t SIZE\n"
    assert said[7] == "x = [[ 0.  1.  2.  3.  4.  5.]\n [ 6.  7.  8.  9. 10. 11.]] (f32)\n"


def test_continue_stops_in_every_block_and_finish_does_not(talk):
    stops_at = [s for s in talk("c", "p t", "c") if "breakpoint()" in s]
    assert ["block (0" in s for s in stops_at] == [True, False]
    assert len([s for s in talk("finish") if "breakpoint()" in s]) == 1


def test_next_goes_line_by_line_and_an_empty_line_repeats(talk):
    said = talk("next", "", "p s", "next", "p s", "finish")
    lines = [int(s.split(":")[1].split(",")[0]) for s in said if "test_prompt.py:" in s]
    assert lines == [19, 20, 21, 22]
    assert "no value has the name 's'" in said[3]
    assert said[5] == "s = 45.0 (f32 ())\n"


def test_help_and_quit(talk):
    assert "continue      run to the next breakpoint" in talk("what", "finish")[1]
    with pytest.raises(KeyboardInterrupt):
        talk("quit")


def test_without_anybody_to_ask_the_kernel_runs_on(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    x, y = np.ones((2, 6), np.float32), np.zeros((2, 6), np.float32)
    stops[2](x, y, 0, SIZE=6)
    assert (y == 1 - 6 + 1).all()
    assert capsys.readouterr().out.count("breakpoint()") == 1


def test_tiles_are_shown_by_coordinates():
    @wl.kernel
    def two(x: wl.Tensor, M: wl.const, N: wl.const):
        t = wl.load(x[wl.ds(0, M), wl.ds(0, N)])
        flags = t > 5
        breakpoint()
        print(wl.scalar(wl.any(wl.any(flags, 1), None)))

    x = np.arange(35).reshape(5, 7).astype(ml_dtypes.bfloat16)
    out = io.StringIO()
    prompt = Prompt(io.StringIO("p t\np flags\np M\n"), out)
    program_of(two.launch(1).call(x, M=5, N=7)).run((1,), (x,), prompt=prompt)
    said = out.getvalue().split("(warploom) ")
    assert said[1] == f"t = {x.astype(np.float32)} (bf16 (5, 7))\n"
    assert said[2] == f"flags = {x.astype(np.float32) > 5} (bool (5, 7))\n"
