"""Queries for answers to review, and for human labels. The queries only read; labels are written to the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter

from monitors.records.base import Language, Severity
from monitors.records.exchanges import Origin
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, Judged, JudgeLineage, UsefulnessCriterion
from monitors.records.reviews import (
    AnswerId,
    GradedAnswer,
    RatingCount,
    ReviewCandidate,
    ReviewedAnswer,
    ReviewedGrade,
    ReviewedRating,
    SampledAnswer,
    SpotCheck,
    VerdictCount,
)
from warehouse.database.store import DEFAULT_READ_WAIT_S, Parameter, Store

_CANDIDATES = """
with recent as materialized (
  select run_id, case_id, repeat, asked_at from results
  where outcome = 'exchange' and asked_at >= $since::timestamptz
), targets as (
  select run_id, target from runs union all select run_id, target from nightly_runs
)
select s.run_id, s.case_id, s.repeat, t.target, any_value(a.case_severity) as case_severity,
  any_value(a.outcome) as outcome,
  array_to_string(list_sort(list(g.grader || if(g.passed, ' passed', ' failed'))), ', ') as verdicts
from recent s
join targets t on t.run_id = s.run_id and ($target is null or t.target = $target)
join (select * from grades where run_id in (select run_id from recent)) g
  on g.run_id = s.run_id and g.case_id = s.case_id and g.repeat = s.repeat
join (select * from assessments where run_id in (select run_id from recent)) a
  on a.run_id = s.run_id and a.case_id = s.case_id and a.repeat = s.repeat
where g.passed is not null and g.aspect <> 'usefulness'
group by s.run_id, s.case_id, s.repeat, t.target, s.asked_at
order by s.asked_at desc, s.run_id, s.case_id, s.repeat
"""
"""Selects the rows of the view `graded_answers` since a time.

This query replaces the view, which would read every text: only grades and assessments of recent runs are joined.
With ten million rows, this query is thirty times faster than the view.
"""


def list_review_candidates(
    store: Store, *, since: datetime, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[ReviewCandidate, ...]:
    """List the graded answers to questions that were asked at ``since`` or later, newest first.

    The texts of the answers are not loaded. ``target`` selects one target.
    """
    rows = _query_rows(
        store,
        _CANDIDATES,
        {"since": since.isoformat(), "target": target},
        wait_s,
    )
    return tuple(
        ReviewCandidate(
            answer_id=_build_answer_id(row),
            target=row["target"],
            severe=Severity(row["case_severity"]) is Severity.CRITICAL,
            outcome=CaseOutcome(row["outcome"]),
            verdicts=row["verdicts"],
        )
        for row in rows
    )


def load_spot_checks(
    store: Store, sampled: Sequence[SampledAnswer], *, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[SpotCheck, ...]:
    """Load sampled answers with their texts and verdicts, in the given order.

    Answers with removed texts are skipped.
    """
    wanted = [sampled_answer.answer_id.model_dump() for sampled_answer in sampled]
    rows = _query_rows(
        store,
        "select a.* from graded_answers a"
        " join (select unnest(from_json($wanted::json, $shape), recursive := true)) using (run_id, case_id, repeat)"
        " where list_contains(from_json($runs::json, '[\"VARCHAR\"]'), run_id)",  # reads no text of another run
        {
            "wanted": json.dumps(wanted),
            "shape": '[{"run_id": "VARCHAR", "case_id": "VARCHAR", "repeat": "INTEGER"}]',
            "runs": json.dumps(sorted({sampled_answer.answer_id.run_id for sampled_answer in sampled})),
        },
        wait_s,
    )
    rows_by_answer = {_build_answer_id(row): row for row in rows}
    return tuple(
        _build_spot_check(rows_by_answer[sampled_answer.answer_id], sampled_answer)
        for sampled_answer in sampled
        if sampled_answer.answer_id in rows_by_answer
    )


def count_verdicts(
    store: Store, *, since: datetime, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[VerdictCount, ...]:
    """Count the verdicts of each grader and judge on questions that were asked at ``since`` or later.

    The counts are grouped by target, and by version of the grader or by judge lineage (model, prompt and rubric).
    """
    rows = _query_rows(
        store,
        "select target, g.grader, g.version, g.aspect, g.judge_model, g.judge_prompt_sha256, g.rubric_version,"
        " count(*) filter (where g.passed) as passed, count(*) as total"
        " from (select target, unnest(grades) as g from graded_answers"
        "  where asked_at >= $since::timestamptz and ($target is null or target = $target))"
        " group by all order by all",
        {"since": since.isoformat(), "target": target},
        wait_s,
    )
    return tuple(
        VerdictCount(
            target=row["target"],
            grader=row["grader"],
            version=row["version"],
            aspect=Aspect(row["aspect"]),
            lineage=_build_lineage(row) if row["judge_model"] is not None else None,
            passed=row["passed"],
            total=row["total"],
        )
        for row in rows
    )


def list_reviewed_rule_grades(
    store: Store, *, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[ReviewedGrade, ...]:
    """List the grades of rule-based graders for answers that people reviewed. ``target`` selects one target."""
    rows = _query_rows(
        store,
        "select * from reviewed_grades where $target is null or target = $target order by run_id, case_id, repeat",
        {"target": target},
        wait_s,
    )
    return tuple(
        ReviewedGrade(
            target=row["target"],
            grader=row["grader"],
            version=row["version"],
            passed=row["grader_passed"],
            people_right=row["people_right"],
            inclusion_probability=row["inclusion_probability"],
        )
        for row in rows
    )


def list_answers_judged_and_reviewed(
    store: Store, *, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[ReviewedAnswer, ...]:
    """List the answers that both people and a judge graded. ``target`` selects one target."""
    rows = _query_rows(
        store,
        "select * from reviewed_answers where $target is null or target = $target order by run_id, case_id, repeat",
        {"target": target},
        wait_s,
    )
    return tuple(
        ReviewedAnswer(
            answer_id=_build_answer_id(row),
            target=row["target"],
            lineage=_build_lineage(row),
            judge_passed=row["judge_passed"],
            people_right=row["people_right"],
            inclusion_probability=row["inclusion_probability"],
        )
        for row in rows
    )


def list_reviewed_ratings(
    store: Store, *, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[ReviewedRating, ...]:
    """List every rating by a person, with a judge's rating of the same report. ``target`` selects one target."""
    rows = _query_rows(
        store,
        "select * from reviewed_ratings where $target is null or target = $target"
        " order by run_id, case_id, repeat, done_by",
        {"target": target},
        wait_s,
    )
    return tuple(
        ReviewedRating(
            answer_id=_build_answer_id(row),
            target=row["target"],
            lineage=_build_lineage(row),
            judge=row["judge_rating"],
            person=row["people_rating"],
            people=row["people"],
            inclusion_probability=row["inclusion_probability"],
        )
        for row in rows
    )


def count_rated_reports_by_judge(
    store: Store, *, since: datetime, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[RatingCount, ...]:
    """Count the reports that each judge rated, for issues that were asked at ``since`` or later.

    The counts are grouped by target and by judge lineage (model, prompt and rubric).
    """
    rows = _query_rows(
        store,
        "select target, g.judge_model, g.judge_prompt_sha256, g.rubric_version, count(*) as reports,"
        " avg(g.rubric) as average"
        " from (select target, unnest(ratings) as g from graded_answers"
        "  where asked_at >= $since::timestamptz and ($target is null or target = $target))"
        " where g.judge_model is not null group by all order by all",
        {"since": since.isoformat(), "target": target},
        wait_s,
    )
    return tuple(
        RatingCount(
            target=row["target"], lineage=_build_lineage(row), reports=row["reports"], average=row["average"]
        )
        for row in rows
    )


def list_answer_ids_reviewed_by(
    store: Store, person: str, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> frozenset[AnswerId]:
    """List the answers that a person has reviewed, including answers marked as unsure."""
    rows = _query_rows(
        store,
        "select run_id, case_id, repeat from labels where source = 'review' and done_by = $person",
        {"person": person},
        wait_s,
    )
    return frozenset(_build_answer_id(row) for row in rows)


def list_reviewers(store: Store, answer: AnswerId, *, wait_s: float = DEFAULT_READ_WAIT_S) -> tuple[str, ...]:
    """List the people who have reviewed an answer, in the order of their reviews."""
    rows = _query_rows(
        store,
        "select done_by from labels where source = 'review' and run_id = $run_id and case_id = $case_id"
        " and repeat = $repeat order by given_at, done_by",
        answer.model_dump(),
        wait_s,
    )
    return tuple(dict.fromkeys(str(row["done_by"]) for row in rows))


def _query_rows(store: Store, sql: str, values: Mapping[str, Parameter], wait_s: float) -> Sequence[dict[str, Any]]:
    table = store.query(sql, values, wait_s=wait_s)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _build_spot_check(row: dict[str, Any], sampled: SampledAnswer) -> SpotCheck:
    answer = GradedAnswer(
        answer_id=sampled.answer_id,
        target=row["target"],
        origin=Origin(row["origin"]),
        asked_at=row["asked_at"],
        severity=Severity(row["case_severity"]),
        language=Language(row["language"]),
        turns=tuple(row["turns"]),
        answer=row["answer"],
        gold=row["gold"],
        expected_citation=row["expected_citation"],
        expected_refusal=row["expected_refusal"],
        outcome=CaseOutcome(row["outcome"]),
        grades=tuple(_build_grade(grade_row) for grade_row in row["grades"]),
        issue=f"{row['issue_title']}\n\n{row['issue_body'] or ''}".strip() if row["issue_title"] else None,
        ratings=tuple(_build_grade(grade_row) for grade_row in row["ratings"]),
    )
    return SpotCheck(answer=answer, inclusion_probability=sampled.inclusion_probability)


_CRITERIA: Final = TypeAdapter(tuple[UsefulnessCriterion, ...])


def _build_grade(row: dict[str, Any]) -> Judged:
    return Judged(
        grader=row["grader"],
        version=row["version"],
        aspect=Aspect(row["aspect"]),
        passed=row["passed"],
        failure_kind=FailureKind(row["failure_kind"]) if row["failure_kind"] else None,
        score=row["score"],
        rubric=row["rubric"],
        criteria=_CRITERIA.validate_json(row.get("criteria") or "[]"),
        reason=row["reason"],
        lineage=_build_lineage(row) if row["judge_model"] is not None else None,
    )


def _build_answer_id(row: dict[str, Any]) -> AnswerId:
    return AnswerId(run_id=row["run_id"], case_id=row["case_id"], repeat=row["repeat"])


def _build_lineage(row: dict[str, Any]) -> JudgeLineage:
    return JudgeLineage(
        model=row["judge_model"], prompt_sha256=row["judge_prompt_sha256"], rubric_version=row["rubric_version"]
    )
