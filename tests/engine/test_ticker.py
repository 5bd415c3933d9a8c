"""The progress line: something at least every second, and nothing left of it on a terminal."""

import io
import time

import pytest

from warploom.engine import ticker
from warploom.engine.ticker import Ticker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "_PERIOD", 0.01)


def wait_for(stream: io.StringIO, text: str) -> None:
    for _ in range(500):
        if text in stream.getvalue():
            return
        time.sleep(0.01)
    pytest.fail(f"{text!r} did not appear in {stream.getvalue()!r}")


def test_it_moves_by_itself() -> None:
    stream = io.StringIO()
    with Ticker(stream) as progress:
        wait_for(stream, "starting")
        for call, text in (
            (("load", 3, 10), "loading weights 30%"),
            (("prompt", 8, 37), "reading the prompt, 8 of 37 tokens"),
            (("token", 1, 100), "answering, 1 token"),
            (("token", 4, 100), "answering, 4 tokens"),
            (("downloading a==1", 0, 0), "downloading a==1 ("),
            (("checking a.whl", 5_000_000, 98_000_000), "checking a.whl, 5 of 98 MB"),
        ):
            progress(*call)
            wait_for(stream, text)
    assert "\r" not in stream.getvalue()


def test_a_terminal_gets_one_line_that_goes_away() -> None:
    stream = Terminal()
    with Ticker(stream) as progress:
        wait_for(stream, "starting")
        progress.clear()
        assert stream.getvalue().rstrip("\r").endswith(" ") or stream.getvalue().endswith("\r")
    assert "\n" not in stream.getvalue()
    shown = stream.getvalue().rsplit("\r", 2)
    assert shown[-1] == "" and shown[-2].strip() == ""
