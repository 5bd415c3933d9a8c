"""The renderer: one look for every report, plain and in colour."""

import io

import pytest

from warploom.base.diagnostics import Report, Span, columns, render, shown_path, wants_colour
from warploom.base.errors import report

LINE = "        full[s].wait(phase)"


def plain(*spans: Span, **more) -> str:
    """The text of a report with these spans."""
    return render(Report("F099", "something is wrong", spans, **more))


def test_all_parts(golden):
    chain = (Span("b.py", 8, 5, text="    launch(x)"), Span("c.py", 112, 1, text="main()"))
    golden(
        plain(
            Span("gemm.py", 41, 9, 28, "never ends", "consumer", chain, text=LINE),
            Span("gemm.py", 7, 1, 5, "initialised here", text="full = barrier(2)"),
            notes=("arrivals: producer 1, consumer 0", "expected: 2"),
            hint="initialise `full` with count=1",
        )
    )


def test_colour(golden):
    text = render(
        Report("F099", "wrong", (Span("a.py", 3, 1, 4, "here", text="abc"),), ("note",), "do it"),
        ansi=True,
    )
    golden(text.replace("\033", "ESC"))


def test_without_a_place():
    assert plain(notes=("a fact",), hint="do it") == (
        "error[F099]: something is wrong\n  = a fact\n  help: do it"
    )


@pytest.mark.parametrize(
    ("code", "severity", "word"),
    [
        ("R101", "error", "race"),
        ("D001", "error", "deadlock"),
        ("U001", "error", "unstable"),
        ("C003", "warning", "warning"),
        ("T001", "error", "error"),
    ],
)
def test_words(code, severity, word):
    text = Report(code, "m", severity=severity).render()
    assert text == f"{word}[{code}]: m"


@pytest.mark.parametrize(
    ("line", "column", "end", "under"),
    [
        ("a = bad", 5, 8, "    ^^^"),
        ("a = 日本 + bad", 10, 13, "           ^^^"),
        ("a = 日本", 5, 7, "    ^^^^"),
        ("\tbad", 2, 5, "    ^^^"),
        ("\t\tx\tbad", 5, 8, "            ^^^"),
        ("e\u0301 = bad", 6, 9, "    ^^^"),
        ("a = bad", 5, 0, "    ^^^"),
        ("a = bad  ", 5, 0, "    ^^^"),
        ("a = bad", 8, 8, "       ^"),
    ],
)
def test_carets(line, column, end, under):
    shown = plain(Span("a.py", 1, column, end, text=line)).split("\n")
    assert shown[-1] == f"  | {under}"
    assert columns(shown[-2]) >= columns(under)


def test_line_without_a_column():
    assert plain(Span("a.py", 12, text="x = 1")).split("\n")[1:] == [
        "  --> a.py:12",
        "   |",
        "12 | x = 1",
    ]


def test_source_that_is_gone():
    assert plain(Span("/nowhere/a.py", 12, 3)).split("\n")[1:] == ["  --> /nowhere/a.py:12:3"]


def test_source_from_the_file(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("first\nsecond line\n")
    assert "2 | second line" in plain(Span(str(path), 2, 1, 7))


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown_path(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert shown_path("/somewhere/else.py") == "/somewhere/else.py"
    assert shown_path("<stdin>") == "<stdin>"


def test_colour_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_places_of_the_ir():
    from warploom.ir.op import Loc

    inner = Loc("a.py", 3, 5, 9, (Loc("b.py", 7, 1, 4),))
    made = report("F099", "m", inner, None, Span("c.py", 1), label="here", count=3)
    assert [s.file for s in made.spans] == ["a.py", "c.py"]
    assert made.spans[0].label == "here" and made.spans[1].label == ""
    assert made.spans[0].chain == (Span("b.py", 7, 1, 4),)
    assert made.facts == {"count": 3}
