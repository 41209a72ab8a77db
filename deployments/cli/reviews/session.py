"""Review sessions in the terminal. They show one item at a time, and ask for one key for each item.

Each decision is stored immediately, so an interrupted session can be continued.
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
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.storage import write_atomically

REVIEWER_FILE: Final = "reviewer"
"""The name of the file in the data folder that contains the name of the last reviewer."""
SKIP, QUIT = "s", "q"
_ESCAPE, _END = "\x1b", "\x04"
_MAX_BYTES = 64
_LABEL_WIDTH = 9

Item = TypeVar("Item")


class Decision(Enum):
    """The decision about an item."""

    ACCEPTED = auto()
    REJECTED = auto()
    SKIPPED = auto()
    LEFT = auto()
    """The person quit at this item. Later items were not shown."""


class Keyboard:
    """A reader of single keys from a terminal.

    From a pipe, it reads lines; the first character of a line is the key. If several keys are pressed quickly, the
    later keys are stored for the next calls. Keys such as arrows, which send several characters, are ignored.
    """

    def __init__(self) -> None:
        self._ahead = ""

    def read_key(self) -> str:
        """Read one key. The result is empty for Ctrl-C, Ctrl-D and the end of the input."""
        if not sys.stdin.isatty():
            return self.read_line().strip().lower()[:1]
        try:
            typed = self._ahead or _read_typed_keys(sys.stdin.fileno())
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


def _read_typed_keys(terminal: int) -> str:
    """Read the typed characters, without waiting for Enter."""
    import termios  # exists only on systems with terminals
    import tty

    previous = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        return os.read(terminal, _MAX_BYTES).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, previous)


class ReviewScreen:
    """Shows items on the terminal, and asks for keys and lines."""

    def __init__(self) -> None:
        self.console = make_terminal_console()
        self._keyboard = Keyboard()

    def show(self, heading: str, content: RenderableType) -> None:
        """Show an item below a horizontal line with the heading."""
        self.console.rule(heading)
        self.console.print(content)

    def print_line(self, text: str, style: str | None = None) -> None:
        """Print one plain line."""
        self.console.print(text, style=style, markup=False, highlight=False)

    def ask_line(self, prompt: str) -> str:
        """Ask for one line. The result is empty if nothing was typed."""
        self.print_line(prompt)
        return self._keyboard.read_line().strip()

    def read_key(self) -> str:
        """Read the next key. The result is empty at the end of the input."""
        return self._keyboard.read_key()

    def ask_key(self, keys: str, accepted: Collection[str]) -> str:
        """Ask until one of the keys in ``accepted`` is pressed, and return this key.

        Return ``q`` if the person presses q, or at the end of the input.
        """
        self.print_line(keys, "bold")
        while (pressed := self.read_key()) not in accepted:
            if pressed in {"", QUIT}:
                return QUIT
            self.print_line(keys)
        return pressed

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question. Return whether the answer is yes."""
        return self.ask_key(f"{question} [y]es  [n]o", "yn") == "y"


def build_label_table(
    rows: Iterable[tuple[str, str]], redact_text: Callable[[str], str], *, strong: str = ""
) -> Table:
    """Build a table of labels and texts.

    If ``strong`` is set, the row with this label is bold, and all other rows are dim. ``redact_text`` masks
    personal data in a text before the text is shown, unless masking is switched off.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", width=_LABEL_WIDTH)
    table.add_column(overflow="fold")
    for label, text in rows:
        style = "" if not strong else "bold" if label == strong else "dim"
        table.add_row(label, Text(replace_invisible_by_code_points(redact_text(text)), style=style))
    return table


@dataclass(frozen=True)
class ReviewSession(Generic[Item]):
    """One person's review of several items, shown one at a time.

    ``keys`` is the line that lists the keys. ``content`` builds the view of an item. ``actions`` maps a key to a
    function. The function returns a decision, the changed item to show again, or ``None`` to ask for another key.
    """

    screen: ReviewScreen
    keys: str
    content: Callable[[Item], RenderableType]
    actions: Mapping[str, Callable[[Item], Item | Decision | None]]

    def run(self, items: Iterable[Item], total: int) -> Counter[Decision]:
        """Ask about each item until the person quits. Return how often each decision was made."""
        decisions: Counter[Decision] = Counter()
        for number, item in enumerate(items, start=1):
            decided = self._ask_decision(item, f"{number} of {total}")
            if decided is Decision.LEFT:
                break
            decisions[decided] += 1
        return decisions

    def _ask_decision(self, item: Item, heading: str) -> Decision:
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


def get_and_store_reviewer(
    by: str | None, folder: Path | None, screen: ReviewScreen | None, *, option: str = "--as"
) -> str:
    """Return the reviewer's name, and store it for the next review.

    The name is ``by`` or, without ``by``, the stored name. If neither exists and ``screen`` is given, the person is
    asked for a name. ``option`` is the name of the option in the error message. Raises `ConfigError` if there is no
    name.
    """
    person = (by or (load_reviewer_name(folder) if folder is not None else "")).strip()
    if not person and screen is not None:
        person = screen.ask_line(
            "Your name (Lookout stores it with each decision, and for later reviews on this machine):"
        )
    if not person:
        raise ConfigError(f"a review needs your name. Give it with {option}")
    if folder is not None and folder.exists():
        write_atomically(folder / REVIEWER_FILE, f"{person}\n")
    return person


def load_reviewer_name(folder: Path) -> str:
    """Load the name of the last reviewer. The name is empty if there is none."""
    path = folder / REVIEWER_FILE
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
