"""``lookout gold grow``: incidents, clicks and traces become cases that catch the bad reply.

It reads and lists what waits, and can add one conversation of a run. For each draft it shows what was asked, what
came and what was wrong; then it asks for one key, and the gold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deployments.cli.alerts.incidents import WAIT_S, open_alerts_session
from deployments.cli.data_folder import data_folder_of
from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.review import reviewed
from deployments.cli.review import DRAFTS_FILE, QUIT, REVIEWER_FILE, SKIP, Keyboard, RealKeyboard
from flows.context import utc_now
from flows.goldset.drafting import draft_of_trace
from flows.goldset.mutation_testing import MutationVerdict, detect_bad_reply
from flows.terminal import write_json, write_note
from flows.terminal_console import terminal_console
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.domains.pack import Domain, load_domain
from monitors.errors import ConfigError, WarehouseBusy
from monitors.goldset.drafts import DraftCandidate, candidates, case_id_of, case_of, refilled
from monitors.goldset.versions import cases_in, join
from monitors.graders.base import GraderSettings
from monitors.graders.panel import default_panel
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.drafts import DraftOutcome
from monitors.records.operator_actions import CaseDraft
from monitors.reports.invisible import show_invisible
from warehouse.database.store import Store
from warehouse.queries.operator_actions import append_draft, append_outcomes, decided_drafts, trace, waiting_drafts

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

    def show(self, candidate: DraftCandidate, severity: Severity, number: int, total: int) -> None:
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


def rows_of(candidate: DraftCandidate, severity: Severity) -> list[tuple[str, str]]:
    """The lines about a draft, in order."""
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


def all_waiting(store: Store, folder: Path, target: str | None) -> Sequence[CaseDraft]:
    """Drafts of the warehouse, and those that `lookout review` left beside it, worst first."""
    found = {draft.id: draft for draft in waiting_drafts(store, target=target, wait_s=WAIT_S)}
    path = folder / DRAFTS_FILE
    if path.exists():
        done = decided_drafts(store, wait_s=WAIT_S)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            draft = _read(line, path, number)
            if draft is not None and draft.id not in done and target in {None, draft.target}:
                found.setdefault(draft.id, draft)
    return sorted(found.values(), key=lambda draft: (-draft.suggested_severity, draft.made_at, draft.id))


def _read(line: str, path: Path, number: int) -> CaseDraft | None:
    """A line of drafts; one that is none (a kill may have torn the last) is reported and skipped."""
    try:
        return CaseDraft.model_validate_json(line) if line.strip() else None
    except ValidationError:
        write_note(f"lookout: {path}, line {number}: no draft, passed over\n")
        return None


def take_one(store: Store, which: str, config: Config | None, person: str) -> None:
    """Make a draft of the conversation RUN/CASE. `ConfigError` when it is not stored."""
    run_id, _, case_id = which.partition("/")
    found = trace(store, run_id, case_id, wait_s=WAIT_S) if case_id else None
    if found is None:
        raise ConfigError(
            f"--take {which}: no such conversation is kept; accepted: RUN/CASE, as the table "
            "results shows them to `lookout sql`"
        )
    patterns = graders_of(config, found.target)[0].account_patterns
    append_draft(store.journal, draft_of_trace(found, by=person, at=utc_now(), account_patterns=patterns))
    load(store)


def graders_of(config: Config | None, target: str) -> tuple[GraderSettings, Domain]:
    """The grader settings and the domain that read a target's replies."""
    known = config.targets.get(target) if config is not None else None
    return (known.graders, known.domain) if known is not None else (GraderSettings(), load_domain())


def print_list(waiting: Sequence[DraftCandidate]) -> None:
    """Print drafts for a person."""
    screen = GrowScreen(terminal_console(), RealKeyboard(), redact)
    for number, one in enumerate(waiting, start=1):
        screen.show(one, one.draft.suggested_severity, number, len(waiting))
    if waiting:
        screen.say("To make gold of them: lookout gold grow --suite SUITE")
    else:
        screen.say(
            'No draft waits. `lookout alerts draft ID` and Slack\'s "Add to gold" make some, so does --take.'
        )


def print_lines(waiting: Sequence[DraftCandidate]) -> None:
    """Print drafts for a script: JSON lines."""
    for one in waiting:
        summary = one.model_dump(mode="json") | {"details": dict(rows_of(one, one.draft.suggested_severity))}
        write_json(json.dumps(summary, ensure_ascii=False) + "\n")


def load(store: Store) -> None:
    """Load what is pending; if another process is loading, it loads this as well."""
    try:
        store.load_pending(WAIT_S)
    except WarehouseBusy:
        write_note("lookout: the warehouse is busy; what was decided is kept and loaded later\n")


TYPE = "incident"


@dataclass(frozen=True)
class GrowOptions:
    """The options of ``lookout gold grow``."""

    suite: Path | None
    config: Path
    data_folder: Path | None
    target: str | None
    take: str | None
    by: str | None
    as_json: bool


@dataclass(frozen=True)
class GrowSession:
    """Where one session reads and writes, and under which name."""

    store: Store
    suite: Path
    person: str
    screen: GrowScreen
    config: Config | None


def grow_command(options: GrowOptions) -> ExitCode:
    """Take a trace, or list what waits, or ask about each of them."""
    folder = data_folder_of(options.config, options.data_folder)
    store = open_alerts_session(options.config, options.data_folder).store
    load(store)
    config = load_config(options.config) if options.config.exists() else None
    if options.take is not None:
        take_one(store, options.take, config, _person(options.by, folder, None))
    suite = cases_in(options.suite) if options.suite is not None else ()
    waiting = candidates(all_waiting(store, folder, options.target), suite)
    if options.as_json:
        print_lines(waiting)
    elif options.suite is None:
        print_list(waiting)
    else:
        screen = GrowScreen(terminal_console(), RealKeyboard(), redact)
        person = _person(options.by, folder, screen)
        _session(GrowSession(store, options.suite, person, screen, config), waiting)
        load(store)
    return ExitCode.PASS


def _session(session: GrowSession, waiting: Sequence[DraftCandidate]) -> None:
    there = {case.id: case for case in cases_in(session.suite)}
    cut_off = [one for one in waiting if case_id_of(one.draft) in there]
    for one in cut_off:
        source = there[case_id_of(one.draft)].provenance
        by, at = source.reviewed_by or session.person, source.reviewed_at or utc_now()
        _done(session, one, by=by, at=at, joined=True)
    if cut_off:
        session.screen.say(
            f"{len(cut_off)} joined {session.suite} before a session was cut off; that is noted now."
        )
    left = [one for one in waiting if one not in cut_off]
    joined = rejected = 0
    for number, one in enumerate(left, start=1):
        session.screen.show(one, one.draft.suggested_severity, number, len(left))
        decided = _decided(session, one, number, len(left))
        if decided == QUIT:
            break
        joined += decided == GOLD
        rejected += decided == NO
    session.screen.say(
        f"{joined} joined {session.suite}, {rejected} not wanted, {len(left) - joined - rejected} left."
    )


def _decided(session: GrowSession, one: DraftCandidate, number: int, total: int) -> str:
    """The person's decision on a draft: gold, no, skip or quit."""
    severity = one.draft.suggested_severity
    while True:
        key = session.screen.ask()
        if key in {QUIT, SKIP}:
            return key
        if key == NO:
            note = session.screen.line("Why not? One line, or only Enter:")
            _done(session, one, by=session.person, at=utc_now(), joined=False, note=redact(note)[:2_000])
            return NO
        if key in SEVERITIES:
            severity = SEVERITIES[key]
            session.screen.show(one, severity, number, total)
            continue
        case = _written(session, one.draft, severity, refusal=key == REFUSAL)
        if case is not None and _joined(session, one, case):
            return GOLD


def _written(session: GrowSession, draft: CaseDraft, severity: Severity, *, refusal: bool) -> GoldCase | None:
    """The case in the person's words; ``None`` when they gave none."""
    asked = session.screen.line("question (Enter keeps it)") or draft.turns[-1]
    draft = draft.model_copy(update={"turns": (*draft.turns[:-1], redact(asked))})
    if refusal:
        gold = session.screen.line("Why must it refuse? One line:")
    else:
        proposed = " (Enter takes what is proposed)" if draft.gold else ""
        gold = session.screen.line(f"The right answer, one line{proposed}:") or draft.gold or ""
    kind = session.screen.line(f"type (Enter: {TYPE})") or TYPE
    if not gold:
        session.screen.say("Without a right answer it is no case. Nothing was changed.", "yellow")
        return None
    try:
        return case_of(draft, gold, refusal=refusal, severity=severity, kind=kind)
    except ValidationError:
        session.screen.say("That is no case: a type has letters, digits and _ only. Nothing was changed.", "yellow")
        return None


def _joined(session: GrowSession, one: DraftCandidate, case: GoldCase) -> bool:
    """Whether the case catches the bad reply and joined.

    It joins the suite before its outcome is stored: after a kill between the two, the next session finds it.
    """
    bad = refilled(one.draft.bad_reply) if one.draft.bad_reply else None
    outcome = detect_bad_reply(
        case, bad, default_panel(*graders_of(session.config, one.draft.target)), one.draft.failure_kind
    )
    session.screen.say(
        redact(outcome.reason), "green" if outcome.detection is MutationVerdict.DETECTED else "yellow"
    )
    if outcome.detection in {MutationVerdict.GOLD_FAILS, MutationVerdict.MISSED}:
        session.screen.say("It does not join like this. Write another gold, or say that it is not wanted.")
        return False
    if outcome.detection is MutationVerdict.UNDECIDABLE and not session.screen.confirmed(
        "Without a judge nobody knows whether a grader catches the bad reply. Join all the same?"
    ):
        return False
    now = utc_now()
    join(session.suite, reviewed(case, session.person, now))
    _done(
        session,
        one,
        by=session.person,
        at=now,
        joined=True,
        note="" if outcome.detection is MutationVerdict.DETECTED else "undecidable",
    )
    return True


def _done(
    session: GrowSession, one: DraftCandidate, *, by: str, at: datetime, joined: bool, note: str = ""
) -> None:
    """Store that the draft and all that ask the same are decided."""
    case_id = case_id_of(one.draft) if joined else None
    append_outcomes(
        session.store.journal,
        tuple(
            DraftOutcome(
                draft_id=draft_id, at=at, by=by, joined=joined, case_id=case_id, note=note,
                suite=session.suite.name if joined else "",
            )
            for draft_id in (one.draft.id, *one.same_as)
        ),
    )  # fmt: skip


def _person(by: str | None, folder: Path, screen: GrowScreen | None) -> str:
    """Who decides: the name of the option, else the one remembered beside the warehouse, else the one typed."""
    remembered_file = folder / REVIEWER_FILE
    remembered = remembered_file.read_text(encoding="utf-8").strip() if remembered_file.exists() else ""
    asked = screen.line("Who reviews? Your name goes on every case; it is remembered here:") if (
        screen is not None and not by and not remembered
    ) else ""  # fmt: skip
    person = (by or remembered or asked).strip()
    if not person:
        raise ConfigError("a case needs the name of who wanted it; say who you are with --as")
    remembered_file.write_text(f"{person}\n", encoding="utf-8")
    return person
