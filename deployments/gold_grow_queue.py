"""What waits for ``lookout gold grow``: read, listed, and added to by one conversation of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from deployments.alerts_desk import WAIT_S
from deployments.gold_grow_screen import GrowScreen, rows_of
from deployments.review_command import DRAFTS_FILE
from deployments.review_screen import RealKeyboard
from flows.take_trace import draft_of_trace
from flows.wiring import utc_now
from monitors.alerts.redact import redact
from monitors.config import Config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.goldset.growth import Candidate
from monitors.graders.settings import GraderSettings
from monitors.records.people import CaseDraft
from warehouse.drafts import append_draft, decided_drafts, trace, waiting_drafts
from warehouse.store import Store


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
    """A line of drafts; one that is none (a kill may have torn the last) is told and passed over."""
    try:
        return CaseDraft.model_validate_json(line) if line.strip() else None
    except ValidationError:
        sys.stderr.write(f"lookout: {path}, line {number}: no draft, passed over\n")
        return None


def take_one(store: Store, which: str, config: Config | None, person: str) -> None:
    """Make a draft of the conversation RUN/CASE. `ConfigError` when it is not kept."""
    run_id, _, case_id = which.partition("/")
    found = trace(store, run_id, case_id, wait_s=WAIT_S) if case_id else None
    if found is None:
        raise ConfigError(
            f"--take {which}: no such conversation is kept; accepted: RUN/CASE, as the table "
            "results shows them to `lookout sql`"
        )
    patterns = graders_of(config, found.target).account_patterns
    append_draft(store.journal, draft_of_trace(found, by=person, at=utc_now(), account_patterns=patterns))
    load(store)


def graders_of(config: Config | None, target: str) -> GraderSettings:
    """How a target's replies are read."""
    known = config.targets.get(target) if config is not None else None
    return known.graders if known is not None else GraderSettings()


def print_list(waiting: Sequence[Candidate]) -> None:
    """For a person."""
    screen = GrowScreen(Console(), RealKeyboard(), redact)
    for number, one in enumerate(waiting, start=1):
        screen.show(one, one.draft.suggested_severity, number, len(waiting))
    if waiting:
        screen.say("To make gold of them: lookout gold grow --suite SUITE")
    else:
        screen.say(
            'No draft waits. `lookout alerts draft ID` and Slack\'s "Add to gold" make some, so does --take.'
        )


def print_lines(waiting: Sequence[Candidate]) -> None:
    """For a script: JSON lines."""
    for one in waiting:
        told = one.model_dump(mode="json") | {"told": dict(rows_of(one, one.draft.suggested_severity))}
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")


def load(store: Store) -> None:
    """Take in what is pending; somebody else who is at it will do it as well."""
    try:
        store.load_pending(WAIT_S)
    except WarehouseBusy:
        sys.stderr.write("lookout: the warehouse is busy; what was decided is kept and loaded later\n")
