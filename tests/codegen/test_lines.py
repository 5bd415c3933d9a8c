"""Source places: every line of C++ maps to the Python line it comes from."""

from warploom.codegen.lines import Lines, without_places
from warploom.ir.op import Loc


def places(text_lines):
    """What a compiler makes of `#line`: the place of each line of code."""
    out, file, line = {}, None, 0
    for text in text_lines:
        if text.startswith("#line"):
            _, number, name = text.split(" ", 2)
            file, line = name.strip('"'), int(number)
            continue
        out[text.strip()] = (file, line)
        line += 1
    return out


def test_each_line_has_its_place():
    lines = Lines()
    lines.loc = Loc("/a.py", 3)
    with lines.braces("void f()"):
        lines.loc = Loc("/a.py", 4)
        lines.add("one;")
        lines.loc = Loc("/a.py", 5)
        lines.add("two;")
        lines.add("three;")
        lines.loc = Loc("/b.py", 6)
        lines.add("four;")
    found = places(lines.with_places())
    assert found == {
        "void f() {": ("/a.py", 3),
        "one;": ("/a.py", 4),
        "two;": ("/a.py", 5),
        "three;": ("/a.py", 5),
        "four;": ("/b.py", 6),
        "}": ("/a.py", 3),
    }


def test_consecutive_lines_need_one_directive():
    lines = Lines()
    for n in range(3):
        lines.loc = Loc("/a.py", 10 + n)
        lines.add(f"s{n};")
    assert sum(t.startswith("#line") for t in lines.with_places()) == 1


def test_file_names_are_escaped():
    lines = Lines()
    lines.loc = Loc('C:\\x "y".py', 1)
    lines.add("s;")
    assert lines.with_places()[0] == '#line 1 "C:\\\\x \\"y\\".py"'


def test_readable_text_names_source_lines_in_comments():
    lines = Lines()
    lines.loc = Loc("/x/a.py", 4)
    lines.add("one;")
    lines.add("two;")
    lines.loc = Loc("/x/a.py", 9)
    lines.add("three;")
    text = without_places("\n".join(lines.with_places()))
    assert text == "one;  // a.py:4\ntwo;\nthree;  // a.py:9\n"
