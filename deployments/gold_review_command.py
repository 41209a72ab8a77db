"""``lookout gold review``: a person reads every draft beside its clause; only their yes makes it gold."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from deployments.exit_codes import ExitCode
from deployments.gold_review_screen import EDIT, NO, SET_BY, SEVERITIES, YES, DraftScreen
from deployments.review_command import REVIEWER_FILE
from deployments.review_screen import QUIT, SKIP, RealKeyboard
from flows.gold_bite import fails_itself
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.errors import ConfigError
from monitors.facts.disclosures import find_disclosures
from monitors.facts.language import identify
from monitors.goldset.drafts_file import decide, read_drafts
from monitors.goldset.join import cases_in, join
from monitors.goldset.quantities_kept import differences, missing_from
from monitors.graders.panel import default_panel
from monitors.graders.settings import GraderSettings
from monitors.records.cases import GoldCase
from monitors.records.drafts import DraftState, GoldDraft


@dataclass(frozen=True)
class Desk:
    """Where one session writes: the drafts' file, the suite, and under which name."""

    drafts: Path
    suite: Path
    person: str
    screen: DraftScreen
    graders: GraderSettings


def review_drafts_command(
    drafts: Path,
    *,
    suite: Path,
    by: str | None,
    remember_in: Path | None,
    raw: bool,
    as_json: bool,
    graders: GraderSettings | None = None,
) -> ExitCode:
    """Ask about every draft that nobody has decided; or list them."""
    waiting = [draft for draft in read_drafts(drafts) if draft.state is DraftState.DRAFTED]
    cases_in(suite)  # a suite that does not load is told before anybody reads a draft
    if as_json:
        sys.stdout.writelines(draft.model_dump_json(exclude_defaults=True) + "\n" for draft in waiting)
        return ExitCode.PASS
    screen = DraftScreen(Console(), RealKeyboard(), str if raw else redact)
    desk = Desk(
        drafts=drafts,
        suite=suite,
        person=_person(by, remember_in, screen),
        screen=screen,
        graders=graders or GraderSettings(),
    )
    finished = [draft for draft in waiting if _was_joined(desk, draft)]
    if finished:
        screen.say(f"{len(finished)} joined {suite} before a session was cut off; that is noted now.")
    _review(desk, [draft for draft in waiting if draft not in finished])
    return ExitCode.PASS


def _review(desk: Desk, waiting: Sequence[GoldDraft]) -> None:
    accepted = rejected = 0
    for number, draft in enumerate(waiting, start=1):
        desk.screen.show(draft, number, len(waiting))
        decided = _decided(desk, draft, number, len(waiting))
        if decided is None:
            break
        accepted += decided.state is DraftState.ACCEPTED
        rejected += decided.state is DraftState.REJECTED
    left = len(waiting) - accepted - rejected
    desk.screen.say(f"{accepted} joined {desk.suite}, {rejected} rejected, {left} left in {desk.drafts}.")


def _decided(desk: Desk, draft: GoldDraft, number: int, total: int) -> GoldDraft | None:
    """The draft as it stands after one person's keys; ``None`` when they leave."""
    while True:
        key = desk.screen.ask()
        if key == QUIT:
            return None
        if key == SKIP:
            return draft
        if key == NO:
            return _rejected(desk, draft)
        if key == YES:
            accepted = _accepted(desk, draft)
            if accepted is not None:
                return accepted
            continue
        draft = _changed(desk, draft, key)
        desk.screen.show(draft, number, total)


def _changed(desk: Desk, draft: GoldDraft, key: str) -> GoldDraft:
    if key in SEVERITIES:
        case = draft.case.model_copy(update={"severity": SEVERITIES[key]})
        return draft.model_copy(update={"case": case, "why": f"{SET_BY}{desk.person}"})
    if key != EDIT:
        raise AssertionError(f"{key!r} is no key of this screen")
    try:
        return draft.model_copy(update={"case": desk.screen.edited(draft.case)})
    except ValidationError:
        desk.screen.say("That is no case: a type has letters, digits and _ only. Nothing was changed.", "yellow")
        return draft


def _accepted(desk: Desk, draft: GoldDraft) -> GoldDraft | None:
    """The suite first, then the draft's own line: who is killed between them finds it joined, once."""
    reason = problem(draft, desk.graders)
    if reason:
        desk.screen.say(f"This cannot be gold yet: {reason}. Edit it, or say no.", "yellow")
        return None
    now = utc_now()
    case = reviewed(draft.case, desk.person, now)
    join(desk.suite, case, paired_with=draft.original.id if draft.original else None)
    done = draft.model_copy(
        update={"case": case, "state": DraftState.ACCEPTED, "reviewed_by": desk.person, "reviewed_at": now}
    )
    decide(desk.drafts, done)
    return done


def _rejected(desk: Desk, draft: GoldDraft) -> GoldDraft:
    done = draft.model_copy(
        update={
            "state": DraftState.REJECTED,
            "reviewed_by": desk.person,
            "reviewed_at": utc_now(),
            "note": redact(desk.screen.why_not())[:2_000],
        }
    )
    decide(desk.drafts, done)
    return done


def _was_joined(desk: Desk, draft: GoldDraft) -> bool:
    """Whether an earlier session was killed after this case joined; then its draft is marked as the suite says."""
    there = next((case for case in cases_in(desk.suite) if case.id == draft.case.id), None)
    if there is None or there.provenance.reviewed_at is None or there.provenance.reviewed_by is None:
        return False
    decide(
        desk.drafts,
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


def problem(draft: GoldDraft, graders: GraderSettings) -> str:
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
    return fails_itself(case, default_panel(graders))


def _person(by: str | None, remember_in: Path | None, screen: DraftScreen) -> str:
    """Who reviews: as said, else as remembered beside the warehouse, else asked. `ConfigError` when nobody says."""
    kept = remember_in / REVIEWER_FILE if remember_in is not None else None
    remembered = kept.read_text(encoding="utf-8").strip() if kept is not None and kept.exists() else ""
    person = (by or remembered or screen.name()).strip()
    if not person:
        raise ConfigError("an accepted case needs a name; say who you are with --as")
    if kept is not None and kept.parent.exists():
        kept.write_text(f"{person}\n", encoding="utf-8")
    return person
