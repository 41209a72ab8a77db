"""One draft of an incident or a trace: what was asked, what came, what was wrong; then one key, and the gold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deployments.review_screen import QUIT, SKIP, Keyboard
from monitors.goldset.growth import Candidate
from monitors.records.base import Severity
from monitors.reports.visible import show_invisible

GOLD, REFUSAL, NO, YES = "g", "r", "n", "y"
SEVERITIES: Final = {str(int(severity)): severity for severity in Severity}
KEYS = "[g]old: write the right answer  [r]efusal is right  [n]ot wanted  [1] [2] [3] severity  [s]kip  [q]uit"
_LABEL_WIDTH = 9


class GrowScreen:
    """Shows and asks. ``clean`` is what texts go through before they are shown."""

    def __init__(self, console: Console, keyboard: Keyboard, clean: Callable[[str], str]) -> None:
        self._console = console
        self._keyboard = keyboard
        self._clean = clean

    def show(self, candidate: Candidate, severity: Severity, number: int, total: int) -> None:
        """The draft, with why its severity is proposed and what asks the same."""
        draft = candidate.draft
        self._console.rule(f"{number} of {total}")
        for label, text in rows_of(candidate, severity):
            self._row(label, text)
        if draft.cut:
            self.say(
                "Only excerpts were kept of this conversation: complete the question before you say yes.", "yellow"
            )

    def ask(self) -> str:
        """One of g, r, n, 1, 2, 3, s, q; other keys are asked again. Nothing more to come reads as q."""
        return self._pressed(KEYS, {GOLD, REFUSAL, NO, SKIP, *SEVERITIES})

    def confirmed(self, question: str) -> bool:
        """A yes or a no."""
        return self._pressed(f"{question} [y]es  [n]o", {YES, NO}) == YES

    def line(self, prompt: str) -> str:
        """One line."""
        self.say(prompt)
        return self._keyboard.line().strip()

    def say(self, text: str, style: str | None = None) -> None:
        """One plain line."""
        self._console.print(show_invisible(text), style=style, markup=False, highlight=False)

    def _pressed(self, keys: str, accepted: set[str]) -> str:
        self._console.print(keys, style="bold", markup=False, highlight=False)
        while True:
            pressed = self._keyboard.key()
            if pressed in accepted:
                return pressed
            if pressed in {"", QUIT}:
                return QUIT
            self._console.print(keys, markup=False, highlight=False)

    def _row(self, label: str, text: str) -> None:
        row = Table.grid(padding=(0, 1))
        row.add_column(style="dim", width=_LABEL_WIDTH)
        row.add_column(overflow="fold")
        row.add_row(label, Text(show_invisible(self._clean(text))))
        self._console.print(row)


def rows_of(candidate: Candidate, severity: Severity) -> list[tuple[str, str]]:
    """What is told of a draft, in order."""
    draft = candidate.draft
    rows = [("from", f"{draft.origin.value} of {draft.target}, {draft.made_at:%Y-%m-%d %H:%M} UTC, by {draft.by}")]
    rows += [("before", turn) for turn in draft.turns[:-1]]
    rows.append(("question", draft.turns[-1] if draft.turns else ""))
    rows.append(("bad reply", draft.bad_reply or "none is known"))
    rows.append(("finding", draft.finding))
    if draft.gold is not None:
        rows.append(("proposed", draft.gold))
    proposed = f"proposed: {draft.severity_reason}" if severity is draft.suggested_severity else "set by you"
    rows.append(("severity", f"{int(severity)}, {proposed}"))
    if candidate.same_as:
        more = len(candidate.same_as)
        rows.append(
            ("the same", f"{more} more {'draft asks' if more == 1 else 'drafts ask'} this; one answer decides all")
        )
    if candidate.asked_by is not None:
        rows.append(("asked by", f"{candidate.asked_by} of the suite already: [n], unless it asks something else"))
    return rows
