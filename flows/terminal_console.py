"""Colours, tables and bars for the terminal, in which no text can steer it. See `flows.terminal`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

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

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with each text made visible."""
        if isinstance(renderable, str):
            renderable = show_invisible(renderable)
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(show_invisible(text), style)

    def render_str(self, text: str, **how: Any) -> Text:  # type: ignore[override]
        """As rich does, before it would drop a bell or a carriage return in silence."""
        return super().render_str(show_invisible(text), **how)


def terminal_console(*, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False) -> Console:
    """A console on standard output or standard error."""
    return TerminalConsole(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap)
