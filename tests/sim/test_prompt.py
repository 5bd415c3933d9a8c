"""`breakpoint()` in a kernel: stops, names, steps, memory; results do not change."""

import inspect
import io
import re

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
    assert said[0].endswith("test_prompt.py:21, block (0, 0, 0): breakpoint()\n")
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
    assert lines == [21, 22, 23, 24]
    assert "no value has the name 's'" in said[3]
    assert said[5] == "s = 45.0 (f32 ())\n"


def test_help_and_quit(talk):
    said = talk("help", "what", "finish")
    assert "continue      run to the next breakpoint" in said[1]
    assert said[2] == f"no command 'what'; there are:\n{said[1]}"
    with pytest.raises(KeyboardInterrupt):
        talk("quit")


def test_without_anybody_to_ask_the_kernel_runs_on(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    x, y = np.ones((2, 6), np.float32), np.zeros((2, 6), np.float32)
    stops[2](x, y, 0, SIZE=6)
    assert (y == 1 - 6 + 1).all()
    assert capsys.readouterr().out.count("breakpoint()") == 1


@wl.kernel
def ringed(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(2, slots=[wl.shared((8, 64), wl.bf16)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                with ring.put() as held:
                    wl.copy_async(x[wl.ds(k * 8, 8), wl.ds(0, 64)], held)
        with wl.role("use", warps=2, replicas=2) as r:
            for k in wl.range(0, STEPS):
                with ring.get() as held:
                    tile = held.load()
                    wl.store(y[r, wl.ds(k * 8, 8), wl.ds(0, 64)], tile)


@pytest.fixture
def talk_of(monkeypatch, capsys):
    """Run a call with commands on standard input; what the prompt said after each."""

    def talk_of(call, *commands):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(commands) + "\n"))
        call.run()
        return capsys.readouterr().out.split("(warploom) ")

    return talk_of


def ring_call(*texts):
    """A call that stops before the lines of `ringed` with these texts."""
    x = np.arange(24 * 64).reshape(24, 64).astype(ml_dtypes.bfloat16)
    y = np.zeros((2, 24, 64), ml_dtypes.bfloat16)
    lines, first = inspect.getsourcelines(ringed.__wrapped__)
    call = ringed.launch(1).call(x, y, STEPS=3)
    places = [(__file__, first + i) for t in texts for i, line in enumerate(lines) if t in line]
    return call.stopping(*places), x, y


def test_roles_and_barriers_are_shown_where_a_role_stops(talk_of, golden):
    call, x, y = ring_call("wl.store")
    said = talk_of(call, "roles", "barriers", "names", "p r", "p tile", "c", "roles", "finish")
    assert (y == x).all()
    assert said[0].endswith(
        ", block (0, 0, 0), `use` 0: wl.store(y[r, wl.ds(k * 8, 8), wl.ds(0, 64)], tile)\n"
    )
    assert said[3] == "k r tile STEPS\n"
    assert said[4] == "r = 0 (i32)\n"
    assert "(bf16 (8, 64))" in said[5]
    shown = "\n".join([said[1], said[2], said[7]])
    golden(re.sub(r"tests/sim/test_prompt.py:\d+", "FILE:LINE", shown))


def test_a_stop_before_a_role_is_at_its_beginning_and_copies_have_no_tiles(talk_of):
    call, x, y = ring_call('role("load"', "copy_async")
    said = talk_of(call, "names", "c", "names", "p k", "finish")
    assert (y == x).all()
    assert 'wl.role("load", warps=1)' in said[0]
    assert said[1] == "STEPS\n"
    assert "wl.copy_async" in said[2]
    assert said[3:5] == ["k STEPS\n", "k = 0 (i32)\n"]


@wl.struct
class Pair:
    low: wl.i32
    high: wl.i32

    def middle(self):
        return (self.low + self.high) // 2


@wl.kernel
def joined(x: wl.Tensor, n: wl.i32):
    both = (Pair(n, n + 4), [n * 10, 7])
    at = both[0].middle()
    breakpoint()
    wl.store(x[0], at.cast(wl.f32))


def test_items_and_fields_have_names_and_a_method_can_be_stopped(talk_of):
    x = np.zeros(1, np.float32)
    call = joined.launch(1).call(x, 3)
    said = talk_of(call, "names", "p both[0].high", "p both[1][1]", "p both[1][0]", "p at")
    assert said[1] == "at both[0].high both[0].low both[1][0] n both[1][1]\n"
    assert said[2:6] == [
        "both[0].high = 7 (i32)\n",
        "both[1][1] = 7\n",
        "both[1][0] = 30 (i32)\n",
        "at = 5 (i32)\n",
    ]
    first = inspect.getsourcelines(Pair.methods["middle"].__wrapped__)[1]
    said = talk_of(call.stopping((__file__, first + 1)), "names", "p self.low", "finish")
    assert "return (self.low + self.high) // 2" in said[0]
    assert said[1:3] == ["self.high self.low\n", "self.low = 3 (i32)\n"]
    assert x[0] == 5


def test_a_kernel_without_roles_says_so(talk):
    said = talk("roles", "barriers", "finish")
    assert said[1] == "no roles run here: all warps of the block do the same\n"
    assert said[2] == "no barriers have been made\n"


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
