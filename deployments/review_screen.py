"""One answer at a time, in a terminal: what was asked, what should come, what came; then one key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitors.records.grades import FailureKind
from monitors.records.reviews import AnswerVerdict, JudgedAnswer, SpotCheck
from monitors.reports.visible import show_invisible

KEYS = "[r]ight  [w]rong  [u]nsure  [s]kip for now  [q]uit"
VERDICTS = {"r": AnswerVerdict.RIGHT, "w": AnswerVerdict.WRONG, "u": AnswerVerdict.UNSURE}
KINDS: Sequence[FailureKind] = (
    FailureKind.WRONG_FACT,
    FailureKind.MISSING_FACT,
    FailureKind.UNSUPPORTED_CLAIM,
    FailureKind.SHOULD_HAVE_REFUSED,
    FailureKind.OVER_REFUSAL,
    FailureKind.WRONG_CITATION,
    FailureKind.POOR_TRIAGE,
)
SKIP, QUIT = "s", "q"
_LABEL_WIDTH = 9


class Keyboard(Protocol):
    """Where answers come from."""

    def key(self) -> str:
        """One key in lower case; empty when nothing more will come."""
        ...

    def line(self) -> str:
        """One line without its end; empty when nothing more will come."""
        ...


class RealKeyboard:
    """The terminal, a key at a time; or lines from a pipe, of which a key is the first character.

    What is typed ahead is kept. Keys that send a sequence (arrows) are no letter, whatever their sequence ends in.
    """

    def __init__(self) -> None:
        self._ahead = ""

    def key(self) -> str:
        """One key; Ctrl-C and Ctrl-D read as nothing more to come."""
        if not sys.stdin.isatty():
            return self.line().strip().lower()[:1]
        try:
            typed = self._ahead or _typed(sys.stdin.fileno())
        except KeyboardInterrupt:
            return ""
        if typed.startswith(_ESCAPE):
            self._ahead = ""
            return _ESCAPE
        self._ahead = typed[1:]
        return "" if typed[:1] in {"", _END} else typed[0].lower()

    def line(self) -> str:
        """One line."""
        try:
            return sys.stdin.readline().rstrip("\n")
        except KeyboardInterrupt:
            return ""


_ESCAPE, _END = "\x1b", "\x04"
_MOST_BYTES = 64


def _typed(terminal: int) -> str:
    """What was typed, without waiting for Enter. Nothing that is waiting already is thrown away."""
    import termios  # only where somebody sits at a terminal
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        return os.read(terminal, _MOST_BYTES).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Screen:
    """Shows and asks. ``clean`` is what texts go through before they are shown: redaction, unless switched off."""

    def __init__(self, console: Console, keyboard: Keyboard, clean: Callable[[str], str]) -> None:
        self._console = console
        self._keyboard = keyboard
        self._clean = clean

    def show(self, check: SpotCheck, number: int, total: int) -> None:
        """The question, the gold and the answer; nothing of what the judge said."""
        answer = check.answer
        self._console.rule(f"{number} of {total}")
        self._row(
            "asked", f"{answer.asked_at:%Y-%m-%d %H:%M} UTC on {answer.target}, severity {int(answer.severity)}"
        )
        for turn in answer.turns[:-1]:
            self._row("before", turn)
        self._row("question", answer.turns[-1] if answer.turns else "")
        if answer.expected_refusal:
            self._row("expected", "a refusal")
        self._row(
            "gold", answer.gold if answer.gold is not None else "nobody wrote one down: judge by what you know"
        )
        self._row("answer", answer.answer)

    def ask(self) -> str:
        """One of r, w, u, s, q; other keys are asked again. Nothing more to come reads as q."""
        self._console.print(KEYS, style="bold", markup=False)
        while True:
            pressed = self._keyboard.key()
            if pressed in {*VERDICTS, SKIP}:
                return pressed
            if pressed in {"", QUIT}:
                return QUIT
            self._console.print(KEYS, markup=False)

    def what_is_wrong(self) -> FailureKind | None:
        """The kind of failure by its number; anything else leaves it open."""
        offered = "  ".join(f"{n} {kind.value}" for n, kind in enumerate(KINDS, 1))
        self._console.print(f"What is wrong? {offered}  (another key: not said)", markup=False)
        pressed = self._keyboard.key()
        return KINDS[int(pressed) - 1] if pressed in {str(n) for n in range(1, len(KINDS) + 1)} else None

    def note(self) -> str:
        """A line in the person's own words, or an empty one."""
        self._console.print("Why? One line, or only Enter:", markup=False)
        return self._keyboard.line().strip()

    def name(self) -> str:
        """Who is asking."""
        self._console.print("Who reviews? Your name goes on every label; it is remembered here:", markup=False)
        return self._keyboard.line().strip()

    def reveal(self, answer: JudgedAnswer, *, contradicted: bool) -> None:
        """What the judge had said, now that it cannot sway anybody."""
        word = "passed" if answer.judge_passed else f"failed ({answer.failure_kind or 'no kind'})"
        score = "" if answer.judge_score is None else f", score {answer.judge_score:.2f}"
        self._row("judge", f"{answer.lineage.model} {word} it{score}: {answer.judge_reason}")
        if contradicted:
            self._console.print("You and the judge differ: kept as a draft for the gold set.", style="yellow")

    def say(self, text: str) -> None:
        """One plain line."""
        self._console.print(text, markup=False, highlight=False)

    def _row(self, label: str, text: str) -> None:
        """A label and its text beside it, however many lines that has."""
        row = Table.grid(padding=(0, 1))
        row.add_column(style="dim", width=_LABEL_WIDTH)
        row.add_column(overflow="fold")
        row.add_row(label, Text(show_invisible(self._clean(text))))
        self._console.print(row)
