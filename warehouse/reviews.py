"""What people are asked to look at again, and what came of it. Reading only: labels go through the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from monitors.records.base import Language, Severity
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind, JudgeLineage
from monitors.records.reviews import AnswerId, JudgedAnswer, Reviewed
from warehouse.store import READ_WAIT_S, Store


def judged_answers(
    store: Store, *, since: datetime, target: str | None = None, wait_s: float = READ_WAIT_S
) -> tuple[JudgedAnswer, ...]:
    """All answers since a time that a judge graded for their facts, newest first; of one target when it is named.

    They come with their texts: a month of them is megabytes, all of a large warehouse would be too much.
    """
    rows = _rows(
        store,
        "select * from judged_answers"
        " where asked_at >= $since::timestamptz and ($target is null or target = $target)"
        " order by asked_at desc, run_id, case_id, repeat",
        {"since": since.isoformat(), "target": target},
        wait_s,
    )
    return tuple(_judged_answer(row) for row in rows)


def reviewed(store: Store, *, target: str | None = None, wait_s: float = READ_WAIT_S) -> tuple[Reviewed, ...]:
    """All answers that both people and a judge told, of one target when it is named."""
    rows = _rows(
        store,
        "select * from reviewed_answers where $target is null or target = $target order by run_id, case_id, repeat",
        {"target": target},
        wait_s,
    )
    return tuple(
        Reviewed(
            answer_id=_answer_id(row),
            target=row["target"],
            lineage=_lineage(row),
            judge_passed=row["judge_passed"],
            people_right=row["people_right"],
            inclusion_probability=row["inclusion_probability"],
        )
        for row in rows
    )


def labelled_by(store: Store, person: str, *, wait_s: float = READ_WAIT_S) -> frozenset[AnswerId]:
    """The answers that a person has said something of under review, being unsure included."""
    rows = _rows(
        store,
        "select run_id, case_id, repeat from labels where source = 'review' and done_by = $person",
        {"person": person},
        wait_s,
    )
    return frozenset(_answer_id(row) for row in rows)


def _rows(store: Store, sql: str, values: Mapping[str, str | None], wait_s: float) -> Sequence[dict[str, Any]]:
    found = store.query(sql, values, wait_s=wait_s)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def _judged_answer(row: dict[str, Any]) -> JudgedAnswer:
    return JudgedAnswer(
        answer_id=_answer_id(row),
        target=row["target"],
        origin=Origin(row["origin"]),
        asked_at=row["asked_at"],
        severity=Severity(row["case_severity"]),
        language=Language(row["language"]),
        turns=tuple(row["turns"]),
        answer=row["answer"],
        gold=row["gold"],
        expected_refusal=row["expected_refusal"],
        judge_passed=row["judge_passed"],
        judge_score=row["judge_score"],
        judge_reason=row["judge_reason"],
        failure_kind=FailureKind(row["failure_kind"]) if row["failure_kind"] else None,
        lineage=_lineage(row),
    )


def _answer_id(row: dict[str, Any]) -> AnswerId:
    return AnswerId(run_id=row["run_id"], case_id=row["case_id"], repeat=row["repeat"])


def _lineage(row: dict[str, Any]) -> JudgeLineage:
    return JudgeLineage(
        model=row["judge_model"], prompt_sha256=row["judge_prompt_sha256"], rubric_version=row["rubric_version"]
    )
