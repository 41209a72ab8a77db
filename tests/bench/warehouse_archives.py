"""Write many archives as a compaction does: runs of 512 cases with six grades each, and their incidents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta

import duckdb

from monitors.alerts.redact import redact
from monitors.records.base import Finding, Severity
from monitors.records.exchanges import Channel
from monitors.records.explanations import RecheckAnswer, RecheckPlace
from monitors.records.grades import Aspect, CaseOutcome, Criterion, FailureKind, Judged, Span, UsefulnessCriterion
from monitors.records.operator_actions import AnswerVerdict, HumanLabel, LabelSource
from monitors.records.self_checks import RepeatabilityRun
from tests.warehouse.sample_drills import drill
from tests.warehouse.sample_nights import night_report
from tests.warehouse.sample_repeats import session
from tests.warehouse.sample_rows import (
    NOON,
    alert,
    assessment,
    exchange,
    grades,
    incident,
    no_answer,
    receipt,
    run_report,
)
from warehouse.database.retention import store_archive
from warehouse.database.stage import ArchivedSegment, ArchiveManifest, hash_file
from warehouse.database.store import Store
from warehouse.journal.rows import (
    AssessmentRow,
    DrillRow,
    IncidentVersion,
    JournalRow,
    LabelRow,
    NightlyRunRow,
    RecheckRow,
    RepeatabilityRow,
    ResultRow,
)
from warehouse.journal.segments import SegmentHeader

CASES = 512
GRADES_EACH = 6
RUNS_PER_ARCHIVE = 200
INCIDENTS_PER_RUN = 3
FINGERPRINTS = 700
"""Number of incidents. Each run changes three of them and sends one message."""


def build_six_grades(*, failed: bool) -> tuple[Judged, ...]:
    """Build the grades of a case: five from rules and one from a judge."""
    plain = [
        Judged(grader=f"grader-{number}", version="1", aspect=aspect, passed=True, reason="as it should be")
        for number, aspect in enumerate((Aspect.CITATION, Aspect.REFUSAL, Aspect.DISCLOSURE, Aspect.ERROR_LEAK))
    ]
    fact = Judged(
        grader="quantities",
        version="1",
        aspect=Aspect.FACTUAL_MATCH,
        passed=not failed,
        failure_kind=FailureKind.WRONG_FACT if failed else None,
        reason="24 months against 36 months" if failed else "24 months is there",
    )
    judge = next(grade for grade in grades() if isinstance(grade, Judged) and grade.lineage)
    return (*plain, fact, judge.model_copy(update={"aspect": Aspect.FACTUAL_MATCH}))


def _build_templates() -> dict[str, str]:
    """Build the JSON of each kind of row, with placeholders such as RUN and CASE."""
    good = assessment("RUN", "CASE").model_copy(update={"grades": build_six_grades(failed=False)})
    bad = assessment("RUN", "CASE", failed=FailureKind.WRONG_FACT).model_copy(
        update={"grades": build_six_grades(failed=True), "factual_match": Finding.NO}
    )
    version = IncidentVersion(sequence=987654, incident=incident("leak"))
    return {
        "good": good.model_dump_json(),
        "bad": bad.model_dump_json(),
        "answer": exchange("RUN", "CASE", text="The waiting period is two years. " * 8).model_dump_json(),
        "nothing": no_answer("RUN", "CASE").model_dump_json(),
        "report": run_report("RUN").model_dump_json(),
        "incident": version.model_dump_json(),
        "fingerprint": version.incident.fingerprint,
        "alert": alert("ALERT").model_dump_json(),
        "receipt": receipt("ALERT").model_dump_json(),
    }


_LINES = f"""
select '20230101T000000.' || lpad(run::varchar, 6, '0') || 'Z-00' as segment_id,
  position::integer as position, table_name, row_json::json as row_json
from (
  select run, 2 * c as position, 'results' as table_name,
    replace(replace(replace(if(hash(run * 7 + c) % 400 = 0, $nothing, $answer), 'RUN', 'run-' || run),
      'CASE', 'case-' || c), '1500.0', (900 + hash(run * 1000 + c) % 4000)::varchar || '.5') as row_json
  from picked, range({CASES}) t(c)
  union all
  select run, 2 * c + 1, 'assessments',
    replace(replace(if(hash(run * 1000 + c) % 25 = 0, $bad, $good), 'RUN', 'run-' || run), 'CASE', 'case-' || c)
  from picked, range({CASES}) t(c)
  union all
  select run, {2 * CASES}, 'runs', replace(replace(replace($report, 'RUN', 'run-' || run), '2026-03-01T12',
    strftime(timestamp '2023-01-01' + interval (run * 3) hour, '%Y-%m-%dT%H')), 'abc123', 'commit-' || (run // 3))
  from picked
  union all
  select run, {2 * CASES + 1} + i, 'incidents', replace(replace(replace($incident, '987654',
      (run * {INCIDENTS_PER_RUN} + i + 1)::varchar), $fingerprint,
      sha256((hash(run * 10 + i) % {FINGERPRINTS})::varchar)),
      '"open"', if(hash(run + i) % 3 = 0, '"resolved"', '"open"'))
  from picked, range({INCIDENTS_PER_RUN}) t(i)
  union all
  select run, {2 * CASES + 9}, 'alerts', replace($alert, 'ALERT', 'alert-' || run) from picked
  union all
  select run, {2 * CASES + 10}, 'receipts', replace($receipt, 'ALERT', 'alert-' || run) from picked
  where run % 50 > 0
) order by segment_id, position
"""


def write_archives(store: Store, runs: int) -> None:
    """Write ``runs`` runs, a few hundred in each archive.

    Run 0 and every 50th run have a message that was never sent.
    """
    connection = duckdb.connect()
    words = {name: value for name, value in _build_templates().items() if f"${name}" in _LINES}
    for first in range(0, runs, RUNS_PER_ARCHIVE):
        chosen = range(first, min(first + RUNS_PER_ARCHIVE, runs))
        file = store.database.scratch
        connection.execute("create or replace temp table picked as select unnest(?::integer[]) as run", [[*chosen]])
        connection.execute(f"copy ({_LINES}) to '{file}' (format parquet, codec zstd)", words)
        manifest = ArchiveManifest(sha256=hash_file(file), segments=tuple(_write_segments(chosen)))
        store_archive(store.journal, manifest, file)
    connection.close()


def _write_segments(runs: range) -> Iterator[ArchivedSegment]:
    for run in runs:
        name = f"20230101T000000.{run:06d}Z-00"
        rows = {"results": CASES, "assessments": CASES, "runs": 1, "incidents": INCIDENTS_PER_RUN, "alerts": 1}
        header = SegmentHeader(
            id=name,
            run_id=f"run-{run}",
            rows=rows | ({"receipts": 1} if run % 50 else {}),
            sha256=hashlib.sha256(name.encode()).hexdigest(),
        )
        yield ArchivedSegment(header=header, name=f"run-{run}/{name}.jsonl", size_bytes=1)


LABELS_PER_RUN = 6
RECHECKS_PER_RUN = 3
NIGHTS = DRILLS = SESSIONS = 1_000
REPEATED_CASES = 60
RATED = 2_000
SEGMENT_ROWS = 2_000


def write_others(store: Store, runs: int) -> None:
    """Write rows for the views that `write_archives` does not fill.

    There are as many rows as in an installation that has ``runs`` runs after some years.
    """
    rows: list[JournalRow] = [row for run in range(runs) for row in (*_build_labels(run), *_build_rechecks(run))]
    rows += [NightlyRunRow(row=night_report(f"night-{night}", nights=night)) for night in range(NIGHTS)]
    rows += [DrillRow(row=drill(f"drill-{number}")) for number in range(DRILLS)]
    rows += [RepeatabilityRow(row=_build_session(number)) for number in range(SESSIONS)]
    rows += [row for number in range(RATED) for row in _build_rated(number)]
    for first in range(0, len(rows), SEGMENT_ROWS):
        store.journal.append(rows[first : first + SEGMENT_ROWS], run_id=None)


def _build_labels(run: int) -> Iterator[JournalRow]:
    for number in range(LABELS_PER_RUN):
        answer = AnswerVerdict.WRONG if number == 0 else AnswerVerdict.RIGHT
        yield LabelRow(row=_build_label(f"run-{run}", f"case-{number * 7}", answer=answer))


def _build_label(run_id: str, case_id: str, *, answer: AnswerVerdict, rating: int | None = None) -> HumanLabel:
    return HumanLabel(
        id=f"review-{run_id}-{case_id}",
        at=NOON,
        by="asha",
        target="helpdesk",
        run_id=run_id,
        case_id=case_id,
        failure_kind=FailureKind.WRONG_FACT if answer is AnswerVerdict.WRONG else None,
        reason=redact("the judge says so"),
        source=LabelSource.REVIEW,
        answer=answer,
        rating=rating,
        inclusion_probability=0.1,
    )


def _build_rechecks(run: int) -> Iterator[JournalRow]:
    for repeat in range(RECHECKS_PER_RUN):
        asked = RecheckAnswer(
            run_id=f"run-{run}",
            target="helpdesk",
            case_id="case-1",
            place=next(iter(RecheckPlace)),
            repeat=repeat,
            asked_at=NOON + timedelta(hours=3 * run, minutes=repeat),
            outcome=CaseOutcome.FAILED if repeat else CaseOutcome.CORRECT,
            severity=Severity.CRITICAL,
            reason="24 months against 36 months",
        )
        yield RecheckRow(row=asked)


def _build_session(number: int) -> RepeatabilityRun:
    template = session(f"session-{number}", hours=number)
    cases = tuple(
        template.cases[0].model_copy(update={"case_id": f"case-{case}"}) for case in range(REPEATED_CASES)
    )
    return template.model_copy(update={"cases": cases})


def _build_rated(number: int) -> Iterator[JournalRow]:
    """Build a report on an issue that a judge and a person have rated."""
    run_id, case_id = "reports", f"report-{number}"
    judge = next(grade for grade in grades() if isinstance(grade, Judged) and grade.lineage)
    quote = Span(where=Channel.VISIBLE, start=0, end=9, label="quoted by the judge")
    criteria = tuple(UsefulnessCriterion(name=name, score=number % 2, quote=quote) for name in Criterion)
    rated = judge.model_copy(update={"aspect": Aspect.USEFULNESS, "rubric": 1 + number % 5, "criteria": criteria})
    yield ResultRow(row=exchange(run_id, case_id))
    yield AssessmentRow(row=assessment(run_id, case_id).model_copy(update={"grades": (rated,)}))
    yield LabelRow(row=_build_label(run_id, case_id, answer=AnswerVerdict.RIGHT, rating=1 + number % 4))
