"""Queries for runs: the accepted run to use as baseline, the failures since the last PASS, and figures of runs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple, cast

from pydantic import TypeAdapter

from monitors.records.grades import JudgeLineage
from monitors.records.runs import Baseline, BaselineResult, RunReport
from monitors.records.targets import Environment
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store

MAX_RUNS_SEARCHED = 100
"""Maximum number of accepted runs to search. Older runs do not represent today's application."""

_LINEAGES: Final = TypeAdapter(tuple[JudgeLineage, ...])


def find_baseline_run(
    store: Store,
    target: str,
    environment: Environment,
    suite_sha256: str,
    *,
    lineages: Collection[JudgeLineage] = (),
    commits: Collection[str] | None = None,
    branch: str | None = None,
    except_run: str | None = None,
    wait_s: float = DEFAULT_READ_WAIT_S,
) -> Baseline | None:
    """Find the newest accepted run of ``target`` that used this suite and these judges.

    An accepted run is finished, has the verdict PASS, and does not belong to a pull request.

    - ``commits`` limits the search to these commits, for example those of a base branch.
    - ``branch`` limits the search to runs of that branch. If that branch has no accepted run, runs whose branch is
      unknown are searched.
    - The run ``except_run`` is skipped.

    If no accepted run used this suite and these judges, the newest accepted run is returned. The gate then refuses
    this run as a baseline and names the difference. Returns ``None`` if there is no accepted run.
    """
    accepted = _list_accepted_runs(store, target, environment, except_run=except_run, branch=branch, wait_s=wait_s)
    runs = [run for run in accepted if commits is None or run.commit in commits]
    if branch is not None:
        runs = [run for run in runs if run.branch == branch] or runs
    # A run that needed no judge can be compared with runs of any judge.
    comparable = (
        run
        for run in runs
        if run.suite_sha256 == suite_sha256
        and (not run.judges or not lineages or run.judges == frozenset(lineages))
    )
    chosen = next(comparable, runs[0] if runs else None)
    report = store.find_report(chosen.run_id, wait_s=wait_s) if chosen else None
    return Baseline(report=report, asked=_list_results(store, report.run_id, wait_s)) if report else None


def find_last_run_with_answers(
    store: Store, target: str, *, except_run: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> RunReport | None:
    """Find the newest finished run of ``target`` that received answers. The run ``except_run`` is skipped."""
    table = store.query(
        "select run_id from runs where target = $target and not interrupted and run_id is distinct from $except_run"
        " and coalesce(json_array_length(report, '$.snapshot.answers'), 0) > 0"
        " order by finished_at desc, run_id desc limit 1",
        {"target": target, "except_run": except_run},
        wait_s=wait_s,
    )
    return store.find_report(str(table.rows[0][0]), wait_s=wait_s) if table.rows else None


class _AcceptedRun(NamedTuple):
    run_id: str
    commit: str | None
    suite_sha256: str
    judges: frozenset[JudgeLineage]
    branch: str | None


def _list_accepted_runs(
    store: Store,
    target: str,
    environment: Environment,
    *,
    except_run: str | None,
    branch: str | None,
    wait_s: float,
) -> list[_AcceptedRun]:
    """List the accepted runs, newest first.

    If ``branch`` is given, only runs of that branch and runs of unknown branches are listed.
    """
    table = store.query(
        "select run_id, commit, suite_sha256, json_extract_string(report, '$.judging.lineages'),"
        " json_extract_string(report, '$.change.branch') from runs"
        " where target = $target and environment = $environment and verdict = 'PASS' and not interrupted"
        " and run_id is distinct from $except_run"
        " and coalesce(json_extract_string(report, '$.pull_request'), 'null') = 'null'"
        " and ($branch is null or coalesce(json_extract_string(report, '$.change.branch'), $branch) = $branch)"
        " order by finished_at desc, run_id desc limit $most",
        {
            "target": target,
            "environment": environment.value,
            "except_run": except_run,
            "branch": branch,
            "most": MAX_RUNS_SEARCHED,
        },
        wait_s=wait_s,
    )
    return [
        _AcceptedRun(
            str(run),
            None if commit is None else str(commit),
            str(suite),
            frozenset(_LINEAGES.validate_json(judges)) if isinstance(judges, str) else frozenset(),
            None if branch is None else str(branch),
        )
        for run, commit, suite, judges, branch in table.rows
    ]


def _list_results(store: Store, run_id: str, wait_s: float) -> tuple[BaselineResult, ...]:
    table = store.query(
        "select case_id, repeat, outcome, blame from assessments where run_id = $run order by case_id, repeat",
        {"run": run_id},
        wait_s=wait_s,
    )
    return tuple(
        BaselineResult.model_validate({"case_id": case_id, "repeat": repeat, "outcome": outcome, "blame": blame})
        for case_id, repeat, outcome, blame in table.rows
    )


class FailedSince(NamedTuple):
    """A failed run, the last run before it with the verdict PASS, and the cases that have failed since that PASS.

    ``cases`` contains the id and the failure kinds of each case that failed in the failed run and was correct in
    the PASS run, most severe first. If there is no earlier PASS, ``cases`` contains all cases that failed in the
    failed run.
    """

    run_id: str
    commit: str | None
    passed_run_id: str | None
    passed_commit: str | None
    cases: tuple[tuple[str, tuple[str, ...]], ...]


def find_failures_since_last_pass(
    store: Store, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> FailedSince | None:
    """Find the newest run of ``target`` with the verdict FAIL, and the cases that have failed since the last PASS.

    Runs for pull requests are ignored. Returns ``None`` if no run failed.
    """
    failed = store.query(
        "select run_id, commit, finished_at from runs where target = $target and verdict = 'FAIL'"
        " and not interrupted and coalesce(json_extract_string(report, '$.pull_request'), 'null') = 'null'"
        " order by finished_at desc, run_id desc limit 1",
        {"target": target},
        wait_s=wait_s,
    )
    if not failed.rows:
        return None
    run_id, commit, finished_at = failed.rows[0]
    passed = store.query(
        "select run_id, commit from runs where target = $target and verdict = 'PASS' and not interrupted"
        " and coalesce(json_extract_string(report, '$.pull_request'), 'null') = 'null'"
        " and finished_at < $before::timestamptz order by finished_at desc, run_id desc limit 1",
        {"target": target, "before": str(finished_at)},
        wait_s=wait_s,
    )
    passed_run, passed_commit = passed.rows[0] if passed.rows else (None, None)
    return FailedSince(
        run_id=str(run_id),
        commit=None if commit is None else str(commit),
        passed_run_id=None if passed_run is None else str(passed_run),
        passed_commit=None if passed_commit is None else str(passed_commit),
        cases=_list_newly_failed_cases(store, str(run_id), None if passed_run is None else str(passed_run), wait_s),
    )


def _list_newly_failed_cases(
    store: Store, run_id: str, passed_run_id: str | None, wait_s: float
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = store.query(
        "select case_id, max(severity) as worst, list_distinct(flatten(list(failure_kinds))) from assessments"
        " where run_id = $run and outcome = 'failed' and ($passed is null or case_id in"
        " (select case_id from assessments where run_id = $passed and outcome = 'correct'))"
        " group by case_id order by worst desc, case_id",
        {"run": run_id, "passed": passed_run_id},
        wait_s=wait_s,
    )
    return tuple((str(case), tuple(sorted(map(str, cast("list[str]", kinds))))) for case, _, kinds in table.rows)


def find_deploy_time(
    store: Store, target: str, commit: str, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> datetime | None:
    """Find the time at which the deploy of ``commit`` was reported.

    Returns ``None`` if the deploy was not reported.
    """
    table = store.query(
        "select occurred_at from deploys where target = $target and commit = $commit",
        {"target": target, "commit": commit},
        wait_s=wait_s,
    )
    return next((row[0] for row in table.rows if isinstance(row[0], datetime)), None)


class RunFigures(NamedTuple):
    """The figures of a run.

    Scores are ``None`` if nothing was graded. Latency is ``None`` if there are no answers.
    """

    run_id: str
    verdict: str
    weighted: float | None
    flat: float | None
    p95_ms: float | None
    cost_usd: float
    asked: int
    graded: int


def list_runs_since(store: Store, target: str, since: datetime) -> tuple[RunFigures, ...]:
    """List the figures of a target's runs that finished at ``since`` or later, newest first."""
    table = store.query(
        "select run_id, verdict, weighted, flat, p95_ms, cost_usd, asked, graded from run_summary"
        " where target = $target and finished_at >= $since::timestamptz order by finished_at desc, run_id desc",
        {"target": target, "since": since.isoformat()},
    )
    return tuple(
        RunFigures(
            run_id=str(run_id),
            verdict=str(verdict),
            weighted=_parse_number(weighted),
            flat=_parse_number(flat),
            p95_ms=_parse_number(p95_ms),
            cost_usd=_parse_number(cost) or 0.0,
            asked=int(str(asked)),
            graded=int(str(graded)),
        )
        for run_id, verdict, weighted, flat, p95_ms, cost, asked, graded in table.rows
    )


def _parse_number(value: object) -> float | None:
    return None if value is None else float(str(value))


def has_finished_run(store: Store, target: str) -> bool:
    """Return whether any run of ``target`` has finished."""
    return bool(store.query("select 1 from run_summary where target = $target limit 1", {"target": target}).rows)


def count_runs(store: Store, *, wait_s: float = DEFAULT_READ_WAIT_S) -> int:
    """Count the runs of all targets."""
    return int(str(store.query("select count(*) from runs", wait_s=wait_s).rows[0][0]))
