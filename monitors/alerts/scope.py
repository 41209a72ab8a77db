"""What a run could tell: only that can resolve an incident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.exchanges import Exchange
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Incident, IncidentKind, IncidentState
from monitors.records.runs import CaseResult

TOLD = frozenset({CaseOutcome.CORRECT, CaseOutcome.FAILED})


class Scope(Record):
    """What one finished run had the standing to say about one target.

    ``told`` are the cases that were asked, answered and graded, each time they were asked; ``passed`` those of
    them that were correct every time. ``cleared`` are the other kinds of fault that the run proved absent
    (it answered, so the app is not down). A case that was not asked, gave no answer or could not be graded is in
    none of them and resolves nothing. A fault that another run saw after this one began is left to later runs:
    this one may have asked before it broke.
    """

    target: Identifier
    run_id: Identifier
    began_at: UtcTime
    ended_at: UtcTime
    commit: Identifier | None = None
    told: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    cleared: frozenset[IncidentKind] = frozenset()
    spared: frozenset[Sha256] = frozenset()
    """Fingerprints that this run has nothing to say of, whatever their kind: somebody else watches them."""
    words: str | None = None
    """What showed that they are gone, where the kind's own words do not fit."""

    def resolves(self, incident: Incident) -> bool:
        """Whether this run, not having seen the fault, shows that it is gone."""
        if incident.target != self.target or incident.state is IncidentState.RESOLVED:
            return False
        if incident.fingerprint in self.spared:
            return False
        if incident.last_seen_at >= self.began_at and incident.last_run_id != self.run_id:
            return False
        if incident.kind is IncidentKind.CASE_FAILURE:
            return incident.case_id in self.told
        return incident.kind in self.cleared


def scope_of(
    results: Sequence[CaseResult],
    *,
    target: str,
    run_id: str,
    began_at: UtcTime,
    ended_at: UtcTime,
    commit: str | None = None,
    cleared: Iterable[IncidentKind] = (),
    spared: Iterable[str] = (),
) -> Scope:
    """Build the scope of a finished run. One answer of the app clears ``APP_DOWN`` and ``DEPLOY_FAILURE`` too.

    The caller adds what only it knows: ``GATE_FAIL`` when the verdict is PASS, ``MONITOR_FAULT`` when the run
    broke nowhere, ``JUDGE_VOID`` when the canaries were caught, ``DRIFT`` when the test found none.
    """
    answered = any(isinstance(result.result, Exchange) for result in results)
    by_answer = {IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE} if answered else set[IncidentKind]()
    untold = {r.case.id for r in results if r.assessment.outcome not in TOLD}
    told = {r.case.id for r in results} - untold
    failed = {r.case.id for r in results if r.assessment.outcome is CaseOutcome.FAILED}
    return Scope(
        target=target,
        run_id=run_id,
        began_at=began_at,
        ended_at=ended_at,
        commit=commit,
        told=frozenset(told),
        passed=frozenset(told - failed),
        cleared=frozenset(cleared) | by_answer,
        spared=frozenset(spared),
    )
