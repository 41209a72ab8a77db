"""Queries for the runs that the site's pages show, and for the cases of one run, one page at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

from monitors.records.base import Blame, Record, UtcTime
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import Verdict
from warehouse.database.store import Store


class RunHead(Record):
    """The heading of a page about a finished run."""

    run_id: str
    target: str
    environment: str
    commit: str | None
    finished_at: UtcTime
    verdict: Verdict


class ListedRun(RunHead):
    """A finished run in a list. Scores are ``None`` if nothing was graded."""

    suite_name: str
    interrupted: bool
    duration_s: float
    weighted: Decimal | None
    flat: Decimal | None
    severity_3_not_correct: int
    severity_2_not_correct: int
    severity_1_not_correct: int
    asked: int
    graded: int
    p50_ms: float | None
    cost_usd: Decimal


class RunFilter(Record):
    """The runs to show. ``None`` selects all. ``commit`` is the beginning of a commit hash."""

    target: str | None = None
    verdict: str | None = None
    suite: str | None = None
    commit: str | None = None


# Shares its fields with Assessment because a page lists cases by these columns, without their grades.
class ListedCase(Record):
    """A case of a run in a list, with its outcome and the reason for the outcome."""

    case_id: str
    repeat: int
    outcome: CaseOutcome
    failure_kinds: tuple[FailureKind, ...]
    severity: int
    reason: str
    blame: Blame | None
    type: str
    language: str
    unconfirmed: bool
    asked: str
    total_ms: float | None


_CASES_SHOWN = (
    "select a.case_id, a.repeat, a.outcome, a.failure_kinds, a.severity, a.reason, a.blame, a.type, a.language,"
    " a.unconfirmed, coalesce(list_extract(s.turns, -1), ''), s.total_ms from assessments a"
    " left join results s on s.run_id = a.run_id and s.case_id = a.case_id and s.repeat = a.repeat"
)
_CASES = "where a.run_id = $run and ($outcome is null or a.outcome = $outcome)"
_WORST_FIRST = (
    "order by case a.outcome when 'failed' then 0 when 'no_answer' then 1 when 'ungraded' then 2 else 3 end,"
    " a.severity desc, a.case_id, a.repeat"
)
_WANTED = (
    "from runs where ($target is null or target = $target) and ($verdict is null or verdict = $verdict)"
    " and ($suite is null or suite_name = $suite) and ($commit is null or starts_with(commit, $commit))"
)
_RUNS = (
    "with page as ("  # noqa: S608 - names of ours
    "  select run_id, target, environment, suite_name, commit, finished_at,"
    "    round(epoch(finished_at - started_at), 1)::double as duration_s, verdict,"
    "    round(weighted_earned / nullif(weighted_total, 0), 3)::decimal(6, 3) as weighted,"
    "    round(flat_earned / nullif(flat_total, 0), 3)::decimal(6, 3) as flat,"
    f"    asked, graded, p50_ms, cost_usd, interrupted {_WANTED}"
    "  order by finished_at desc, run_id desc limit $rows offset $offset"
    "), counts as ("
    "  select t.run_id, sum(t.not_correct) filter (where t.severity = 3) as severe,"
    "    sum(t.not_correct) filter (where t.severity = 2) as wrong,"
    "    sum(t.not_correct) filter (where t.severity = 1) as annoying"
    "  from tallies t semi join page using (run_id) group by t.run_id"
    ") select run_id, target, environment, commit, finished_at, verdict, suite_name, interrupted, duration_s,"
    " weighted, flat, coalesce(severe, 0)::integer, coalesce(wrong, 0)::integer, coalesce(annoying, 0)::integer,"
    " asked, graded, p50_ms, cost_usd from page left join counts using (run_id)"
    " order by finished_at desc, run_id desc"
)


def load_runs_page(store: Store, wanted: RunFilter, *, rows: int, offset: int) -> tuple[tuple[ListedRun, ...], int]:
    """Load one page of runs, newest first. Also return the number of all runs."""
    asked = wanted.model_dump()
    total = store.query(f"select count(*) {_WANTED}", asked).rows[0][0]
    table = store.query(_RUNS, {**asked, "rows": rows, "offset": offset})
    listed = (ListedRun.model_validate(dict(zip(ListedRun.model_fields, row, strict=True))) for row in table.rows)
    return tuple(listed), int(str(total))


def select_finished_runs(store: Store, run_ids: Sequence[str]) -> frozenset[str]:
    """Return those of ``run_ids`` whose run has a report in the warehouse."""
    table = store.query(
        "select run_id from runs where list_contains(from_json($runs::json, '[\"VARCHAR\"]'), run_id)",
        {"runs": json.dumps(list(run_ids))},
    )
    return frozenset(str(row[0]) for row in table.rows)


def list_suites(store: Store) -> tuple[str, ...]:
    """List the names of all suites."""
    table = store.query("select distinct suite_name from runs order by suite_name")
    return tuple(str(row[0]) for row in table.rows)


def count_outcomes(store: Store, run_id: str) -> dict[str, int]:
    """Count a run's cases by outcome."""
    table = store.query(
        "select outcome, count(*) from assessments where run_id = $run group by outcome", {"run": run_id}
    )
    return {str(outcome): int(str(count)) for outcome, count in table.rows}


def load_cases_page(
    store: Store, run_id: str, outcome: str | None, *, rows: int, offset: int
) -> tuple[tuple[ListedCase, ...], int]:
    """Load one page of a run's cases, most severe first. ``outcome`` selects one outcome.

    Also return the number of cases that match.
    """
    wanted = {"run": run_id, "outcome": outcome}
    total = store.query(f"select count(*) from assessments a {_CASES}", wanted).rows[0][0]  # noqa: S608 - ours
    table = store.query(
        f"{_CASES_SHOWN} {_CASES} {_WORST_FIRST} limit $rows offset $offset",
        {**wanted, "rows": rows, "offset": offset},
    )
    listed = (ListedCase.model_validate(dict(zip(ListedCase.model_fields, row, strict=True))) for row in table.rows)
    return tuple(listed), int(str(total))
