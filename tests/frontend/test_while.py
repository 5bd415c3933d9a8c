"""`while` and `for t in wl.tiles(s)`: what they carry, how uniform that is, what is refused."""

import re

import pytest

COUNTER = """
@wl.struct
class Count:
    lo: int
    hi: int
    STEP: wl.const = 1

    def first(self):
        return self.lo

    def valid(self, t):
        return t < self.hi

    def next(self, t):
        return t + self.STEP

"""


def test_carries_the_condition_first(source, golden):
    body = """
acc = wl.zeros((4, 8), wl.f32)
k = 0
while k < x.shape[1]:
    acc = acc + wl.load(x[wl.ds(0, 4), wl.ds(k, 8)])
    k += 8
wl.store(x[wl.ds(0, 4), wl.ds(k, 8)], acc)
"""
    golden(source.body(body, x="f32 n1"))


def test_what_is_carried_is_no_more_uniform_than_the_condition(source):
    # `n` and `i` are the same for the grid, but blocks make different numbers of trips.
    body = """
i = n
while wl.load(x[i]) > 0.0:
    i = i + 1
for k in wl.range(i):
    wl.store(x[k], 1.0)
"""
    text = source.body(body, x="f32 1")
    assert "(%running: bool@block, %i: i32@block)" in text
    assert "%k: i32@block" in text


def test_a_constant_that_ends_it_at_once(source):
    text = source.body("while n is None:\n    wl.store(x[0], 1.0)\n", x="f32 1")
    assert "control.while" not in text and "tile.store" not in text


def test_names_of_the_body_are_gone_behind_it(source):
    error = source.refused_body(
        "while n > 0:\n    n = n - 1\n    t = n\nwl.store(x[t], 1.0)\n", x="f32 1"
    )
    assert error.code == "F015"


def test_a_type_that_changes(source, golden):
    golden(str(source.refused_body("a = 1\nwhile a < n:\n    a = wl.zeros(4, wl.f32)\n")))


@pytest.mark.parametrize("text", ["True", "n is not None"])
def test_a_condition_that_never_changes(source, golden, text):
    error = source.refused_body(f"while {text}:\n    s = s + 1.0\n")
    assert error.code == "F042"
    golden(str(error))


def test_a_constant_start_is_no_constant_condition(source):
    text = source.body("i = 0\nwhile i < 3:\n    i += 1\nwl.store(x[i], 1.0)\n", x="f32 1")
    assert "control.while" in text and "%i: i32@grid" in text


def test_whiles_in_schedules_in_whiles(source):
    text = source.ir(
        COUNTER
        + """
def kernel(x: wl.Tensor, n: wl.i32):
    total = 0
    while total < n:
        for t in wl.tiles(Count(0, n)):
            left = t
            while left > 0:
                left -= 1
                total += 1
    wl.store(x[total], 1.0)
""",
        x="f32 1",
    )
    assert text.count("control.while") == 3
    assert len(re.findall(r"%total[.\d]*: i32@grid", text)) >= 3


def test_a_schedule(source, golden):
    golden(
        source.ir(
            COUNTER
            + """
def kernel(x: wl.Tensor, n: wl.i32):
    for t in wl.tiles(Count(wl.program_id(0), n, wl.num_programs(0))):
        wl.store(x[t], 1.0)
""".replace("n, wl.num_programs(0)", "n"),
            x="f32 1",
        )
    )


def test_a_schedule_of_pairs(source):
    text = source.ir(
        """
@wl.struct
class Rows:
    columns: int

    def first(self):
        return 0, wl.program_id(0)

    def valid(self, t):
        row, column = t
        return column < self.columns

    def next(self, t):
        row, column = t
        return row + 1, column + wl.num_programs(0)

def kernel(x: wl.Tensor):
    for row, column in wl.tiles(Rows(x.shape[1])):
        wl.store(x[row, column], 1.0)
""",
        x="f32 n1",
    )
    assert "(%running: bool@block, %item: i32@block, %item.1: i32@block)" in text


REFUSED = {
    "no_struct": ("T015", "for t in wl.tiles(3):\n    pass"),
    "no_method": ("F036", "for t in wl.tiles(Empty()):\n    pass"),
    "no_condition": ("T015", "for t in wl.tiles(Loose()):\n    pass"),
    "not_a_loop": ("F036", "for t in Empty():\n    pass"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(source, golden, name):
    code, body = REFUSED[name]
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    error = source.refused(
        f"""
@wl.struct
class Empty:
    def first(self):
        return 0

    def valid(self, t):
        return t < 3

@wl.struct
class Loose:
    def first(self):
        return 0

    def valid(self, t):
        pass

    def next(self, t):
        return t

def kernel(n: wl.i32):
{lines}"""
    )
    assert error.code == code
    golden(str(error), name)
