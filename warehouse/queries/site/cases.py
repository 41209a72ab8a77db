"""Queries for the cases in the newest runs of a target: their outcomes, flips, flakiness and history.

A flip is a case that was correct in one run and wrong in the next run that graded it, or the reverse. The
queries in this module do not read grades.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import TypeAdapter

from monitors.records.base import Record, UtcTime
from monitors.records.grades import CaseOutcome
from monitors.records.runs import Verdict
from warehouse.database.store import Store


class CaseCourse(StrEnum):
    """How the outcome of a case changed over the shown runs. The values are sorted from most to least urgent."""

    BROKE = "broke"
    """The case was correct at first, then wrong in all later runs. The first wrong run is the change point."""
    FAILING = "failing"
    UNSTEADY = "unsteady"
    """The outcome changed more than once, but never between runs of the same suite and commit."""
    FIXED = "fixed"
    """The case was wrong at first, then correct in all later runs."""
    FLAKY = "flaky"
    """The outcome changed more than once, at least once between runs of the same suite and commit.

    A case that was correct and wrong within one run is also flaky.
    """
    UNGRADED = "ungraded"
    RIGHT = "right"


class GridRun(Record):
    """A run, shown as a column of the grid of cases and runs. ``place`` is the column number: 1 for the newest run.

    ``new_suite`` is true if the preceding run used another suite.
    """

    place: int
    run_id: str
    finished_at: UtcTime
    verdict: Verdict
    commit: str | None
    new_suite: bool


class GridCell(Record):
    """The outcome of a case in the run with the column number ``place``.

    A run that skipped the case has no cell.
    """

    place: int
    outcome: CaseOutcome
    flipped: bool


class GridRow(Record):
    """A case with its cells, newest run first. ``outcome`` is the outcome in the newest run that asked the case."""

    case_id: str
    severity: int
    type: str
    language: str
    outcome: CaseOutcome
    course: CaseCourse
    flips: int
    cells: tuple[GridCell, ...]


class GridFilter(Record):
    """The cases and runs to show. A field that is ``None`` selects all. ``runs`` is the number of runs to show."""

    target: str
    suite: str | None = None
    severity: int | None = None
    type: str | None = None
    language: str | None = None
    outcome: str | None = None
    course: str | None = None
    runs: int = 20


class GridOptions(Record):
    """The values of the filters: the types and languages of the cases in a target's newest runs."""

    types: tuple[str, ...]
    languages: tuple[str, ...]


class CaseAnswer(Record):
    """One answer in the history of a case: its outcome and text, or the reason for a missing answer.

    ``flipped`` is true if the outcome differs from the outcome in the preceding run that graded the case.
    """

    run_id: str
    repeat: int
    finished_at: UtcTime
    verdict: Verdict
    commit: str | None
    suite_sha256: str
    outcome: CaseOutcome
    severity: int
    reason: str
    unconfirmed: bool
    flipped: bool
    answer: str | None
    detail: str | None
    app_path: str | None
    total_ms: float | None


# Shares its fields with GoldCase because a case of an old suite may break the rules of today.
class CaseText(Record):
    """A case as stored in the newest suite that contains it."""

    turns: tuple[str, ...]
    gold: str
    expected_refusal: bool
    severity: int
    type: str
    language: str


_COUNTS: Final = TypeAdapter(dict[str, int])
_SHOWN_SQL = (
    "with shown as materialized ("
    "  select run_id, suite_sha256, commit, finished_at, verdict,"
    "    row_number() over (order by finished_at desc, run_id desc) as place"
    "  from runs where target = $target and not interrupted and ($suite is null or suite_name = $suite)"
    "  order by finished_at desc, run_id desc limit $runs"
    ")"
)
_WRONG = "(a.outcome = 'failed' or (a.outcome = 'no_answer' and a.blame = 'app'))"
_GRID = f"""{_SHOWN_SQL}, asked as (
  select a.case_id, r.place, any_value(r.suite_sha256) as suite, any_value(r.commit) as deploy,
    bool_or({_WRONG}) as wrong, bool_and(a.outcome = 'correct') as all_correct,
    bool_or(a.outcome = 'correct') as once_correct, bool_or(a.outcome = 'failed') as failed,
    bool_or(a.outcome = 'no_answer') as silent,
    max(a.case_severity) as severity, any_value(a.type) as type, any_value(a.language) as language
  from assessments a join shown r on r.run_id = a.run_id group by a.case_id, r.place
), cells as (
  select *, case when failed then 'failed' when silent then 'no_answer' when all_correct then 'correct'
      else 'ungraded' end as outcome,
    case when wrong then false when all_correct then true end as is_right
  from asked
), steps as (
  select *, lag(is_right ignore nulls) over (partition by case_id order by place desc) as was_right,
    wrong and once_correct as both_ways,
    deploy is not null and min(is_right) over same < max(is_right) over same as unlike
  from cells window same as (partition by case_id, suite, deploy)
), courses as (
  select case_id, arg_min(severity, place) as severity, arg_min(type, place) as type,
    arg_min(language, place) as language, arg_min(outcome, place) as outcome,
    count(*) filter (where is_right <> was_right) as flips,
    case when bool_or(both_ways) or (flips > 1 and bool_or(unlike)) then 'flaky'
      when count(is_right) = 0 then 'ungraded'
      when flips > 1 then 'unsteady' when flips = 1 then if(arg_min(is_right, place), 'fixed', 'broke')
      when bool_and(is_right) then 'right' else 'failing' end as course,
    list({{'place': place, 'outcome': outcome, 'flipped': coalesce(is_right <> was_right, false)}} order by place)
      as cells
  from steps group by case_id
), wanted as (
  select * from courses
  where ($severity is null or severity = $severity) and ($type is null or type = $type)
    and ($language is null or language = $language) and ($outcome is null or outcome = $outcome)
)"""  # noqa: S608 - ours
_ORDER = "array_position(['broke', 'failing', 'unsteady', 'fixed', 'flaky', 'ungraded', 'right'], course)"


def find_target_of_newest_run(store: Store) -> str | None:
    """Find the target of the newest finished run."""
    table = store.query("select target from runs where not interrupted order by finished_at desc limit 1")
    return str(table.rows[0][0]) if table.rows else None


def list_grid_runs(store: Store, wanted: GridFilter) -> tuple[GridRun, ...]:
    """List the runs that the grid shows, newest first."""
    table = store.query(
        f"{_SHOWN_SQL} select place, run_id, finished_at, verdict, commit,"  # noqa: S608 - ours
        " coalesce(suite_sha256 <> lead(suite_sha256) over (order by place), false) from shown order by place",
        {"target": wanted.target, "suite": wanted.suite, "runs": wanted.runs},
    )
    return tuple(GridRun.model_validate(dict(zip(GridRun.model_fields, row, strict=True))) for row in table.rows)


def load_grid_page(
    store: Store, wanted: GridFilter, *, rows: int, offset: int
) -> tuple[tuple[GridRow, ...], dict[str, int]]:
    """Load one page of cases with their cells, most urgent first.

    Also return the number of cases for each `CaseCourse`, over all pages. ``rows`` is the number of cases on a
    page, and ``offset`` is the number of cases before the page.
    """
    asked = wanted.model_dump()
    table = store.query(
        f"{_GRID}, counts as (select course, count(*) as cases from wanted group by course)"  # noqa: S608 - ours
        " select case_id, severity, type, language, outcome, course, flips, cells,"
        " (select map_from_entries(list((course, cases))) from counts) from wanted"
        f" where $course is null or course = $course order by {_ORDER}, severity desc, case_id"
        " limit $rows offset $offset",
        {**asked, "rows": rows, "offset": offset},
    )
    names = list(GridRow.model_fields)
    listed = (GridRow.model_validate(dict(zip(names, row[:-1], strict=True))) for row in table.rows)
    return tuple(listed), _COUNTS.validate_python(table.rows[0][-1] if table.rows else {})


def load_grid_filter_values(store: Store, wanted: GridFilter) -> GridOptions:
    """Load the values of the filters for the cases of the newest runs."""
    table = store.query(
        f"{_SHOWN_SQL} select list_sort(list(distinct a.type)), list_sort(list(distinct a.language))"  # noqa: S608 - ours
        " from assessments a join shown r on r.run_id = a.run_id",
        {"target": wanted.target, "suite": wanted.suite, "runs": 1},
    )
    types, languages = table.rows[0]
    return GridOptions.model_validate({"types": types or (), "languages": languages or ()})


def load_case_answers_page(
    store: Store, target: str, case_id: str, outcome: str | None, *, rows: int, offset: int
) -> tuple[tuple[CaseAnswer, ...], int]:
    """List one page of answers to a case, newest first.

    Also return the number of matching answers on all pages.
    """
    table = store.query(
        "with history as ("  # noqa: S608 - ours
        "  select a.*, r.finished_at, r.verdict, r.commit, r.suite_sha256,"
        f"   case when {_WRONG} then false when a.outcome = 'correct' then true end as is_right"
        "  from assessments a join runs r on r.run_id = a.run_id where a.case_id = $case and r.target = $target"
        "), steps as ("
        "  select *, lag(is_right ignore nulls) over (order by finished_at, run_id, repeat) as was_right"
        "  from history"
        "), page as ("
        "  select *, count(*) over () as total from steps where $outcome is null or outcome = $outcome"
        "  order by finished_at desc, run_id desc, repeat desc limit $rows offset $offset"
        ") select p.run_id, p.repeat, p.finished_at, p.verdict, p.commit, p.suite_sha256, p.outcome, p.severity,"
        " p.reason, p.unconfirmed, coalesce(p.is_right <> p.was_right, false),"
        " case when s.graded_channel = 'wire' then coalesce(s.wire_text, s.visible_text) else s.visible_text end,"
        " s.detail, s.app_path, s.total_ms, p.total"
        " from page p left join results s on s.run_id = p.run_id and s.case_id = p.case_id and s.repeat = p.repeat"
        " order by p.finished_at desc, p.run_id desc, p.repeat desc",
        {"target": target, "case": case_id, "outcome": outcome, "rows": rows, "offset": offset},
    )
    names = list(CaseAnswer.model_fields)
    listed = (CaseAnswer.model_validate(dict(zip(names, row[:-1], strict=True))) for row in table.rows)
    return tuple(listed), int(str(table.rows[0][-1])) if table.rows else 0


def load_case_text(store: Store, suite_sha256: str, case_id: str) -> CaseText | None:
    """Load a case of a stored suite. Returns ``None`` if there is no such case."""
    table = store.query(
        "select turns, gold, expected_refusal, severity, type, language from cases"
        " where suite_sha256 = $suite and case_id = $case",
        {"suite": suite_sha256, "case": case_id},
    )
    if not table.rows:
        return None
    return CaseText.model_validate(dict(zip(CaseText.model_fields, table.rows[0], strict=True)))
