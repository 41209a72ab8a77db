"""``lookout gold review``: a person reads every draft beside its clause; only their yes makes it gold.

The terminal shows one draft at a time: the case beside the clause that it rests on; then it asks for one key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deployments.cli.exit_codes import ExitCode
from deployments.cli.review import QUIT, REVIEWER_FILE, SKIP, Keyboard, RealKeyboard
from flows.context import utc_now
from flows.goldset.mutation_testing import fails_itself
from flows.terminal import write_jsons
from flows.terminal_console import terminal_console
from monitors.alerts.redact import redact
from monitors.domains.pack import Domain
from monitors.errors import ConfigError
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify
from monitors.facts.similarity import differences, missing_from
from monitors.goldset.drafts import decide, read_drafts
from monitors.goldset.versions import cases_in, join
from monitors.graders.base import GraderSettings
from monitors.graders.panel import default_panel
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.drafts import DraftState, GoldDraft
from monitors.reports.invisible import show_invisible

YES, NO, EDIT = "y", "n", "e"
SEVERITIES: Final = {str(int(severity)): severity for severity in Severity}
KEYS = "[y]es, it is gold  [n]o  [e]dit  [1] [2] [3] severity  [s]kip for now  [q]uit"
SET_BY: Final = "set by "
"""The beginning of the reason of a severity that a person has chosen."""

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
    """A passage in one line: a document's line breaks mean nothing here."""
    return " ".join(text.split())


@dataclass(frozen=True)
class ReviewSession:
    """Where one review writes: the drafts' file, the suite, and under which name."""

    drafts: Path
    suite: Path
    person: str
    screen: DraftScreen
    graders: GraderSettings
    domain: Domain


def review_drafts_command(
    drafts: Path,
    *,
    suite: Path,
    by: str | None,
    remember_in: Path | None,
    raw: bool,
    as_json: bool,
    graders: GraderSettings,
    domain: Domain,
) -> ExitCode:
    """Ask about every draft that nobody has decided; or list them."""
    waiting = [draft for draft in read_drafts(drafts) if draft.state is DraftState.DRAFTED]
    cases_in(suite)  # report a suite that does not load before anybody reads a draft
    if as_json:
        write_jsons(draft.model_dump_json(exclude_defaults=True) + "\n" for draft in waiting)
        return ExitCode.PASS
    screen = DraftScreen(terminal_console(), RealKeyboard(), str if raw else redact)
    session = ReviewSession(
        drafts=drafts,
        suite=suite,
        person=_person(by, remember_in, screen),
        screen=screen,
        graders=graders,
        domain=domain,
    )
    finished = [draft for draft in waiting if _was_joined(session, draft)]
    if finished:
        screen.say(f"{len(finished)} joined {suite} before a session was cut off; that is noted now.")
    _review(session, [draft for draft in waiting if draft not in finished])
    return ExitCode.PASS


def _review(session: ReviewSession, waiting: Sequence[GoldDraft]) -> None:
    accepted = rejected = 0
    for number, draft in enumerate(waiting, start=1):
        session.screen.show(draft, number, len(waiting))
        decided = _decided(session, draft, number, len(waiting))
        if decided is None:
            break
        accepted += decided.state is DraftState.ACCEPTED
        rejected += decided.state is DraftState.REJECTED
    left = len(waiting) - accepted - rejected
    session.screen.say(f"{accepted} joined {session.suite}, {rejected} rejected, {left} left in {session.drafts}.")


def _decided(session: ReviewSession, draft: GoldDraft, number: int, total: int) -> GoldDraft | None:
    """The draft as it stands after one person's keys; ``None`` when they leave."""
    while True:
        key = session.screen.ask()
        if key == QUIT:
            return None
        if key == SKIP:
            return draft
        if key == NO:
            return _rejected(session, draft)
        if key == YES:
            accepted = _accepted(session, draft)
            if accepted is not None:
                return accepted
            continue
        draft = _changed(session, draft, key)
        session.screen.show(draft, number, total)


def _changed(session: ReviewSession, draft: GoldDraft, key: str) -> GoldDraft:
    if key in SEVERITIES:
        case = draft.case.model_copy(update={"severity": SEVERITIES[key]})
        return draft.model_copy(update={"case": case, "why": f"{SET_BY}{session.person}"})
    if key != EDIT:
        raise AssertionError(f"{key!r} is no key of this screen")
    try:
        return draft.model_copy(update={"case": session.screen.edited(draft.case)})
    except ValidationError:
        session.screen.say("That is no case: a type has letters, digits and _ only. Nothing was changed.", "yellow")
        return draft


def _accepted(session: ReviewSession, draft: GoldDraft) -> GoldDraft | None:
    """Add the case to the suite, then mark the draft: a kill between them leaves it joined, once."""
    reason = problem(draft, session.graders, session.domain)
    if reason:
        session.screen.say(f"This cannot be gold yet: {reason}. Edit it, or say no.", "yellow")
        return None
    now = utc_now()
    case = reviewed(draft.case, session.person, now)
    join(session.suite, case, paired_with=draft.original.id if draft.original else None)
    done = draft.model_copy(
        update={"case": case, "state": DraftState.ACCEPTED, "reviewed_by": session.person, "reviewed_at": now}
    )
    decide(session.drafts, done)
    return done


def _rejected(session: ReviewSession, draft: GoldDraft) -> GoldDraft:
    done = draft.model_copy(
        update={
            "state": DraftState.REJECTED,
            "reviewed_by": session.person,
            "reviewed_at": utc_now(),
            "note": redact(session.screen.why_not())[:2_000],
        }
    )
    decide(session.drafts, done)
    return done


def _was_joined(session: ReviewSession, draft: GoldDraft) -> bool:
    """Whether an earlier session was killed after this case joined; then its draft is marked as the suite says."""
    there = next((case for case in cases_in(session.suite) if case.id == draft.case.id), None)
    if there is None or there.provenance.reviewed_at is None or there.provenance.reviewed_by is None:
        return False
    decide(
        session.drafts,
        draft.model_copy(
            update={
                "case": there,
                "state": DraftState.ACCEPTED,
                "reviewed_by": there.provenance.reviewed_by,
                "reviewed_at": there.provenance.reviewed_at,
            }
        ),
    )
    return True


def reviewed(case: GoldCase, by: str, at: datetime) -> GoldCase:
    """The case with the name of who said yes, and when."""
    return case.model_copy(
        update={"provenance": case.provenance.model_copy(update={"reviewed_by": by, "reviewed_at": at})}
    )


def problem(draft: GoldDraft, graders: GraderSettings, domain: Domain) -> str:
    """Why a draft, as a person has changed it, cannot be gold; empty when it can."""
    case = draft.case
    if draft.quote is not None:
        unfounded = missing_from(case.gold, draft.quote.text)
        if unfounded:
            return f"the gold states {', '.join(unfounded)}, which the clause does not"
    if draft.original is not None:
        changed = [
            *differences(draft.original.question, case.question),
            *differences(draft.original.gold, case.gold),
        ]
        if changed:
            return f"against the original, {', '.join(changed)}"
    found = identify(case.question)
    if found is not case.language:
        return f"the question reads as {found.value}, the case says {case.language.value}"
    if find_disclosures(f"{case.question}\n{case.gold}", account_patterns=graders.account_patterns):
        return "it holds personal data"
    return fails_itself(case, default_panel(graders, domain))


def _person(by: str | None, remember_in: Path | None, screen: DraftScreen) -> str:
    """Who reviews: as given, else as remembered beside the warehouse, else as typed. `ConfigError` if nobody."""
    remembered_file = remember_in / REVIEWER_FILE if remember_in is not None else None
    remembered = (
        remembered_file.read_text(encoding="utf-8").strip()
        if remembered_file is not None and remembered_file.exists()
        else ""
    )
    person = (by or remembered or screen.name()).strip()
    if not person:
        raise ConfigError("an accepted case needs a name; say who you are with --as")
    if remembered_file is not None and remembered_file.parent.exists():
        remembered_file.write_text(f"{person}\n", encoding="utf-8")
    return person
