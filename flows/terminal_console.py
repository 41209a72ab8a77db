"""Colours, tables and bars for the terminal, in which no text can steer it. See `flows.terminal`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from flows.waiting import make_room
from monitors.reports.invisible import show_invisible


class TerminalConsole(Console):
    """A console whose colours and cursor movements are its own: it makes every text visible before it prints it."""

    @property
    def file(self) -> IO[str]:
        """Where it writes: past the guard of the standard streams, which would show its colours as text."""
        found = self._file or (sys.stderr if self.stderr else sys.stdout)
        found = getattr(found, "unguarded", found)
        return getattr(found, "rich_proxied_file", found)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def print(self, *objects: Any, **how: Any) -> None:
        """As rich does, once the line that says what is waited for is gone."""
        make_room()
        super().print(*objects, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with each text made visible."""
        if isinstance(renderable, str):
            renderable = show_invisible(renderable)
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(show_invisible(text), style)

    def render_str(self, text: str, **how: Any) -> Text:
        """As rich does, before it would drop a bell or a carriage return in silence."""
        return super().render_str(show_invisible(text), **how)


NAME_COLUMNS: Final = 10
"""Wide enough for the names that stand before lines; the lines begin there."""


def print_named(console: Console, name: str, lines: Iterable[str]) -> None:
    """Print lines of markup beside their name; a long one goes on below itself, between words."""
    for number, line in enumerate(lines):
        head = f"{'' if number else name:<{NAME_COLUMNS - 1}} "
        print_wrapped(console, line, head)


def print_wrapped(console: Console, line: str, head: Text | str = "") -> None:
    """Print a line of markup behind ``head``, wrapped between words below itself. A long word stays whole."""
    for row in _rows(console, line, Text(head) if isinstance(head, str) else head):
        console.print(row, soft_wrap=True, highlight=False)


def _rows(console: Console, line: str, head: Text) -> Iterator[Text]:
    width = max(console.width - head.cell_len, NAME_COLUMNS)
    text = Text.from_markup(show_invisible(line))
    for number, row in enumerate(text.divide(_breaks(text.plain, width))):
        row.rstrip()
        yield Text.assemble(" " * head.cell_len if number else head, row)


def _breaks(text: str, width: int) -> list[int]:
    """Where rows begin, after the first, when each takes as many whole words as fit."""
    found = list[int]()
    begin = 0
    for word in re.finditer(r"\S+\s*", text):
        if word.start() > begin and cell_len(text[begin : word.end()].rstrip()) > width:
            begin = word.start()
            found.append(begin)
    return found


def terminal_console(*, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False) -> Console:
    """A console on standard output or standard error."""
    return TerminalConsole(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap)
