"""Queries for nightly runs of live traffic: a list, one report, and examples of each failure kind."""

from __future__ import annotations

from decimal import Decimal

from monitors.records.base import Record, UtcTime
from monitors.records.grades import FailureKind
from monitors.records.nightly import NightlyReport
from warehouse.database.store import Store


class NightlyFigures(Record):
    """A nightly run with its rate of severe failures.

    ``severe_rate`` is the share (0 to 1) of conversations with a failure of severity 3. ``severe_low`` and
    ``severe_high`` are the limits of the confidence interval of this share. The three values are ``None`` if too
    few conversations were graded.
    """

    target: str
    run_id: str
    due_at: UtcTime
    sampled: int
    graded: int
    severe_rate: float | None
    severe_low: float | None
    severe_high: float | None


class NightlyRow(NightlyFigures):
    """A nightly run in a list.

    A rate is ``None`` if too few conversations were graded. ``drift`` is ``None`` if the run did not test for
    drift.
    """

    conversations: int
    failed_rate: float | None
    failed_low: float | None
    failed_high: float | None
    cost_usd: Decimal
    drift: str | None
    graded_by: str


class FailureExample(Record):
    """A sampled conversation with a given failure kind: its question, its answer and the reason for the failure."""

    kind: FailureKind
    case_id: str
    severity: int
    reason: str
    asked: str
    answered: str | None


_NIGHTLY_RUNS = (
    "from nightly_trend where ($target is null or target = $target) and ($drift is null or drift = $drift)"
)


def load_nightly_runs_page(
    store: Store, target: str | None, drift: str | None, *, rows: int, offset: int
) -> tuple[tuple[NightlyRow, ...], int]:
    """Load one page of nightly runs, newest first. Also return the number of all nightly runs."""
    wanted = {"target": target, "drift": drift}
    total = store.query(f"select count(*) {_NIGHTLY_RUNS}", wanted).rows[0][0]
    names = ", ".join(NightlyRow.model_fields)
    table = store.query(
        f"select {names} {_NIGHTLY_RUNS} order by due_at desc, target, run_id limit $rows offset $offset",
        {**wanted, "rows": rows, "offset": offset},
    )
    listed = (NightlyRow.model_validate(dict(zip(NightlyRow.model_fields, row, strict=True))) for row in table.rows)
    return tuple(listed), int(str(total))


def load_nightly_report(store: Store, run_id: str) -> NightlyReport | None:
    """Load the report of a nightly run. Returns ``None`` if no nightly run has this id."""
    table = store.query("select record from nightly_runs where run_id = $run", {"run": run_id})
    return NightlyReport.model_validate_json(str(table.rows[0][0])) if table.rows else None


def list_failure_examples(store: Store, run_id: str, *, each: int) -> tuple[FailureExample, ...]:
    """List up to ``each`` conversations for each failure kind, most severe first."""
    table = store.query(
        "with failures as ("
        "  select unnest(failure_kinds) as kind, case_id, repeat, severity, reason from assessments"
        "  where run_id = $run and outcome = 'failed'"
        "), picked as ("
        "  select * from failures"
        "  qualify row_number() over (partition by kind order by severity desc, case_id, repeat) <= $each"
        ") select p.kind, p.case_id, p.severity, p.reason, coalesce(list_extract(s.turns, -1), ''),"
        " case when s.graded_channel = 'wire' then coalesce(s.wire_text, s.visible_text) else s.visible_text end"
        " from picked p left join results s on s.run_id = $run and s.case_id = p.case_id and s.repeat = p.repeat"
        " order by p.severity desc, p.kind, p.case_id",
        {"run": run_id, "each": each},
    )
    return tuple(
        FailureExample.model_validate(dict(zip(FailureExample.model_fields, row, strict=True)))
        for row in table.rows
    )
