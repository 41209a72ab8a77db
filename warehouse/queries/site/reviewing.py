"""Queries for the review queue: how often people agree with judges, and whether there are new answers to sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from monitors.records.base import Record
from monitors.records.grades import JudgeLineage
from monitors.records.reviews import AnswerId
from warehouse.database.store import Store


class Agreement(Record):
    """How often people and judges agree on answers and reports.

    ``both_graded`` counts the answers that people and a judge graded, and ``agreed`` the answers with the same
    verdict. ``both_rated`` counts the reports that people and a judge rated, and ``same_rating`` the reports with
    the same rating.
    """

    both_graded: int
    agreed: int
    both_rated: int
    same_rating: int


class PeopleVerdict(NamedTuple):
    """The combined verdict of all people who reviewed an answer."""

    answer_id: AnswerId
    target: str
    right: bool
    inclusion_probability: float


class JudgedAnswer(NamedTuple):
    """A judge's verdict on the facts of an answer."""

    answer_id: AnswerId
    lineage: JudgeLineage
    passed: bool


def list_people_verdicts(store: Store) -> tuple[PeopleVerdict, ...]:
    """List people's verdicts on answers. An answer is skipped if people disagree about it.

    The view `reviewed_answers` has the same verdicts, but this query is faster, because it does not read grades.
    """
    table = store.query(
        "select run_id, case_id, repeat, any_value(target), bool_and(answer = 'right'), max(inclusion_probability)"
        " from labels where source = 'review' and answer in ('right', 'wrong')"
        " group by run_id, case_id, repeat having min(answer) = max(answer)"
    )
    return tuple(
        PeopleVerdict(_build_answer_id(row), str(row[3]), bool(row[4]), float(str(row[5]))) for row in table.rows
    )


def list_judge_verdicts(store: Store, wanted: Sequence[AnswerId]) -> tuple[JudgedAnswer, ...]:
    """List the judges' verdicts on the facts of the answers in ``wanted``."""
    table = store.query(
        "select run_id, case_id, repeat, judge_model, judge_prompt_sha256, rubric_version, passed from grades"
        " join (select unnest(from_json($wanted::json, $shape), recursive := true)) using (run_id, case_id, repeat)"
        " where judge_model is not null and passed is not null and aspect = 'factual_match'"
        " and list_contains(from_json($runs::json, '[\"VARCHAR\"]'), run_id)",
        {
            "wanted": json.dumps([answer.model_dump() for answer in wanted]),
            "shape": '[{"run_id": "VARCHAR", "case_id": "VARCHAR", "repeat": "INTEGER"}]',
            "runs": json.dumps(sorted({answer.run_id for answer in wanted})),
        },
    )
    return tuple(JudgedAnswer(_build_answer_id(row), _build_lineage(row[3:6]), bool(row[6])) for row in table.rows)


def _build_answer_id(row: Sequence[object]) -> AnswerId:
    return AnswerId(run_id=str(row[0]), case_id=str(row[1]), repeat=int(str(row[2])))


def _build_lineage(row: Sequence[object]) -> JudgeLineage:
    model, prompt, rubric = map(str, row)
    return JudgeLineage(model=model, prompt_sha256=prompt, rubric_version=rubric)


def count_ratings(store: Store, target: str | None) -> tuple[int, int]:
    """Count the reports that both people and judges rated, and the reports with equal ratings.

    ``target`` selects one target.
    """
    table = store.query(
        "select count(*), count(*) filter (where judge_rating = people_rating)"
        " from reviewed_ratings where $target is null or target = $target",
        {"target": target},
    )
    both, same = table.rows[0]
    return int(str(both)), int(str(same))


def count_finished_runs(store: Store) -> int:
    """Count the runs and nightly runs. While this number does not change, there are no new answers to sample."""
    table = store.query("select (select count(*) from runs) + (select count(*) from nightly_runs)")
    return int(str(table.rows[0][0]))
