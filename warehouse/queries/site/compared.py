"""Queries that compare two runs case by case: cases that only one run answered correctly, and the runs' settings.

A case is compared if both runs graded it and if it is identical in both suites. A case that was asked several times
is correct if all its answers were correct. A missing answer counts as wrong if the application caused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import TypeAdapter

from monitors.records.base import Record, Severity
from monitors.records.grades import JudgeLineage
from warehouse.database.store import Parameter, Store
from warehouse.queries.site.runs import RunHead


class RunSide(RunHead):
    """One of the two runs: its settings and its scores. A score is ``None`` if nothing was graded."""

    suite_name: str
    suite_sha256: str
    interrupted: bool
    weights_version: str
    weighted: float | None
    flat: float | None
    judges: tuple[JudgeLineage, ...]
    paths: tuple[str, ...]
    versions: tuple[str, ...]


class CasePair(Record):
    """A case that both runs graded. ``before`` and ``now`` state whether the case was correct in each run.

    ``cluster`` is the group of related cases that the case belongs to, or ``None``.
    """

    case_id: str
    severity: Severity
    cluster: str | None
    before: bool
    now: bool


class PairCounts(Record):
    """Numbers of cases that cannot be compared.

    Such a case was asked in only one run, is ungraded in one run, or differs between the two suites.
    """

    only_before: int
    only_now: int
    ungraded: int
    other_case: int


class FlippedAnswer(Record):
    """A case whose outcome differs between the two runs, with both answers and the reasons for both outcomes.

    A missing answer is ``None``.
    """

    case_id: str
    severity: Severity
    type: str
    language: str
    broke: bool
    before_answer: str | None
    before_reason: str
    now_answer: str | None
    now_reason: str


_LINEAGES: Final = TypeAdapter(tuple[JudgeLineage, ...])
_SIDE = (
    "select run_id, target, environment, commit, finished_at, verdict, suite_name, suite_sha256, interrupted,"
    " weights_version, (weighted_earned / nullif(weighted_total, 0))::double,"
    " (flat_earned / nullif(flat_total, 0))::double,"
    " coalesce(json_extract_string(report, '$.judging.lineages'), '[]'),"
    " coalesce((select list_sort(list(distinct app_path)) from results where run_id = $run"
    " and app_path is not null), []),"
    " coalesce((select list_sort(list(distinct app_version)) from results where run_id = $run"
    " and app_version is not null), [])"
    " from runs where run_id = $run"
)
_PAIRS = """
with asked as (
  select run_id = $now as is_now, case_id, max(case_severity) as severity, any_value(cluster) as cluster,
    any_value(type) as type, any_value(language) as language,
    case when bool_or(outcome = 'failed' or (outcome = 'no_answer' and blame = 'app')) then false
      when bool_and(outcome = 'correct') then true end as is_right,
    arg_min(repeat, outcome = 'correct') as repeat, arg_min(reason, outcome = 'correct') as reason
  from assessments where run_id in ($before, $now) group by is_now, case_id
), suite as (
  select run_id = $now as is_now, suite_sha256 from runs where run_id in ($before, $now)
), text as (
  select s.is_now, c.case_id, c.turns, c.gold, c.expected_refusal
  from cases c join suite s on s.suite_sha256 = c.suite_sha256
  where (select count(distinct suite_sha256) from suite) > 1
), pairs as (
  select coalesce(n.case_id, b.case_id) as case_id, coalesce(n.severity, b.severity) as severity,
    coalesce(n.type, b.type) as type, coalesce(n.language, b.language) as language, n.cluster,
    b.is_right as before, n.is_right as now, b.repeat as before_repeat, n.repeat as now_repeat,
    b.reason as before_reason, n.reason as now_reason, b.case_id is not null as was_asked,
    n.case_id is not null as is_asked,
    (select count(distinct suite_sha256) from suite) = 1 or coalesce(
      tb.turns = tn.turns and tb.gold = tn.gold and tb.expected_refusal = tn.expected_refusal, false) as same_case
  from (from asked where not is_now) b full join (from asked where is_now) n on n.case_id = b.case_id
  left join text tb on not tb.is_now and tb.case_id = b.case_id
  left join text tn on tn.is_now and tn.case_id = n.case_id
)"""
_IS_PAIR = "same_case and before is not null and now is not null"


def load_run_to_compare(store: Store, run_id: str) -> RunSide | None:
    """Load the settings and scores of a run. Returns ``None`` if there is no such run."""
    table = store.query(_SIDE, {"run": run_id})
    if not table.rows:
        return None
    row = dict(zip(RunSide.model_fields, table.rows[0], strict=True))
    return RunSide.model_validate({**row, "judges": _LINEAGES.validate_json(str(row["judges"]))})


def find_last_completed_run_id(store: Store, target: str | None, suite: str | None) -> str | None:
    """Find the id of the run that finished last. ``target`` and ``suite`` limit the search."""
    table = store.query(
        "select run_id from runs where not interrupted and ($target is null or target = $target)"
        " and ($suite is null or suite_name = $suite) order by finished_at desc, run_id desc limit 1",
        {"target": target, "suite": suite},
    )
    return str(table.rows[0][0]) if table.rows else None


def find_previous_run_of_same_suite(store: Store, run_id: str) -> str | None:
    """Find the id of the previous run of the same target and suite."""
    table = store.query(
        "select b.run_id from runs b join runs n on n.target = b.target and n.suite_name = b.suite_name"
        " where n.run_id = $run and b.run_id <> $run and not b.interrupted and b.finished_at <= n.finished_at"
        " order by b.finished_at desc, b.run_id desc limit 1",
        {"run": run_id},
    )
    return str(table.rows[0][0]) if table.rows else None


def load_case_pairs(store: Store, before: str, now: str) -> tuple[tuple[CasePair, ...], PairCounts]:
    """Load all cases that both runs graded, and the numbers of cases that cannot be compared."""
    runs = {"before": before, "now": now}
    table = store.query(
        f"{_PAIRS} select case_id, severity, cluster, before, now from pairs where {_IS_PAIR} order by case_id",  # noqa: S608 - ours
        runs,
    )
    names = list(CasePair.model_fields)
    pairs = (CasePair.model_validate(dict(zip(names, row, strict=True))) for row in table.rows)
    counted = store.query(
        f"{_PAIRS} select count(*) filter (where not is_asked),"  # noqa: S608 - ours
        " count(*) filter (where not was_asked),"
        " count(*) filter (where is_asked and was_asked and same_case and (before is null or now is null)),"
        " count(*) filter (where is_asked and was_asked and not same_case) from pairs",
        runs,
    )
    return tuple(pairs), PairCounts.model_validate(dict(zip(PairCounts.model_fields, counted.rows[0], strict=True)))


def load_flips_page(
    store: Store, before: str, now: str, *, broke: bool | None, rows: int, offset: int
) -> tuple[tuple[FlippedAnswer, ...], int]:
    """Load one page of the cases with different outcomes in the two runs, and the number of all such cases.

    Cases that broke come first, then the most severe cases. If ``broke`` is true, only cases that broke are loaded.
    If ``broke`` is false, only cases that were fixed are loaded.
    """
    asked: Mapping[str, Parameter] = {"before": before, "now": now, "broke": broke, "rows": rows, "offset": offset}
    table = store.query(
        f"{_PAIRS}, page as ("  # noqa: S608 - ours
        f"  select *, count(*) over () as total from pairs where {_IS_PAIR} and before <> now"
        "  and ($broke is null or before = $broke)"
        "  order by before desc, severity desc, case_id limit $rows offset $offset"
        "), said as ("
        "  select run_id = $now as is_now, case_id, repeat,"
        "    case when graded_channel = 'wire' then coalesce(wire_text, visible_text) else visible_text end as text"
        "  from results where run_id in ($before, $now)"
        ") select p.case_id, p.severity, p.type, p.language, p.before, b.text, p.before_reason, n.text,"
        " p.now_reason, p.total from page p"
        " left join said b on not b.is_now and b.case_id = p.case_id and b.repeat = p.before_repeat"
        " left join said n on n.is_now and n.case_id = p.case_id and n.repeat = p.now_repeat"
        " order by p.before desc, p.severity desc, p.case_id",
        asked,
    )
    names = list(FlippedAnswer.model_fields)
    listed = (FlippedAnswer.model_validate(dict(zip(names, row[:-1], strict=True))) for row in table.rows)
    return tuple(listed), int(str(table.rows[0][-1])) if table.rows else 0
