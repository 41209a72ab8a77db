"""How an agent's reports on issues came out: how many are correct, and the steps that they took. Pure.

Beside them stand the reports' ratings (`monitors.gate.ratings`). Against a baseline each figure is over the issues
for which both runs have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from monitors.facts.tool_calls import repeated_steps
from monitors.gate.compare import ComparisonDetail, Pair
from monitors.records.comparisons import Comparison, DimensionChange, TriageChange
from monitors.records.exchanges import Evidence, Exchange
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import CaseResult, IssuePath, Metric, TriageSummary
from monitors.stats.intervals import by_cluster, clustered_share

ACCURACY = "triage_accuracy"


def triage_summary(
    results: Sequence[CaseResult], folded: Sequence[Assessment], graded: frozenset[str]
) -> TriageSummary | None:
    """The figures of a run; ``None`` where no case is an issue.

    ``folded`` has one assessment for each case, ``graded`` the ids of those that say something about the
    application. The interval of accuracy is Wilson's, clustered as that of every share.
    """
    issues = _issues(results)
    if not issues:
        return None
    return TriageSummary(
        issues=len(issues),
        accuracy=_accuracy([a for a in folded if a.case_id in issues & graded]),
        paths=tuple(_paths(results)),
    )


def _accuracy(assessments: Sequence[Assessment]) -> Metric:
    correct = ((a.cluster or ("", a.case_id), a.outcome is CaseOutcome.CORRECT) for a in assessments)
    share = clustered_share(by_cluster(correct))
    return Metric(
        name=ACCURACY,
        passed=share.passed,
        total=share.total,
        low=share.low,
        high=share.high,
        clusters=share.clusters if share.clusters < share.total else None,
    )


def _paths(results: Sequence[CaseResult]) -> Iterator[IssuePath]:
    asks: dict[str, list[CaseResult]] = {}
    for one in results:
        if one.case.triage is not None and isinstance(one.result, Exchange) and steps_taken(one.result.evidence):
            asks.setdefault(one.case.id, []).append(one)
    for case_id, asked in asks.items():
        yield _path(case_id, asked)


def _path(case_id: str, asked: Sequence[CaseResult]) -> IssuePath:
    task, seen = asked[0].case.triage, [one.result.evidence for one in asked]
    comparable = [
        evidence.steps for evidence in seen if any(step.detail and not step.cut for step in evidence.steps)
    ]
    return IssuePath(
        case_id=case_id,
        steps=fmean(steps_taken(evidence) for evidence in seen),
        repeated=fmean(len(repeated_steps(steps)) for steps in comparable) if comparable else None,
        shortest_path=task.reference.shortest_path if task else None,
    )


def steps_taken(evidence: Evidence) -> int:
    """How many steps an agent took: the application's own count of its hops, else the steps that were seen.

    0 where neither is known, and where more steps may have followed those that were seen.
    """
    return evidence.hops or (0 if evidence.steps_cut else len(evidence.steps))


def with_triage(
    compared: ComparisonDetail,
    before: TriageSummary | None,
    now: TriageSummary | None,
    results: Sequence[CaseResult],
) -> Comparison:
    """The comparison with how the reports moved, where both runs are of issues and may be compared."""
    if compared.comparison.refused or before is None or now is None:
        return compared.comparison
    issues = _issues(results)
    change = TriageChange(
        accuracy=_accuracy_change([pair for pair in compared.pairs if pair.case_id in issues]),
        steps=_steps_change({one.case_id: one.steps for one in before.paths}, now.paths),
    )
    return compared.comparison.add_triage(None if change == TriageChange() else change)


def _issues(results: Sequence[CaseResult]) -> frozenset[str]:
    return frozenset(one.case.id for one in results if one.case.triage is not None)


def _accuracy_change(pairs: Sequence[Pair]) -> DimensionChange | None:
    if not pairs:
        return None
    return DimensionChange(
        shared=len(pairs),
        before=fmean(pair.before for pair in pairs),
        now=fmean(pair.now for pair in pairs),
    )


def _steps_change(before: Mapping[str, float], now: Sequence[IssuePath]) -> DimensionChange | None:
    shared = [path for path in now if path.case_id in before]
    if not shared:
        return None
    return DimensionChange(
        shared=len(shared),
        before=fmean(before[path.case_id] for path in shared),
        now=fmean(path.steps for path in shared),
    )
