"""One draft at a time, in a terminal: the case beside the clause that it rests on; then one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deployments.review_screen import QUIT, SKIP, Keyboard
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.drafts import GoldDraft
from monitors.reports.visible import show_invisible

YES, NO, EDIT = "y", "n", "e"
SEVERITIES: Final = {str(int(severity)): severity for severity in Severity}
KEYS = "[y]es, it is gold  [n]o  [e]dit  [1] [2] [3] severity  [s]kip for now  [q]uit"
SET_BY: Final = "set by "
"""How the reason of a severity begins that a person has chosen."""

SIDE_BY_SIDE_FROM: Final = 100
"""Columns from which the case and its clause stand beside each other; below, the clause stands under the case."""
_LABEL_WIDTH = 9


class DraftScreen:
    """Shows and asks. ``clean`` is what texts go through before they are shown: redaction, unless switched off."""

    def __init__(self, console: Console, keyboard: Keyboard, clean: Callable[[str], str]) -> None:
        self._console = console
        self._keyboard = keyboard
        self._clean = clean

    def show(self, draft: GoldDraft, number: int, total: int) -> None:
        """The case as it would join, and what it rests on."""
        self._console.rule(f"{number} of {total}")
        case, ground = self._case(draft), self._ground(draft)
        if self._console.width >= SIDE_BY_SIDE_FROM:
            both = Table.grid(padding=(0, 2), expand=True)
            both.add_column(ratio=1)
            both.add_column(ratio=1)
            both.add_row(case, ground)
            self._console.print(both)
        else:
            self._console.print(Group(case, Text(), ground))

    def ask(self) -> str:
        """One of y, n, e, 1, 2, 3, s, q; other keys are asked again. Nothing more to come reads as q."""
        self._console.print(KEYS, style="bold", markup=False, highlight=False)
        while True:
            pressed = self._keyboard.key()
            if pressed in {YES, NO, EDIT, SKIP, *SEVERITIES}:
                return pressed
            if pressed in {"", QUIT}:
                return QUIT
            self._console.print(KEYS, markup=False, highlight=False)

    def edited(self, case: GoldCase) -> GoldCase:
        """The case with another question, gold or type; a line that is only Enter leaves what is there."""
        question = self._line("question", case.question)
        gold = self._line("gold", case.gold)
        kind = self._line("type", case.type)
        return GoldCase.model_validate(
            case.model_dump() | {"turns": (*case.turns[:-1], question), "gold": gold, "type": kind}
        )

    def why_not(self) -> str:
        """A line in the person's own words, or an empty one."""
        return self.line("Why not? One line, or only Enter:")

    def name(self) -> str:
        """Who is asking."""
        return self.line("Who reviews? Your name goes on every case; it is remembered here:")

    def line(self, prompt: str) -> str:
        """One line."""
        self.say(prompt)
        return self._keyboard.line().strip()

    def say(self, text: str, style: str | None = None) -> None:
        """One plain line."""
        self._console.print(text, style=style, markup=False, highlight=False)

    def _line(self, what: str, now: str) -> str:
        return self.line(f"{what} (Enter keeps: {show_invisible(self._clean(now))})") or now

    def _case(self, draft: GoldDraft) -> RenderableType:
        case = draft.case
        rows = [("before", turn) for turn in case.turns[:-1]]
        rows += [("question", case.question), ("gold", case.gold)]
        rows += [("expected", "a refusal")] if case.expected_refusal else []
        why = draft.why if draft.why.startswith(SET_BY) else f"proposed: {draft.why or 'no reason given'}"
        rows += [
            ("severity", f"{int(case.severity)}, {why}"),
            ("type", f"{case.type}, in {case.language.value}"),
            ("drafted", f"by {draft.model}, {draft.made_at:%Y-%m-%d %H:%M} UTC"),
        ]
        return self._rows(rows)

    def _ground(self, draft: GoldDraft) -> RenderableType:
        if draft.original is not None:
            original = draft.original
            return self._rows(
                [
                    ("original", f"{original.id}, in {original.language.value}"),
                    ("question", original.question),
                    ("gold", original.gold),
                ]
            )
        quote = draft.quote
        if quote is None:
            raise AssertionError("a draft has a quote or an original")
        around = [("before", f"… {_line(quote.before)}")] if quote.before.strip() else []
        behind = [("after", f"{_line(quote.after)} …")] if quote.after.strip() else []
        where = ("document", f"{quote.document}, from character {quote.start:,}")
        return self._rows([where, *around, ("clause", _line(quote.text)), *behind], strong="clause")

    def _rows(self, rows: list[tuple[str, str]], strong: str = "") -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(style="dim", width=_LABEL_WIDTH)
        table.add_column(overflow="fold")
        for label, text in rows:
            style = "" if not strong else "bold" if label == strong else "dim"
            table.add_row(label, Text(self._shown(text), style=style))
        return table

    def _shown(self, text: str) -> str:
        return show_invisible(self._clean(text))


def _line(text: str) -> str:
    """A passage in one line: where a document breaks its lines says nothing here."""
    return " ".join(text.split())
