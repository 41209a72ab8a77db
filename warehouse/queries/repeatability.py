"""Queries for stored repeats of cases.

The repeats come from sessions that asked each case twice, and from runs on the same commit.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from monitors.records.self_checks import RecordedAsk, RepeatabilityRun, RepeatedCase
from monitors.records.targets import Environment
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store, parse_record_text

MAX_RUNS: Final = 60
"""Maximum number of runs whose cases are read: two months with one run per night."""

GRADING_SETTINGS: Final = ("graders", "domains", "judge")
"""The configuration sections that affect the grades of an answer, by their names in a run's snapshot."""


def hash_graders_and_settings(graders: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Hash the versions of the graders and the settings that affect grades."""
    relevant_settings = {name: settings.get(name, "") for name in GRADING_SETTINGS}
    return hashlib.sha256(json.dumps([dict(graders), relevant_settings], sort_keys=True).encode()).hexdigest()


class RepeatScope(NamedTuple):
    """Selects the repeats to count: those of one target since a given time.

    Only cases of the suite ``suite_sha256`` count. ``graded_by`` is the hash of the graders and settings with which
    the repeats must have been graded.
    """

    target: str
    environment: Environment
    suite_sha256: str
    graded_by: str
    since: datetime


class RecordedRepeats(NamedTuple):
    """The stored repeats of cases, from sessions that asked each case twice and from runs.

    ``sessions`` is the number of sessions that are used. ``void_sessions`` is the number of void sessions, which
    are not used.
    """

    of_sessions: tuple[RepeatedCase, ...]
    of_runs: tuple[RepeatedCase, ...]
    sessions: int
    void_sessions: int


def load_recorded_repeats(
    store: Store, scope: RepeatScope, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> RecordedRepeats:
    """Load all recorded repeats within the scope. Raises `WarehouseError`."""
    sessions = [session for session in _load_sessions(store, scope, wait_s) if session.graded_by == scope.graded_by]
    same_cases = _list_same_cases(store, scope, wait_s)
    counting = [session for session in sessions if not session.void]
    return RecordedRepeats(
        tuple(
            case
            for session in counting
            for case in session.cases
            if (session.suite_sha256, case.case_id) in same_cases
        ),
        _load_cases_repeated_across_runs(store, scope, same_cases, wait_s),
        len(counting),
        len(sessions) - len(counting),
    )


def find_newest_session(
    store: Store, target: str, *, except_run: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> RepeatabilityRun | None:
    """Find the newest session that asked each case of a target twice. The session ``except_run`` is skipped.

    Returns ``None`` if there is no session. Raises `WarehouseDamaged` if the session has another format.
    """
    table = store.query(
        "select record from repeatability_runs where target = $target and run_id is distinct from $except_run"
        " order by finished_at desc, run_id desc limit 1",
        {"target": target, "except_run": except_run},
        wait_s=wait_s,
    )
    return _parse_session(table.rows[0]) if table.rows else None


def load_last_repeat_times(
    store: Store, target: str, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Mapping[str, datetime]:
    """Return, for each case of a target, the last time at which a session asked the case twice, by case id."""
    table = store.query(
        "select c.case_id, max(r.started_at) from repeated_cases c join repeatability_runs r using (run_id)"
        " where r.target = $target and c.asked > 1 group by 1",
        {"target": target},
        wait_s=wait_s,
    )
    return {str(case_id): at for case_id, at in table.rows if isinstance(at, datetime)}


def _load_sessions(store: Store, scope: RepeatScope, wait_s: float) -> Sequence[RepeatabilityRun]:
    table = store.query(
        "select record from repeatability_runs where target = $target and environment = $environment"
        " and started_at >= $since::timestamptz order by started_at, run_id",
        {"target": scope.target, "environment": scope.environment.value, "since": scope.since.isoformat()},
        wait_s=wait_s,
    )
    return [_parse_session(row) for row in table.rows]


def _parse_session(row: Sequence[object]) -> RepeatabilityRun:
    return parse_record_text(
        row[0], RepeatabilityRun, "session of repeated questions", "its pairs are still in `repeated_cases`"
    )


def _list_same_cases(store: Store, scope: RepeatScope, wait_s: float) -> frozenset[tuple[str, str]]:
    """List the stored cases that are identical to a case of the scope's suite.

    A case is given as a pair: the hash of its suite, and its id.
    """
    table = store.query(
        "select c.suite_sha256, c.case_id from cases c"
        " join cases now on now.case_id = c.case_id and now.record = c.record"
        " where now.suite_sha256 = $suite",
        {"suite": scope.suite_sha256},
        wait_s=wait_s,
    )
    return frozenset((str(suite), str(case_id)) for suite, case_id in table.rows)


def _load_cases_repeated_across_runs(
    store: Store, scope: RepeatScope, same_cases: frozenset[tuple[str, str]], wait_s: float
) -> tuple[RepeatedCase, ...]:
    runs = _list_comparable_run_ids(store, scope, wait_s)
    table = store.query(
        "select r.run_id, r.suite_sha256, r.commit, a.case_id, a.case_severity, a.type, a.language, a.cluster,"
        " a.outcome, a.failure_kinds, a.severity, a.policy_row, a.blame, a.factual_match, a.citation_present,"
        " a.refused from assessments a join runs r using (run_id)"
        " where list_contains(from_json($runs, '[\"VARCHAR\"]'), r.run_id)"
        " order by r.started_at, r.run_id, a.case_id, a.repeat",
        {"runs": json.dumps(runs)},
        wait_s=wait_s,
    )
    asks: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for values in table.rows:
        row: Mapping[str, Any] = dict(zip(_COLUMNS, values, strict=True))
        if (row["suite_sha256"], row["case_id"]) in same_cases:
            asks[str(row["case_id"]), str(row["commit"])].append(row)
    return tuple(_build_repeated_case(rows) for rows in asks.values() if len(rows) > 1)


_CASE_COLUMNS: Final = ("case_id", "case_severity", "type", "language", "cluster")
_OUTCOME_COLUMNS: Final = ("outcome", "failure_kinds", "severity", "policy_row", "blame")
_FINDING_COLUMNS: Final = ("factual_match", "citation_present", "refused")
_COLUMNS: Final = ("run_id", "suite_sha256", "commit", *_CASE_COLUMNS, *_OUTCOME_COLUMNS, *_FINDING_COLUMNS)
_ASK_COLUMNS: Final = ("run_id", *_OUTCOME_COLUMNS, *_FINDING_COLUMNS)


def _build_repeated_case(rows: Sequence[Mapping[str, Any]]) -> RepeatedCase:
    case = {name: rows[0][name] for name in _CASE_COLUMNS}
    asks = tuple(RecordedAsk.model_validate({name: row[name] for name in _ASK_COLUMNS}) for row in rows)
    return RepeatedCase.model_validate({**case, "build": rows[0]["commit"], "asks": asks})


def _list_comparable_run_ids(store: Store, scope: RepeatScope, wait_s: float) -> list[str]:
    """List the ids of the newest finished runs that used the scope's graders and have a known commit."""
    table = store.query(
        "select run_id, json_extract_string(report, '$.snapshot.graders'),"
        " json_extract_string(report, '$.snapshot.settings') from runs"
        " where target = $target and environment = $environment and commit is not null and not interrupted"
        " and started_at >= $since::timestamptz order by started_at desc, run_id desc limit $most",
        {
            "target": scope.target,
            "environment": scope.environment.value,
            "since": scope.since.isoformat(),
            "most": MAX_RUNS,
        },
        wait_s=wait_s,
    )
    return [
        str(run_id)
        for run_id, graders, settings in table.rows
        if hash_graders_and_settings(_parse_name_map(graders), _parse_name_map(settings)) == scope.graded_by
    ]


def _parse_name_map(written: object) -> Mapping[str, str]:
    return cast("dict[str, str]", json.loads(written)) if isinstance(written, str) and written != "null" else {}
