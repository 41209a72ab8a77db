"""Colours, tables and progress bars for the terminal, with control characters made visible.

See `flows.terminal`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from flows.terminal import FailSafeStream
from flows.waiting import clear_waiting_line
from monitors.reports.invisible import replace_invisible_by_code_points


class TerminalConsole(Console):
    """A console that makes control characters in its output visible.

    Only the console's own colours and cursor movements take effect.
    """

    @property
    def file(self) -> IO[str]:
        """The stream to which the console writes.

        It is not guarded, because a guard would show cursor movements as text.
        """
        stream = self._file or (sys.stderr if self.stderr else sys.stdout)
        stream = getattr(stream, "unguarded", stream)
        return cast("IO[str]", FailSafeStream(cast("TextIO", getattr(stream, "rich_proxied_file", stream))))

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def print(self, *objects: Any, **options: Any) -> None:
        """Erase the waiting line, then print as rich's own console does."""
        clear_waiting_line()
        super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich's own console does, but make control characters visible."""
        if isinstance(renderable, str):
            renderable = replace_invisible_by_code_points(renderable)
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(replace_invisible_by_code_points(text), style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Render as rich's own console does, but show a bell or a carriage return, which rich would remove."""
        return super().render_str(replace_invisible_by_code_points(text), **options)


NAME_COLUMNS: Final = 10
"""Width of the column for names, in characters. The lines begin after this column."""


def print_named_lines(console: Console, name: str, lines: Iterable[str]) -> None:
    """Print a name and its lines of markup in two columns. Long lines are wrapped between words."""
    for number, line in enumerate(lines):
        head = f"{'' if number else name:<{NAME_COLUMNS - 1}} "
        print_wrapped(console, line, head)


def print_wrapped(console: Console, line: str, head: Text | str = "") -> None:
    """Print a line of markup after ``head``, wrapped between words and indented. Long words are not broken."""
    for row in _wrap_rows(console, line, Text(head) if isinstance(head, str) else head):
        console.print(row, soft_wrap=True, highlight=False)


def _wrap_rows(console: Console, line: str, head: Text) -> Iterator[Text]:
    width = max(console.width - head.cell_len, NAME_COLUMNS)
    text = Text.from_markup(replace_invisible_by_code_points(line))
    for number, row in enumerate(text.divide(_find_row_starts(text.plain, width))):
        row.rstrip()
        yield Text.assemble(" " * head.cell_len if number else head, row)


def _find_row_starts(text: str, width: int) -> list[int]:
    """Return the character offsets at which the second and later rows of ``text`` start.

    The text is wrapped at ``width`` characters.
    """
    starts = list[int]()
    begin = 0
    for word in re.finditer(r"\S+\s*", text):
        if word.start() > begin and cell_len(text[begin : word.end()].rstrip()) > width:
            begin = word.start()
            starts.append(begin)
    return starts


def make_terminal_console(*, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False) -> Console:
    """Return a console on standard output or standard error."""
    return TerminalConsole(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap)
