"""Fills a site with data: incidents with their history, a hallucination log, answers to review, and gold drafts."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from monitors.goldset.drafts import append_new_drafts
from monitors.records.base import Language, Severity
from monitors.records.exchanges import Origin
from monitors.records.explanations import CaseRecheck, Recheck, RecheckCount
from monitors.records.grades import Aspect, FailureKind, Judged
from monitors.records.incidents import Alert, AlertItem, Incident, IncidentKind, NotifyReason, Redacted
from monitors.records.logs import BlockedReply, HallucinationEntry, LoggedHallucination
from monitors.records.operator_actions import CaseDraft
from tests.deployments.cli.gate.test_triage_gate import reports
from tests.deployments.cli.test_review_ratings import RATINGS, issues, useful
from tests.deployments.gold_drafts import gold_draft
from tests.deployments.site.site_server import HOSTILE
from tests.warehouse.queries.test_reviews import judged
from tests.warehouse.sample_rows import alert, assessment, exchange, incident, receipt, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import (
    AlertRow,
    AssessmentRow,
    HallucinationRow,
    IncidentRow,
    IncidentVersion,
    ReceiptRow,
    ResultRow,
    RunRow,
)

ANSWERS = 6
"""Number of graded answers. The judge failed the first answer."""
LOG_ENTRIES = 3


def compute_fingerprint(name: str) -> str:
    """Compute the fingerprint of an incident from ``name``, by which the tests refer to the incident."""
    return hashlib.sha256(name.encode()).hexdigest()


def with_people(folder: Path, *, incidents: int = 3) -> Store:
    """Fill a warehouse in ``folder`` with hostile answers and with incidents that are an hour old.

    The incident ``user-0`` was reported by a user.
    """
    shutil.copytree(_people_folder(incidents), folder, dirs_exist_ok=True)
    return store_in(folder, seed=2)


@cache
def _people_folder(incidents: int) -> Path:
    """Fill a folder, once for each process, and return its path.

    Every test gets a copy, because filling a folder takes a quarter of a second.
    """
    temporary = tempfile.TemporaryDirectory()
    atexit.register(temporary.cleanup)
    folder = Path(temporary.name)
    store, now = store_in(folder), datetime.now(UTC).replace(microsecond=0)
    store.journal.append_suite(suite(ANSWERS))
    rows = []
    for number in range(ANSWERS):
        asked = exchange(case_id=f"case-{number}", text=f"Answer {number}. {HOSTILE}")
        grades = judged(f"case-{number}", passed=number > 0)
        rows += [
            ResultRow(row=asked.model_copy(update={"asked_at": now - timedelta(hours=1)})),
            AssessmentRow(row=grades),
        ]
    times = {"started_at": now - timedelta(hours=1), "finished_at": now - timedelta(minutes=55)}
    count = RecheckCount(asked=5, failed=2, right=3)
    again = Recheck(cases=(CaseRecheck(case_id="case-0", severity=Severity.CRITICAL, here=count),))
    report = run_report().model_copy(update={**times, "recheck": again})
    store.journal.append([*rows, RunRow(row=report)], run_id="run-1")
    faults = [_incident(f"user-{number}", now, number) for number in range(incidents)]
    versions = [IncidentVersion(sequence=at, incident=one) for at, one in enumerate(faults, start=1)]
    store.journal.append([IncidentRow(row=version) for version in versions], run_id="run-1")
    message = _message(faults[0], now)
    sent = receipt(message.id).model_copy(update={"at": now - timedelta(minutes=54)})
    store.journal.append([AlertRow(row=message), ReceiptRow(row=sent)], run_id="run-1")
    store.journal.append([_logged(number, now) for number in range(LOG_ENTRIES)], run_id=None)
    store.load_pending(5)
    return folder


def with_drafts(folder: Path, count: int = 3) -> Path:
    """Write a file of ``count`` drafts next to the configuration, and return its path."""
    path = folder / "gold-drafts.jsonl"
    append_new_drafts(path, [gold_draft(number) for number in range(1, count + 1)])
    return path


def wanted_case(number: int = 0) -> CaseDraft:
    """Build the draft that "Add to gold" made from an incident.

    The texts of the draft are hostile, and the draft has no right answer yet.
    """
    return CaseDraft(
        id=f"draft-{number}",
        made_at=datetime.now(UTC),
        by="asha",
        target="helpdesk",
        run_id="run-1",
        fingerprint=compute_fingerprint("user-0"),
        origin=Origin.LOG,
        turns=(Redacted(f"What is paid for room {number}? {HOSTILE}"),),
        bad_reply=Redacted("The limit is ₹90,000 per year."),
        failure_kind=FailureKind.WRONG_FACT,
        language=Language.ENGLISH,
        suggested_severity=Severity.MAJOR,
        severity_reason="a buyer counts on it",
        finding=Redacted("the gold names another amount"),
    )


def _incident(name: str, now: datetime, number: int) -> Incident:
    kind = IncidentKind.HALLUCINATION if number == 0 else IncidentKind.CASE_FAILURE
    return incident(name).model_copy(
        update={
            "kind": kind,
            "case_id": "case-0" if number == 1 else None,
            "title": Redacted(f"{name}: {HOSTILE}" if number == 0 else f"{name}: an answer left out the limit"),
            "severity": Severity(3 - number % 3),
            "opened_at": now - timedelta(hours=2),
            "last_seen_at": now - timedelta(minutes=55 + number),
            "first_commit": "abc123",
        }
    )


def _message(about: Incident, now: datetime) -> Alert:
    made = alert("LK-ABCDEFGH", about=about)
    seen = made.items[0].observation.model_copy(
        update={
            "kind": about.kind,
            "origin": Origin.LOG,
            "asked": Redacted("Is my cataract operation covered?"),
            "expected": Redacted("Up to ₹60,000 per eye."),
            "answered": Redacted(HOSTILE),
            "seen_at": now - timedelta(minutes=55),
        }
    )
    item = AlertItem(incident=about, observation=seen, reason=NotifyReason.FIRST_SEEN)
    return made.model_copy(update={"kind": about.kind, "items": (item,), "created_at": now - timedelta(minutes=55)})


def _logged(number: int, now: datetime) -> HallucinationRow:
    reply = BlockedReply(
        ts=now - timedelta(days=number),
        user_text=f"Question {number}: {HOSTILE}",
        blocked_reply="It is covered without any limit.",
        reasons=("unsupported",),
        unsupported_claims=("without any limit",),
        chunk_count=2,
        top_score=0.41,
        policy_ids=("suraksha-gold",),
    )
    entry = HallucinationEntry(id=f"entry-{number}", log="log", generation=0, offset=number, reply=reply)
    return HallucinationRow(
        row=LoggedHallucination(
            target="helpdesk",
            fingerprint=compute_fingerprint(f"user-{number}") if number == 0 else compute_fingerprint("nobody's"),
            read_at=now,
            notify=number == 0,
            entry=entry,
        )
    )


def with_reports(folder: Path) -> Store:
    """Fill a warehouse with an agent's reports on issues, each rated by a judge an hour ago."""
    store, cases = store_in(folder), issues()
    store.journal.append_suite(cases)
    now = datetime.now(UTC)
    rule = Judged(grader="relevant_files", version="1", aspect=Aspect.RELEVANT_FILES, passed=True, reason="named")
    for number, written in enumerate(reports([4] * len(RATINGS)).values()):
        came = exchange(case_id=f"i{number}", text=json.dumps(written))
        grades = assessment(case_id=f"i{number}").model_copy(update={"grades": (rule, useful(RATINGS[number]))})
        asked = came.model_copy(update={"asked_at": now - timedelta(hours=1)})
        store.journal.append([ResultRow(row=asked), AssessmentRow(row=grades)], run_id="run-1")
    report = run_report().model_copy(update={"suite_sha256": cases.sha256, "finished_at": now, "started_at": now})
    store.journal.append([RunRow(row=report)], run_id="run-1")
    store.load_pending(5)
    return store
