"""Run-time loops: what they carry, what their names mean behind them; compile-time loops."""

import re


def opcodes(text: str) -> list[str]:
    """The operations of an IR text in order, without constants."""
    found = re.findall(r"([a-z]+\.[a-z_]+)\(", text)
    return [name for name in found if name != "scalar.const"]


def test_carries_what_is_read(source, golden):
    body = """
acc = wl.zeros((4, 8), wl.f32)
seen = 0
for k in wl.range(0, x.shape[1], 8):
    t = wl.load(x[wl.ds(0, 4), wl.ds(k, 8)])
    acc = acc + t
    seen += 1
wl.store(x[wl.ds(0, 4), wl.ds(seen, 8)], acc)
"""
    golden(source.body(body, x="f32 n1"))


def test_temporary_of_another_type_is_not_carried(source):
    body = """
t = wl.load(x[0:4])
wl.store(x[4:8], t)
for k in wl.range(n):
    t = wl.load(x[wl.ds(k, 16)]).cast(wl.i32)
    wl.store(x[wl.ds(k, 16)], t.cast(wl.f32))
"""
    text = source.body(body, x="f32 1")
    assert "control.for(%" in text and ", [])" in text.split("control.for")[1].split("\n")[0]


def test_swap_is_parallel(source):
    body = """
a = wl.zeros(4, wl.f32)
b = wl.full(4, 1.0, wl.f32)
for k in wl.range(n):
    a, b = b, a
wl.store(x[0:4], a)
"""
    text = source.body(body, x="f32 1")
    (args,) = re.findall(r"\(%k: i32@grid, (%\S+): f32<4>, (%\S+): f32<4>\)", text)
    assert f"control.yield([{args[1]}, {args[0]}])" in text


def test_number_takes_the_dtype_of_the_body(source):
    body = """
best = 0
for k in wl.range(n):
    best = wl.scalar(wl.argmax(wl.load(x[wl.ds(k, 8)])))
total = 0.0
for k in wl.range(n):
    total = total + wl.load(x[k])
wl.store(x[best], total)
"""
    text = source.body(body, x="f32 1")
    assert "%total: f32@block" in text
    assert "%best: i32@block" in text


def test_uniformity_sinks_over_the_back_edge(source):
    # `b` is of the grid in the first trip and of the block in the third.
    body = """
a = n
b = n
for k in wl.range(4):
    b = a
    a = wl.program_id(0)
for k in wl.range(b):
    wl.store(x[k], 1.0)
"""
    text = source.body(body, x="f32 1")
    head = next(line for line in text.splitlines() if "control.for" in line)
    assert "%a: i32@block" in head and "%b: i32@block" in head


def test_index_is_as_uniform_as_the_bounds(source):
    text = source.body("for k in wl.range(wl.program_id(0)):\n    wl.store(x[k], 1.0)", x="f32 1")
    assert "(%k: i32@block)" in text


def test_wide_bounds_give_a_wide_index(source, tensor_type):
    body = "for k in wl.range(0, x.shape[0], 4):\n    wl.store(x[wl.ds(k, 4)], 0.0)"
    text = source.body(body, x=tensor_type("f32 1", wide=True))
    assert "(%k: i64@grid)" in text


def test_tuples_and_lists_are_carried(source):
    body = """
pair = (wl.zeros(4, wl.f32), 0)
parts = [wl.zeros(4, wl.f32), wl.zeros(8, wl.f32)]
for k in wl.range(n):
    pair = (pair[0] + 1, pair[1] + 1)
    parts[0] = parts[0] + pair[0]
wl.store(x[wl.ds(pair[1], 4)], parts[0] + pair[0])
"""
    text = source.body(body, x="f32 1")
    (line,) = [line for line in text.splitlines() if "control.for" in line]
    assert line.count("f32<4>") == 4 and line.count("f32<8>") == 2


def test_list_that_grows_in_a_loop(source):
    body = """
parts = [wl.zeros(4, wl.f32)]
for k in wl.range(n):
    parts.append(wl.zeros(4, wl.f32))
wl.store(x[0:4], parts[0])
"""
    (report,) = source.refused_body(body, x="f32 1").reports
    assert report.code == "F016"


def test_text_that_changes(source):
    body = "a = 'x'\nfor k in wl.range(n):\n    a = 'y'\nprint(a)"
    (report,) = source.refused_body(body).reports
    assert report.code == "F039"


def test_nested_loops(source):
    body = """
acc = wl.zeros(4, wl.f32)
for i in wl.range(n):
    for j in wl.range(i):
        acc = acc + wl.load(x[wl.ds(i * 4, 4)])
wl.store(x[0:4], acc)
"""
    text = source.body(body, x="f32 1")
    assert opcodes(text) == [
        "tile.splat",
        "control.for",
        "control.for",
        "scalar.binary",
        "tile.load",
        "tile.binary",
        "control.yield",
        "control.yield",
        "tile.store",
        "control.yield",
    ]


def test_loop_down(source):
    text = source.body("for k in wl.range(n, 0, -1):\n    wl.store(x[k], 0.0)", x="f32 1")
    assert "number=-1" in text


def test_unroll_attribute(source):
    text = source.body("for k in wl.range(n, unroll=4):\n    wl.store(x[k], 0.0)", x="f32 1")
    assert "[unroll=4]" in text


def test_unrolled(source):
    body = """
parts = []
for i in wl.unroll(3):
    parts.append(wl.load(x[wl.ds(i * 4, 4)]))
for i, part in enumerate(parts):
    wl.store(x[wl.ds(i * 8, 4)], part)
for a, b in zip((0, 1), (2, 3)):
    wl.store(x[a], b)
"""
    text = source.body(body, x="f32 1")
    assert opcodes(text).count("tile.load") == 3
    assert opcodes(text).count("tile.store") == 5
    assert "control.for" not in text


def test_name_of_an_unrolled_loop_lives_on(source):
    text = source.body("for i in wl.unroll(3):\n    pass\nwl.store(x[i], 1.0)", x="f32 1")
    assert "number=2" in text


def test_comprehension_name_stays_inside(source):
    body = "parts = [wl.load(x[i]) for i in range(2) if i != 1]\nwl.store(x[i], parts[0])"
    (report,) = source.refused_body(body, x="f32 1").reports
    assert report.code == "F013"


def test_error_in_the_second_reading_is_reported_once(source):
    body = """
total = 0.0
for k in wl.range(n):
    total = total + wl.load(x[k])
    bad = wl.expp(total)
"""
    error = source.refused_body(body, x="f32 1")
    assert [r.code for r in error.reports] == ["F024"]


def test_number_that_no_trip_changes_stays_constant(source):
    body = """
pair = (wl.zeros(4, wl.f32), 4)
size, scale, flag = 8, 2.0, True
for k in wl.range(n):
    pair = (pair[0] + wl.load(x[wl.ds(k, pair[1])]), pair[1])
    size = size * 1
    if not flag:
        scale = wl.load(x[0])
    flag = flag and True
wl.store(x[wl.ds(0, size)], scale)
wl.store(x[wl.ds(0, pair[1])], pair[0])
"""
    text = source.body(body, x="f32 1")
    (head,) = [line for line in text.splitlines() if "control.for" in line]
    assert head.count("f32<4>") == 2 and "i32@grid" not in head.replace("%k: i32@grid", "")


def test_flag_that_a_trip_changes(source):
    body = """
first = True
total = 0
for k in wl.range(n):
    if first:
        total = wl.load(x[k])
    else:
        total = total + wl.load(x[k])
    first = False
wl.store(x[0], total)
"""
    text = source.body(body, x="f32 1")
    assert "%first: bool@grid" in text and "control.if(%first)" in text
    assert "%total: f32@block" in text


def test_loop_of_wide_and_narrow_indices(source, tensor_type):
    body = """
at = wl.arange(4)
k = n
for i in wl.range(n):
    if i > 2:
        k = k + x.stride(0)
    at = at + x.shape[0] + at
t = wl.gather(x, (at,))
wl.store(x[wl.ds(k, 4)], t)
"""
    source.body(body, x="f32 1")
    text = source.body(body, x=tensor_type("f32 n", wide=True))
    (head,) = [line for line in text.splitlines() if "control.for" in line]
    assert head.count("i64<4>") == 2 and head.count("i64@grid") == 2


def test_mistake_that_a_second_reading_mends_is_none(source):
    body = """
step = 0
for k in wl.range(n):
    if step == 0:
        t = wl.zeros(4, wl.f32)
    else:
        t = wl.zeros(4, wl.f32) + step
    wl.store(x[0:4], t)
    step = wl.load(x[k])
"""
    source.body(body, x="f32 1")
