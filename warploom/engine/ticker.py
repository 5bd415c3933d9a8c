"""A line on stderr that says what is going on, at least every second, and goes away for the answer.

On a terminal one line that is rewritten; elsewhere a new line a second. Knows no model.
"""

import threading
import time
from typing import Any, TextIO

_PERIOD = 0.8
"""Seconds between two lines: on a busy machine still less than one."""


class Ticker:
    """Call it with (stage, done, total). A context manager: a thread of its own keeps it moving."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._shown_at = self._start
        self._stage, self._done, self._total = "starting", 0, 0
        self._line = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> "Ticker":
        self._thread.start()
        return self

    def __exit__(self, *details: Any) -> None:
        self._stop.set()
        self._thread.join()
        self.clear()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Remembers where the work is; the thread shows it."""
        with self._lock:
            self._stage, self._done, self._total = stage, done, total

    def clear(self) -> None:
        """Takes the line off the terminal, before something else is written."""
        with self._lock:
            if self._line and self._terminal:
                self._stream.write("\r" + " " * len(self._line) + "\r")
                self._stream.flush()
            self._line = ""
            self._shown_at = time.monotonic()

    def _tick(self) -> None:
        while not self._stop.wait(_PERIOD):
            with self._lock:
                self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._shown_at < _PERIOD / 2:
            return
        line = f"{self._text()} ({now - self._start:.0f} s)"
        if self._terminal:
            self._stream.write("\r" + line.ljust(len(self._line)))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._line, self._shown_at = line, now

    def _text(self) -> str:
        stage, done, total = self._stage, self._done, self._total
        if stage == "load":
            return f"loading weights {100 * done // max(1, total)}%"
        if stage == "pack":
            return f"ordering weights {100 * done // max(1, total)}%"
        if stage == "prompt":
            return f"reading the prompt, {done} of {total} tokens"
        if stage == "token":
            return f"answering, {done} token{'s' * (done != 1)}"
        if total > 1 << 20:
            return f"{stage}, {done / 1e6:.0f} of {total / 1e6:.0f} MB"
        return stage
