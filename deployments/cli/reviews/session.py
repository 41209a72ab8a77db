"""A review in the terminal: show one item after the other and ask for one key, until the person quits.

Each decision is stored at once, so that a session that was left or killed resumes where it ended.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final, Generic, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from flows.terminal_console import make_terminal_console
from monitors.errors import ConfigError
from monitors.reports.invisible import write_invisible_as_code_points
from monitors.storage import write_atomically

REVIEWER_FILE: Final = "reviewer"
"""File in the data folder with the last reviewer's name."""
SKIP, QUIT = "s", "q"
_ESCAPE, _END = "\x1b", "\x04"
_MAX_BYTES = 64
_LABEL_WIDTH = 9

Item = TypeVar("Item")


class Decision(Enum):
    """What became of an item."""

    ACCEPTED = auto()
    REJECTED = auto()
    SKIPPED = auto()
    LEFT = auto()
    """The person left; later items were not shown."""


class Keyboard:
    """The terminal, a key at a time; or lines from a pipe, of which a key is the first character.

    What is typed ahead stays. Keys that send a sequence (arrows) are no letter, whatever their sequence ends in.
    """

    def __init__(self) -> None:
        self._ahead = ""

    def read_key(self) -> str:
        """Read one key; empty for Ctrl-C, Ctrl-D and the end of input."""
        if not sys.stdin.isatty():
            return self.read_line().strip().lower()[:1]
        try:
            typed = self._ahead or _read_keys(sys.stdin.fileno())
        except KeyboardInterrupt:
            return ""
        if typed.startswith(_ESCAPE):
            self._ahead = ""
            return _ESCAPE
        self._ahead = typed[1:]
        return "" if typed[:1] in {"", _END} else typed[0].lower()

    def read_line(self) -> str:
        """Read one line."""
        try:
            return sys.stdin.readline().rstrip("\n")
        except KeyboardInterrupt:
            return ""


def _read_keys(terminal: int) -> str:
    """Read what was typed, without waiting for Enter. Keeps what was typed ahead."""
    import termios  # only for a terminal
    import tty

    previous = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        return os.read(terminal, _MAX_BYTES).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, previous)


class ReviewScreen:
    """Shows items and asks for keys and lines."""

    def __init__(self) -> None:
        self.console = make_terminal_console()
        self._keyboard = Keyboard()

    def show(self, heading: str, content: RenderableType) -> None:
        """Show an item under a line across the screen."""
        self.console.rule(heading)
        self.console.print(content)

    def say(self, text: str, style: str | None = None) -> None:
        """Print one plain line."""
        self.console.print(text, style=style, markup=False, highlight=False)

    def ask_line(self, prompt: str) -> str:
        """Ask for one line; empty where none was typed."""
        self.say(prompt)
        return self._keyboard.read_line().strip()

    def read_key(self) -> str:
        """Read the next key, whatever it is; empty at the end of input."""
        return self._keyboard.read_key()

    def ask_key(self, keys: str, accepted: Collection[str]) -> str:
        """Ask until one of the ``accepted`` keys is pressed. Returns q for q and at the end of input."""
        self.say(keys, "bold")
        while (pressed := self.read_key()) not in accepted:
            if pressed in {"", QUIT}:
                return QUIT
            self.say(keys)
        return pressed

    def confirm(self, question: str) -> bool:
        """Ask for yes or no."""
        return self.ask_key(f"{question} [y]es  [n]o", "yn") == "y"


def build_label_table(
    rows: Iterable[tuple[str, str]], redact_text: Callable[[str], str], *, strong: str = ""
) -> Table:
    """Build a table of labels and texts; if one label is ``strong``, the rest is dim.

    ``redact_text`` is what texts go through before they are shown: redaction, unless switched off.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", width=_LABEL_WIDTH)
    table.add_column(overflow="fold")
    for label, text in rows:
        style = "" if not strong else "bold" if label == strong else "dim"
        table.add_row(label, Text(write_invisible_as_code_points(redact_text(text)), style=style))
    return table


@dataclass(frozen=True)
class ReviewSession(Generic[Item]):
    """One person's review of a sequence of items.

    ``keys`` is the line that names the keys. Each of ``actions`` gives what was decided, the item as the person has
    changed it (it is shown again), or ``None``: then another key is asked for.
    """

    screen: ReviewScreen
    keys: str
    content: Callable[[Item], RenderableType]
    actions: Mapping[str, Callable[[Item], Item | Decision | None]]

    def run(self, items: Iterable[Item], total: int) -> Counter[Decision]:
        """Ask about ``items`` until they end or the person leaves; return the number of each decision."""
        decisions: Counter[Decision] = Counter()
        for number, item in enumerate(items, start=1):
            decided = self._decide(item, f"{number} of {total}")
            if decided is Decision.LEFT:
                break
            decisions[decided] += 1
        return decisions

    def _decide(self, item: Item, heading: str) -> Decision:
        self.screen.show(heading, self.content(item))
        while True:
            pressed = self.screen.ask_key(self.keys, {SKIP, *self.actions})
            if pressed in {SKIP, QUIT}:
                return Decision.SKIPPED if pressed == SKIP else Decision.LEFT
            outcome = self.actions[pressed](item)
            if isinstance(outcome, Decision):
                return outcome
            if outcome is not None:
                item = outcome
                self.screen.show(heading, self.content(item))


def identify_reviewer(
    by: str | None, folder: Path | None, screen: ReviewScreen | None, *, option: str = "--as"
) -> str:
    """Return who reviews: as given, else as stored in the data folder, else as typed. Raises `ConfigError`.

    ``option`` names what says who.
    """
    person = (by or (load_reviewer(folder) if folder is not None else "")).strip()
    if not person and screen is not None:
        person = screen.ask_line("Your name (Lookout stores it with each decision, and remembers it here):")
    if not person:
        raise ConfigError(f"a review needs your name; give it with {option}")
    if folder is not None and folder.exists():
        write_atomically(folder / REVIEWER_FILE, f"{person}\n")
    return person


def load_reviewer(folder: Path) -> str:
    """Return the last reviewer's name; empty if there is none."""
    path = folder / REVIEWER_FILE
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
