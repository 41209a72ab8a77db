"""``lookout gold grow``: incidents, clicks and traces become cases that were seen to fail on the bad reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from deployments.alerts_desk import alerts_desk
from deployments.data_folder import data_folder_of
from deployments.exit_codes import ExitCode
from deployments.gold_grow_queue import all_waiting, graders_of, load, print_lines, print_list, take_one
from deployments.gold_grow_screen import GOLD, NO, REFUSAL, SEVERITIES, GrowScreen
from deployments.gold_review_command import reviewed
from deployments.review_command import REVIEWER_FILE
from deployments.review_screen import QUIT, SKIP, RealKeyboard
from flows.gold_bite import Bite, bite_of
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.config import Config, load_config
from monitors.errors import ConfigError
from monitors.goldset.growth import Candidate, candidates, case_id_of, case_of, refilled
from monitors.goldset.join import cases_in, join
from monitors.graders.panel import default_panel
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.drafts import DraftOutcome
from monitors.records.people import CaseDraft
from warehouse.drafts import append_outcomes
from warehouse.store import Store

TYPE = "incident"


@dataclass(frozen=True)
class GrowOptions:
    """What ``lookout gold grow`` was told."""

    suite: Path | None
    config: Path
    data_folder: Path | None
    target: str | None
    take: str | None
    by: str | None
    as_json: bool


@dataclass(frozen=True)
class Desk:
    """Where one session reads and writes, and under which name."""

    store: Store
    suite: Path
    person: str
    screen: GrowScreen
    config: Config | None


def grow_command(options: GrowOptions) -> ExitCode:
    """Take a trace, or list what waits, or ask about each of them."""
    folder = data_folder_of(options.config, options.data_folder)
    store = alerts_desk(options.config, options.data_folder).store
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
        screen = GrowScreen(Console(), RealKeyboard(), redact)
        person = _person(options.by, folder, screen)
        _session(Desk(store, options.suite, person, screen, config), waiting)
        load(store)
    return ExitCode.PASS


def _session(desk: Desk, waiting: Sequence[Candidate]) -> None:
    there = {case.id: case for case in cases_in(desk.suite)}
    cut_off = [one for one in waiting if case_id_of(one.draft) in there]
    for one in cut_off:
        source = there[case_id_of(one.draft)].provenance
        by, at = source.reviewed_by or desk.person, source.reviewed_at or utc_now()
        _done(desk, one, by=by, at=at, joined=True)
    if cut_off:
        desk.screen.say(f"{len(cut_off)} joined {desk.suite} before a session was cut off; that is noted now.")
    left = [one for one in waiting if one not in cut_off]
    joined = rejected = 0
    for number, one in enumerate(left, start=1):
        desk.screen.show(one, one.draft.suggested_severity, number, len(left))
        decided = _decided(desk, one, number, len(left))
        if decided == QUIT:
            break
        joined += decided == GOLD
        rejected += decided == NO
    desk.screen.say(f"{joined} joined {desk.suite}, {rejected} not wanted, {len(left) - joined - rejected} left.")


def _decided(desk: Desk, one: Candidate, number: int, total: int) -> str:
    """What a person made of a draft: gold, no, skip or quit."""
    severity = one.draft.suggested_severity
    while True:
        key = desk.screen.ask()
        if key in {QUIT, SKIP}:
            return key
        if key == NO:
            note = desk.screen.line("Why not? One line, or only Enter:")
            _done(desk, one, by=desk.person, at=utc_now(), joined=False, note=redact(note)[:2_000])
            return NO
        if key in SEVERITIES:
            severity = SEVERITIES[key]
            desk.screen.show(one, severity, number, total)
            continue
        case = _written(desk, one.draft, severity, refusal=key == REFUSAL)
        if case is not None and _joined(desk, one, case):
            return GOLD


def _written(desk: Desk, draft: CaseDraft, severity: Severity, *, refusal: bool) -> GoldCase | None:
    """The case in the person's words; ``None`` when they gave none."""
    asked = desk.screen.line("question (Enter keeps it)") or draft.turns[-1]
    draft = draft.model_copy(update={"turns": (*draft.turns[:-1], redact(asked))})
    if refusal:
        gold = desk.screen.line("Why must it refuse? One line:")
    else:
        proposed = " (Enter takes what is proposed)" if draft.gold else ""
        gold = desk.screen.line(f"The right answer, one line{proposed}:") or draft.gold or ""
    kind = desk.screen.line(f"type (Enter: {TYPE})") or TYPE
    if not gold:
        desk.screen.say("Without a right answer it is no case. Nothing was changed.", "yellow")
        return None
    try:
        return case_of(draft, gold, refusal=refusal, severity=severity, kind=kind)
    except ValidationError:
        desk.screen.say("That is no case: a type has letters, digits and _ only. Nothing was changed.", "yellow")
        return None


def _joined(desk: Desk, one: Candidate, case: GoldCase) -> bool:
    """Whether the case bites and joined. The suite first, then the outcome: a kill between them is found again."""
    bad = refilled(one.draft.bad_reply) if one.draft.bad_reply else None
    bitten = bite_of(case, bad, default_panel(graders_of(desk.config, one.draft.target)), one.draft.failure_kind)
    desk.screen.say(redact(bitten.reason), "green" if bitten.bite is Bite.BITES else "yellow")
    if bitten.bite in {Bite.GOLD_FAILS, Bite.TOOTHLESS}:
        desk.screen.say("It does not join like this. Write another gold, or say that it is not wanted.")
        return False
    if bitten.bite is Bite.UNDECIDABLE and not desk.screen.confirmed(
        "Without a judge nobody can tell whether it bites. Join all the same?"
    ):
        return False
    now = utc_now()
    join(desk.suite, reviewed(case, desk.person, now))
    _done(desk, one, by=desk.person, at=now, joined=True, note="" if bitten.bite is Bite.BITES else "undecidable")
    return True


def _done(desk: Desk, one: Candidate, *, by: str, at: datetime, joined: bool, note: str = "") -> None:
    """The draft and all that ask the same are decided."""
    case_id = case_id_of(one.draft) if joined else None
    append_outcomes(
        desk.store.journal,
        tuple(
            DraftOutcome(
                draft_id=draft_id, at=at, by=by, joined=joined, case_id=case_id, note=note,
                suite=desk.suite.name if joined else "",
            )
            for draft_id in (one.draft.id, *one.same_as)
        ),
    )  # fmt: skip


def _person(by: str | None, folder: Path, screen: GrowScreen | None) -> str:
    """Who decides: as said, else as remembered beside the warehouse, else asked."""
    kept = folder / REVIEWER_FILE
    remembered = kept.read_text(encoding="utf-8").strip() if kept.exists() else ""
    asked = screen.line("Who reviews? Your name goes on every case; it is remembered here:") if (
        screen is not None and not by and not remembered
    ) else ""  # fmt: skip
    person = (by or remembered or asked).strip()
    if not person:
        raise ConfigError("a case needs the name of who wanted it; say who you are with --as")
    kept.write_text(f"{person}\n", encoding="utf-8")
    return person
