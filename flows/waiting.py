"""Shows a line on a terminal that says what a command waits for, and since when.

The line appears on standard error after a second without output. The line is erased before other output is written,
and is shown only on a terminal that can erase a line.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TextIO

from rich.cells import cell_len, set_cell_size

from monitors.reports.invisible import replace_invisible_by_code_points

SILENCE_BEFORE_LINE_S: Final = 1.0
"""After this number of seconds without output, the waiting line appears. In short waits, the line would flicker."""
REFRESH_INTERVAL_S: Final = 0.5
_ERASE: Final = "\r\x1b[K"


class _WaitingLine:
    """The waiting line of the terminal, with a stack of activities and the time when each activity began."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._doing: list[tuple[str, float]] = []
        self._shown_on: TextIO | None = None
        self._shown = ""
        self._written_s = 0.0
        self._within_line = False
        self._ended = threading.Event()

    def begin(self, text: str) -> None:
        with self._lock:
            self._doing.append((text, time.monotonic()))
            if len(self._doing) == 1:
                self._written_s = time.monotonic()
                self._ended = threading.Event()
                threading.Thread(target=self._redraw_until_ended, args=(self._ended,), daemon=True).start()

    def change(self, text: str) -> None:
        with self._lock:
            if self._doing and self._doing[-1][0] != text:
                self._doing[-1] = (text, time.monotonic())

    def end(self) -> None:
        with self._lock:
            self._erase()
            self._doing.pop()
            if not self._doing:
                self._ended.set()

    def clear_for(self, text: str) -> None:
        with self._lock:
            self._erase()
            self._written_s = time.monotonic()
            self._within_line = not text.endswith("\n")

    def _erase(self) -> None:
        if self._shown_on is not None:
            self._shown_on.write(_ERASE)
            self._shown_on.flush()
            self._shown_on, self._shown = None, ""

    def _redraw_until_ended(self, ended: threading.Event) -> None:
        while not ended.wait(REFRESH_INTERVAL_S):
            with self._lock:
                if (
                    not ended.is_set()
                    and not self._within_line
                    and time.monotonic() - self._written_s >= SILENCE_BEFORE_LINE_S
                ):
                    self._show()

    def _show(self) -> None:
        text, began_s = self._doing[-1]
        stream = _get_standard_error()
        minutes, seconds = divmod(int(time.monotonic() - began_s), 60)
        took = f" … {minutes}:{seconds:02}"
        shown = (
            _truncate(replace_invisible_by_code_points(text), shutil.get_terminal_size().columns - 1 - len(took))
            + took
        )
        if shown != self._shown:
            stream.write(_ERASE + shown)
            stream.flush()
        self._shown_on, self._shown = stream, shown


_line: Final = _WaitingLine()


@contextmanager
def show_waiting(text: str) -> Generator[None]:
    """Show ``text`` as the current activity during the ``with`` block. The block must not ask for input."""
    if not _can_erase():
        yield
        return
    _line.begin(text)
    try:
        yield
    finally:
        _line.end()


def update_waiting(text: str) -> None:
    """Replace the text of the innermost `show_waiting`. Without a `show_waiting` block, do nothing."""
    _line.change(text)


def clear_waiting_line(text: str = "\n") -> None:
    """Erase the waiting line before ``text`` is written."""
    _line.clear_for(text)


def _can_erase() -> bool:
    from rich.console import Console  # rich detects terminals that cannot erase a line

    return _get_standard_error().isatty() and not Console(stderr=True).is_dumb_terminal


def _get_standard_error() -> TextIO:
    return getattr(sys.stderr, "unguarded", sys.stderr)


def _truncate(text: str, columns: int) -> str:
    flat = " ".join(text.split())
    return flat if cell_len(flat) <= columns else f"{set_cell_size(flat, max(1, columns - 1)).rstrip()}…"
