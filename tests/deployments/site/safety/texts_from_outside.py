"""Fills a warehouse with given texts, in every field that can contain a text of the application or its users."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitors.goldset.drafts import append_new_drafts
from monitors.records.base import Severity
from monitors.records.cases import Suite
from monitors.records.estimates import RateUnknown
from monitors.records.exchanges import Origin
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.incidents import (
    ActionKind,
    ActionVia,
    Alert,
    AlertItem,
    Incident,
    IncidentKind,
    NotifyReason,
    Redacted,
)
from monitors.records.logs import BlockedReply, HallucinationEntry, LoggedHallucination
from monitors.records.operator_actions import HumanLabel, OperatorAction, Silence
from monitors.records.reviews import AnswerVerdict, LabelSource
from monitors.records.runs import CaseResult, RunExperiment, Verdict
from monitors.records.targets import Target
from tests.deployments.gold_drafts import draft_gold_case, gold_draft
from tests.monitors.reports.hostile_rows import OWN
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.warehouse.sample_nights import night_report
from tests.warehouse.sample_rows import SUITE_SHA, alert, assessment, exchange, grades, incident, receipt
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import (
    ActionRow,
    AlertRow,
    AssessmentRow,
    HallucinationRow,
    IncidentRow,
    IncidentVersion,
    JournalRow,
    LabelRow,
    NightlyRunRow,
    ReceiptRow,
    ResultRow,
    RunRow,
)
from warehouse.queries.operator_actions import append_silence

HOSTILE = (
    *OWN,
    "<style>@import 'http://127.0.0.1:9/x.css'; * { background: url(http://127.0.0.1:9/y) }</style>",
    "red; background: url(javascript:window.ran=30); x: expression(window.ran=31)",
    "</textarea><script>window.ran = 32</script><textarea>",
    "</select></option></noscript></template><script>window.ran = 33</script>",
    '{"a": "</script><script>window.ran = 34</script>", "b": "\\u003cscript>window.ran = 35\\u003c/script>"}',
    "<!--><img src=x onerror=window.ran=36>--!><svg><script>window.ran=37</script></svg>",
    "<svg><animate onbegin=window.ran=38 attributeName=x dur=1s><use href='data:image/svg+xml,<svg/>#x'/></svg>",
    "<img srcset='http://127.0.0.1:9/a 1x, http://127.0.0.1:9/b 2x'><video poster=//127.0.0.1:9/c autoplay></video>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=39>'></noscript>",
    "<button form=x formaction=javascript:window.ran=40 autofocus>x</button><input type=image src=x onerror=window.ran=41>",
    "java\tscript:window.ran=42 jav&#x0A;ascript:window.ran=43 JaVaScRiPt:window.ran=44 vbscript:x data:text/html,x",
    "\u2066left\u2069 \u200fright\u200e \u061c \u202dover\u202c \u2028line\u2029paragraph \u0085next \u00adsoft",
    "ze\u200bro\u200c-\u200dwid\ufefft\u2060h p\u0430ypal \uff1cscript\uff1ewindow.ran=45\uff1c/script\uff1e",
    "**[a *[b](javascript:window.ran=46) c*](//127.0.0.1:9)** > > > - - - ***`~~x~~`*** \\<script>",
    "<x-y is=z contenteditable onbeforeinput=window.ran=47 style=position:fixed;inset:0>over all</x-y>",
    "{%25 %} {{ config }} {{ ''.__class__.__mro__ }} {# x #} ${T(java.lang.Runtime)} *{7*7} @{7*7} [[7*7]]",
    "\x1b[31mred\x1b]0;title\x07 \r\nSet-Cookie: a=b\r\n\r\n<script>window.ran = 48</script>",
    "अ" * 400 + " " + "漢" * 400 + " " + "ש" * 200,
    " ",
)
"""The hostile texts of the report tests, and some more."""


def plain(rows: Sequence[str]) -> tuple[str, ...]:
    """Return as many harmless texts as there are ``rows``."""
    return tuple(f"a plain text number {number}" for number, _ in enumerate(rows))


def compute_fingerprint(number: int) -> str:
    """Compute the fingerprint of the incident with this number."""
    return hashlib.sha256(f"fault {number}".encode()).hexdigest()


def store_of(folder: Path, rows: Sequence[str]) -> Store:
    """Fill a store with the texts ``rows``.

    Each text gets a run, an incident with its history, and a log entry. For the first few texts, a nightly run is
    also stored. The drafts contain all texts.
    """
    store, now = store_in(folder), datetime.now(UTC).replace(microsecond=0)
    runs = [_of_case_numbers(hostile_cases([row])) for row in rows]
    store.journal.append_suite(Suite(name="gold", sha256=SUITE_SHA, cases=tuple(one.case for one in runs[0])))
    for number, (row, cases) in enumerate(zip(rows, runs, strict=True)):
        at = now - timedelta(minutes=number + 1)
        store.journal.append(list(_run(number, row, cases, at)), run_id=f"run-{number}")
        store.journal.append(list(_incident(number, row, at)), run_id=f"run-{number}")
        store.journal.append(list(_log(number, row, at)), run_id=None)
        append_silence(store.journal, _silence(number, row, at))
    for number, row in enumerate(rows[:4]):
        at = now - timedelta(days=number)
        store.journal.append(list(_night(f"night-{number}", "\n".join(rows), row, at)), run_id=f"night-{number}")
    store.load_pending(30)
    (folder / "reviewer").write_text(f"{rows[1]}\n", encoding="utf-8")
    append_new_drafts(folder / "gold-drafts.jsonl", [_draft(number, "\n".join(rows)) for number in (1, 2)])
    return store


def _of_case_numbers(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return only the cases whose ids occur in every run."""
    return [one for one in cases if one.case.id in {"h0", "n0", "u0", "r0"}]


def _run(number: int, row: str, cases: Sequence[CaseResult], at: datetime) -> Iterator[JournalRow]:
    """Build a run. In every second run, the first case is right, so that its result changes from run to run."""
    run_id = f"run-{number}"
    for one in cases:
        result = one.result.model_copy(update={"run_id": run_id, "asked_at": at})
        yield ResultRow(row=result)
        by_rules = tuple(grade for grade in one.assessment.grades if not getattr(grade, "lineage", None))
        judged = tuple(grade for grade in grades() if getattr(grade, "lineage", None))
        changes: dict[str, object] = {"run_id": run_id, "grades": (*by_rules, *judged)}
        if one.case.id == "h0" and number % 2:
            changes |= {"outcome": CaseOutcome.CORRECT, "failure_kinds": (), "blame": None}
        yield AssessmentRow(row=one.assessment.model_copy(update=changes))
    report = hostile_report([row], cases)
    changes = {
        "run_id": run_id,
        "target": Target(name="helpdesk", url="http://127.0.0.1:1/"),
        "suite_name": "gold",
        "suite_sha256": SUITE_SHA,
        "started_at": at,
        "finished_at": at,
        "verdict": Verdict.FAIL,
        "experiment": RunExperiment(dataset=row, problem=row),
    }
    yield RunRow(row=report.model_copy(update=changes))


def _incident(number: int, row: str, at: datetime) -> Iterator[JournalRow]:
    about = incident(f"fault {number}").model_copy(
        update={
            "kind": IncidentKind.HALLUCINATION,
            "title": Redacted(row),
            "severity": Severity(3 - number % 3),
            "opened_at": at,
            "last_seen_at": at,
            "last_run_id": f"run-{number}",
        }
    )
    yield IncidentRow(row=IncidentVersion(sequence=number + 1, incident=about))
    yield AlertRow(row=_message(f"LK-{number}", about, row, at))
    yield ReceiptRow(row=receipt(f"LK-{number}").model_copy(update={"at": at, "error": row}))
    yield ActionRow(
        row=OperatorAction(
            id=f"act-{number}",
            kind=ActionKind.ADD_TO_GOLD,
            at=at,
            by=row[:200],
            via=ActionVia.SITE,
            fingerprints=(about.fingerprint,),
            note=row[:2_000],
        )
    )
    yield LabelRow(
        row=HumanLabel(
            id=f"label-{number}",
            at=at,
            by=row[:200],
            target="helpdesk",
            run_id=f"run-{number}",
            case_id="u0",
            reason=Redacted(row),
            note=row,
            source=LabelSource.REVIEW,
            answer=AnswerVerdict.WRONG,
            inclusion_probability=0.5,
        )
    )


def _message(alert_id: str, about: Incident, row: str, at: datetime) -> Alert:
    made = alert(alert_id, about=about)
    texts = dict.fromkeys(("asked", "expected", "answered", "reason", "title", "flaky"), Redacted(row))
    seen = made.items[0].observation.model_copy(
        update=texts | {"kind": about.kind, "origin": Origin.LOG, "seen_at": at, "run_id": about.last_run_id}
    )
    item = AlertItem(incident=about, observation=seen, reason=NotifyReason.FIRST_SEEN)
    return made.model_copy(update={"kind": about.kind, "items": (item,), "created_at": at})


def _silence(number: int, row: str, at: datetime) -> Silence:
    return Silence(
        id=f"S-{number}",
        author=row[:200],
        comment=row[:2_000],
        starts_at=at,
        ends_at=at + timedelta(days=30),
        fingerprint=compute_fingerprint(number),
    )


def _log(number: int, row: str, at: datetime) -> Iterator[JournalRow]:
    reply = BlockedReply(
        ts=at,
        user_text=row,
        blocked_reply=row,
        reasons=(row,),
        unsupported_claims=(row,),
        chunk_count=2,
        top_score=0.41,
        policy_ids=(row,),
    )
    entry = HallucinationEntry(id=f"entry-{number}", log="log", generation=0, offset=number, reply=reply)
    yield HallucinationRow(
        row=LoggedHallucination(
            target="helpdesk", fingerprint=compute_fingerprint(number), read_at=at, notify=True, entry=entry
        )
    )


def _night(run_id: str, every: str, row: str, at: datetime) -> Iterator[JournalRow]:
    report = night_report(run_id).model_copy(
        update={
            "due_at": at,
            "until": at,
            "since": at - timedelta(days=1),
            "finished_at": at,
            "graded_by": row,
            "failed": RateUnknown(conversations=1000, sampled=100, why=row),
            "interrupted": (row,),
        }
    )
    yield NightlyRunRow(row=report)
    for kind in (FailureKind.WRONG_FACT, FailureKind.PII_DISCLOSURE):
        said = assessment(run_id, f"talk-{kind.value}", failed=kind)
        answer = exchange(run_id, f"talk-{kind.value}", text=every).model_copy(update={"turns": (every,)})
        yield ResultRow(row=answer)
        yield AssessmentRow(row=said.model_copy(update={"reason": every}))


def _draft(number: int, text: str):
    quote = gold_draft().quote
    assert quote is not None
    changed = quote.model_copy(update={"document": text, "text": text, "before": text, "after": text})
    case = draft_gold_case(number, turns=(text,), gold=text)
    return gold_draft(number, case=case, quote=changed, why=text, model=text)
