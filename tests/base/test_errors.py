"""Exceptions carry reports, double as Python's own, and say their text."""

import pickle
import subprocess
import sys

import pytest

import warploom as wl
from warploom.base.diagnostics import Report
from warploom.base.errors import CODES, LETTERS, error, error_of, report

PARENTS = {
    "CompileError": SyntaxError,
    "ShapeError": TypeError,
    "LaunchError": ValueError,
    "CheckError": RuntimeError,
    "ModelError": ValueError,
}


@pytest.mark.parametrize("name", PARENTS)
def test_classes(name):
    kind = getattr(wl, name)
    assert issubclass(kind, PARENTS[name]) and issubclass(kind, wl.Error)
    assert kind.__module__ == "warploom"
    raised = kind(Report("F099", "one"), Report("F099", "two"))
    assert str(raised) == "error[F099]: one\n\nerror[F099]: two\n\n2 errors"
    assert raised.code == "F099"
    assert "\033" in raised.render(ansi=True)


@pytest.mark.parametrize("name", PARENTS)
def test_pickled(name):
    raised = getattr(wl, name)(Report("F099", "one"), Report("F001", "two"))
    again = pickle.loads(pickle.dumps(raised))
    assert type(again) is type(raised)
    assert again.reports == raised.reports and str(again) == str(raised)


def test_letter_decides_the_class():
    for code in CODES.values():
        assert code.error is LETTERS[code.code[0]][1]
    assert type(error("H001", "no grid")) is wl.LaunchError
    assert type(error_of([report("E101", "unknown"), report("H001", "no grid")])) is wl.ModelError


def test_unlisted_code_is_a_fault():
    with pytest.raises(ValueError, match="Z999"):
        report("Z999", "what")


@pytest.mark.parametrize("code", CODES)
def test_entries(code):
    entry = CODES[code]
    assert entry.title and not entry.title.endswith(".")
    assert len(entry.paragraph) > 20 and entry.paragraph.endswith((".", "`"))


def test_uncaught_text_is_the_report():
    program = (
        "from warploom.base.errors import error\n"
        "raise error('F099', 'something is wrong', hint='do it')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stderr.endswith(
        "warploom.CompileError: error[F099]: something is wrong\n  help: do it\n"
    )
